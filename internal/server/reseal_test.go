package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/secret"
)

// resealed calls Reseal on a database that no server works with.
func resealed(t *testing.T, c config.Config, oldKey, newKey secret.String) (Resealed, error) {
	t.Helper()
	db, err := OpenDatabase(t.Context(), c, quiet())
	if err != nil {
		t.Fatal(err)
	}
	done, err := Reseal(t.Context(), db, oldKey, newKey)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	return done, err
}

// The key of a database is changed with both keys in hand; from then on a server starts with the new one alone.
func TestASecretKeyIsReplacedByAnother(t *testing.T) {
	_, address := pgtest.NewURL(t)
	c := settings(t, address)
	c.SecretKey = key("1")
	stop, err := runServer(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resealed(t, c, key("1"), key("2")); err == nil || !strings.Contains(err.Error(), "end all of them first") {
		t.Errorf("beside a server: %v", err)
	}
	stop()
	for name, of := range map[string]struct {
		from, to secret.String
		want     string
	}{
		"a key that does not seal here": {key("3"), key("2"), "sealed with another key"},
		"no new key":                    {key("1"), secret.String{}, "set ROUSE_NEW_SECRET_KEY"},
		"the same key":                  {key("1"), key("1"), "the one that seals now"},
		"no key":                        {key("1"), secret.NewString("short"), "read ROUSE_NEW_SECRET_KEY"},
	} {
		if _, err := resealed(t, c, of.from, of.to); err == nil || !strings.Contains(err.Error(), of.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	done, err := resealed(t, c, key("1"), key("2"))
	if err != nil || done.KeyID == "" || done.File != "" {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := runServer(t, c); err == nil {
		t.Error("a server starts with the former key")
	}
	c.SecretKey = key("2")
	if stop, err = runServer(t, c); err != nil {
		t.Fatalf("with the new key: %v", err)
	}
	stop()
}

// A key in the data folder is replaced there, and what broke off before that is finished by the next call.
func TestAKeyFileIsReplacedLast(t *testing.T) {
	_, address := pgtest.NewURL(t)
	c := settings(t, address)
	stop, err := runServer(t, c)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	file := filepath.Join(c.DataDir, secret.KeyFileName)
	read := func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := read()
	done, err := resealed(t, c, secret.String{}, secret.String{})
	if err != nil || done.File != file || read() == first {
		t.Fatalf("%+v, %v", done, err)
	}
	if kept, err := os.ReadFile(done.Former); err != nil || string(kept) != first {
		t.Errorf("the former key: %q, %v", kept, err)
	}
	// As if the call had broken off before it replaced the file.
	second := read()
	if err := os.Rename(file, file+".next"); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(done.Former, file); err != nil {
		t.Fatal(err)
	}
	if done, err = resealed(t, c, secret.String{}, secret.String{}); err != nil || done.File != file || read() != second {
		t.Errorf("%+v, %v", done, err)
	}
	if stop, err = runServer(t, c); err != nil {
		t.Fatalf("with the new key: %v", err)
	}
	stop()
}
