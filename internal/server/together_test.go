package server

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store/migrations"
)

// runServer runs a server until stop is called; err is why it does not serve.
func runServer(t *testing.T, c config.Config) (stop func(), err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, done := &screen{ready: make(chan struct{})}, make(chan error, 1)
	go func() {
		done <- Run(ctx, t.Context(), Options{Config: c, Version: "test", Stdout: out, Log: quiet()})
	}()
	select {
	case <-out.ready:
	case err := <-done:
		cancel()
		return func() {}, err
	}
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}, nil
}

func key(digit string) secret.String { return secret.NewString(strings.Repeat(digit+"abc", 16)) }

func TestADataFolderBelongsToOneServerAlsoWithADatabaseElsewhere(t *testing.T) {
	_, address := pgtest.NewURL(t)
	c := settings(t, address)
	c.SecretKey = key("1")
	stop, err := runServer(t, c)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	second := c
	if _, err := runServer(t, second); err == nil {
		t.Error("two servers share a data folder")
	} else if inUse, ok := errors.AsType[*postgres.FolderInUseError](err); !ok || inUse.Dir != c.DataDir {
		t.Error(err)
	}
	second.DataDir = pgtest.Folder(t)
	beside, err := runServer(t, second)
	if err != nil {
		t.Fatalf("in a folder of its own: %v", err)
	}
	beside()
	db, err := OpenOrMakeDatabase(t.Context(), c, quiet())
	if err != nil {
		t.Fatalf("a command beside the server: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func TestTheSecretKeyIsNotReplacedUnderARunningServer(t *testing.T) {
	_, address := pgtest.NewURL(t)
	c := settings(t, address)
	c.SecretKey = key("1")
	stop, err := runServer(t, c)
	if err != nil {
		t.Fatal(err)
	}
	lost := settings(t, address)
	lost.SecretKey, lost.NewSecretKey = key("2"), true
	if _, err := runServer(t, lost); err == nil || !strings.Contains(err.Error(), "--new-secret-key is refused while other servers work with key") {
		t.Errorf("beside a server: %v", err)
	}
	stop()
	if stop, err = runServer(t, lost); err != nil {
		t.Fatalf("once it has ended: %v", err)
	}
	stop()
	if _, err := runServer(t, c); err == nil {
		t.Error("the lost key counts again")
	}
}

func TestACommandDoesNotChangeTheShapeOfADatabaseInUse(t *testing.T) {
	db, address := pgtest.NewURL(t)
	const newest = `FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`
	if _, err := db.ExecContext(t.Context(), `DELETE `+newest); err != nil {
		t.Fatal(err)
	}
	before, _, err := postgres.Pending(t.Context(), db, migrations.FS)
	if err != nil || before == 0 {
		t.Fatalf("%d, %v", before, err)
	}
	if _, err := OpenDatabase(t.Context(), settings(t, address), quiet()); err == nil || !strings.Contains(err.Error(), "run `rouse migrate`") {
		t.Errorf("got %v", err)
	}
	if after, _, err := postgres.Pending(t.Context(), db, migrations.FS); after != before || err != nil {
		t.Errorf("%d migrations are missing, then %d, %v", before, after, err)
	}
}

// emptyDatabase is a database without a table, and the way to it.
func emptyDatabase(t *testing.T) (empty *sql.DB, address string) {
	t.Helper()
	empty, _ = pgtest.Empty(t)
	_, address = pgtest.NewURL(t)
	var name string
	if err := empty.QueryRowContext(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return empty, u.String()
}

func TestTheFirstCommandMakesTheTablesOfAnEmptyDatabase(t *testing.T) {
	empty, address := emptyDatabase(t)
	db, err := OpenOrMakeDatabase(t.Context(), settings(t, address), quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if missing, _, err := postgres.Pending(t.Context(), empty, migrations.FS); missing != 0 || err != nil {
		t.Errorf("%d migrations are missing, %v", missing, err)
	}
}

func TestACommandThatOnlyReadsMakesNothingInAnEmptyDatabase(t *testing.T) {
	empty, address := emptyDatabase(t)
	if _, err := OpenDatabase(t.Context(), settings(t, address), quiet()); err == nil || !strings.Contains(err.Error(), "start `rouse serve` on it once") {
		t.Errorf("got %v", err)
	}
	var tables int
	if err := empty.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("%d tables, %v", tables, err)
	}
}
