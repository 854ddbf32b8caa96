package server

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/tokenfile"
)

// folder is a data folder at its database.
type folder struct {
	t   *testing.T
	s   *store.Store
	dir string
	log bytes.Buffer
}

func newFolder(t *testing.T) *folder {
	db, _ := pgtest.NewURL(t)
	return &folder{t: t, s: (&Database{DB: db, log: quiet()}).quietStore(), dir: t.TempDir()}
}

// keep is a start of the server.
func (f *folder) keep() auth.Token {
	f.t.Helper()
	token, err := keepLocalToken(f.t.Context(), f.s, f.dir, slog.New(slog.NewTextHandler(&f.log, nil)))
	if err != nil {
		f.t.Fatal(err)
	}
	if inFile, err := tokenfile.Read(f.dir); err != nil || inFile.Digest() != token.Digest() {
		f.t.Errorf("the file holds another token: %v, %v", inFile, err)
	}
	if strings.Contains(f.log.String(), token.Reveal()[12:]) {
		f.t.Errorf("the token is in the log: %s", f.log.String())
	}
	if !f.counts(token) {
		f.t.Error("the token does not count")
	}
	return token
}

func (f *folder) counts(token auth.Token) bool {
	f.t.Helper()
	known, err := f.s.TokenByDigest(f.t.Context(), token.Digest().String())
	if err != nil {
		f.t.Fatal(err)
	}
	return known != nil
}

func (f *folder) id(token auth.Token) string {
	f.t.Helper()
	known, err := f.s.TokenByDigest(f.t.Context(), token.Digest().String())
	if err != nil || known == nil {
		f.t.Fatal(known, err)
	}
	return known.ID.String()
}

func TestWhatAStartDoesWithTheTokenOfItsFolder(t *testing.T) {
	for name, test := range map[string]struct {
		between    func(f *folder, token auth.Token) error
		stays      bool // the token that the folder had
		oldIsAlive bool // it still counts, though the file holds another
		warns      string
	}{
		"nothing happened: it stays": {func(*folder, auth.Token) error { return nil }, true, true, ""},
		"the file is lost: another, and what was lost ends": {
			func(f *folder, _ auth.Token) error { return os.Remove(tokenfile.Path(f.dir)) }, false, false, ""},
		"it was revoked: another, and it stays revoked": {
			func(f *folder, token auth.Token) error {
				known, err := f.s.TokenByDigest(f.t.Context(), token.Digest().String())
				return errors.Join(err, f.s.RevokeToken(f.t.Context(), "", known.ID))
			}, false, false, "revoked, or not at all"},
		"others could read it: another, and it ends": {
			func(f *folder, _ auth.Token) error { return os.Chmod(tokenfile.Path(f.dir), 0o644) }, false, false, "mode 0644"},
		"the file was cut off: another, and it ends": {
			func(f *folder, _ auth.Token) error { return os.Truncate(tokenfile.Path(f.dir), 9) }, false, false, "holds no token"},
		"the file of another installation was put there: it opens nothing, and is replaced": {
			func(f *folder, _ auth.Token) error {
				stranger, err := auth.NewToken(bytes.NewReader(bytes.Repeat([]byte{7}, 32)))
				return errors.Join(err, tokenfile.Write(f.dir, stranger))
			}, false, false, "revoked, or not at all"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			first := f.keep()
			if strings.Contains(f.log.String(), "level=WARN") || !strings.Contains(f.log.String(), tokenfile.Path(f.dir)) {
				t.Errorf("the first start says %s", f.log.String())
			}
			if err := test.between(f, first); err != nil {
				t.Fatal(err)
			}
			f.log.Reset()
			second := f.keep()
			if stays := second.Digest() == first.Digest(); stays != test.stays {
				t.Errorf("it stays: %t", stays)
			}
			if alive := f.counts(first); alive != test.oldIsAlive {
				t.Errorf("the first token counts: %t", alive)
			}
			if said := f.log.String(); (test.warns == "") == strings.Contains(said, "level=WARN") || !strings.Contains(said, test.warns) {
				t.Errorf("the second start says %s", said)
			}
			if third := f.keep(); third.Digest() != second.Digest() {
				t.Error("the third start replaces it again")
			}
		})
	}
}

// The same folder serves another database, such as a restored backup, and then the first one again.
func TestAFolderWhoseDatabaseIsAnotherGetsATokenOfThatOne(t *testing.T) {
	f := newFolder(t)
	here := f.keep()
	first := f.s
	f.s = newFolder(t).s
	there := f.keep()
	if there.Digest() == here.Digest() {
		t.Error("a token counts in a database that never gave it")
	}
	f.s = first
	if back := f.keep(); f.counts(here) || f.counts(there) || !f.counts(back) {
		t.Error("back at the first database: its own token is not the only one that counts")
	}
}

func TestServersWithFoldersOfTheirOwnHaveTokensOfTheirOwn(t *testing.T) {
	f := newFolder(t)
	first := f.keep()
	f.dir = t.TempDir()
	second := f.keep()
	if first.Digest() == second.Digest() || !f.counts(first) {
		t.Error("a second server ends the token of the first")
	}
}

func TestARotationEndsTheTokenBeforeAndTheListNamesTheFolder(t *testing.T) {
	f := newFolder(t)
	first := f.keep()
	tokens := &Tokens{store: f.s, dir: f.dir}
	id, path, err := tokens.RotateLocal(t.Context())
	if err != nil || path != tokenfile.Path(f.dir) {
		t.Fatal(path, err)
	}
	second := f.keep()
	if f.counts(first) || second.Digest() == first.Digest() || f.id(second) != id.String() {
		t.Error("the token before counts, or the new one is another")
	}
	rows, err := tokens.List(t.Context())
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	for i, state := range []string{"live", "revoked"} {
		if r := rows[i]; r.State != state || !strings.HasPrefix(r.Name, "local token of ") || !strings.HasSuffix(r.Name, ":"+f.dir) || r.Scopes != "ADMIN,EXECUTE" {
			t.Errorf("row %d is %+v", i, r)
		}
	}
	if err := os.Remove(tokenfile.Path(f.dir)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tokens.RotateLocal(t.Context()); err != nil { // also the way out when the file is lost
		t.Error(err)
	}
	if f.keep(); f.counts(second) {
		t.Error("the lost token counts")
	}
}

func TestAFullDiskLeavesTheTokenThatTheFolderHas(t *testing.T) {
	f := newFolder(t)
	first := f.keep()
	if err := os.Rename(tokenfile.Path(f.dir), f.dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(tokenfile.Path(f.dir)+"/in the way", 0o700); err != nil {
		t.Fatal(err)
	}
	tokens := &Tokens{store: f.s, dir: f.dir}
	if _, _, err := tokens.RotateLocal(t.Context()); err == nil {
		t.Error("no error")
	}
	if rows, err := tokens.List(t.Context()); err != nil || len(rows) != 2 || rows[0].State != "revoked" || !f.counts(first) {
		t.Errorf("%+v, %v", rows, err)
	}
}
