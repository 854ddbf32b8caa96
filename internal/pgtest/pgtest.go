// Package pgtest gives every test a PostgreSQL database of its own, cloned from a migrated template in some ten
// milliseconds. The server is the one ROUSE_TEST_DATABASE_URL names; else a throw-away cluster that all test programs
// of a `go test ./...` share; else, where no server is installed but Docker answers, a container. Without any of the
// three a test fails and says what to install: it is never skipped.
package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/migrations"
	"rouse.dev/rouse/internal/together"
)

// URLVariable names a server to use instead of an own one; its user must be allowed to create databases.
const URLVariable = "ROUSE_TEST_DATABASE_URL"

// Watcher is the function of the goroutine that waits for the shared server while a test program runs, to be passed to
// goleak.IgnoreAnyFunction.
const Watcher = "rouse.dev/rouse/internal/postgres.(*Cluster).watch"

// LeftWatcher is Watcher in the test programs that did not start the server themselves.
const LeftWatcher = "rouse.dev/rouse/internal/postgres.(*Cluster).watchLeft"

// startTimeout bounds the start of the server, the wait for another test program's start included.
const startTimeout = 90 * time.Second

// perProcessor is how many tests of a package run at a time for each processor: half of their time they wait for the server.
const perProcessor = 2

// maxTestConnections bounds one test's pool: test programs run side by side on one server.
const maxTestConnections = 10

// shared is the server of this test program, found at the first use.
var shared struct {
	sync.Mutex
	server *server
	err    error // of the first try: the tests after it fail at once
}

// New gives t a database with all migrations applied. It is closed and dropped when t is over.
func New(t testing.TB) *sql.DB {
	t.Helper()
	db, _ := NewURL(t)
	return db
}

// NewURL is New, and the database's URL for further connections. In a synctest bubble a database must be opened
// inside and its server be found outside: call NewURL before synctest.Test and postgres.Open within.
func NewURL(t testing.TB) (*sql.DB, string) {
	t.Helper()
	return open(t, func(ctx context.Context, s *server) (string, error) {
		template, err := s.template(ctx, migrations.FS)
		if err != nil {
			return "", err
		}
		return s.clone(ctx, template)
	})
}

// Empty gives t a database without migrations, and its URL.
func Empty(t testing.TB) (*sql.DB, string) {
	t.Helper()
	return open(t, func(ctx context.Context, s *server) (string, error) { return s.clone(ctx, "template0") })
}

func open(t testing.TB, create func(context.Context, *server) (string, error)) (*sql.DB, string) {
	t.Helper()
	s, err := find()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	name, err := create(ctx, s)
	if err != nil {
		t.Fatalf("make a test database: %v", err)
	}
	db, err := postgres.Open(ctx, s.url(name))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(maxTestConnections)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		s.discard(name)
	})
	return db, s.url(name)
}

// Main runs the tests of a package and then leaves the server; the last one out stops it and removes its folder. Use
// it in TestMain: func TestMain(m *testing.M) { pgtest.Main(m) }. A package without it leaves that to the next one.
//
// As many tests as the processors can serve run at a time, of those that call t.Parallel.
func Main(m *testing.M) {
	if err := together.Run(perProcessor * runtime.GOMAXPROCS(0)); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := Leave(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Leave is the end of Main, for a TestMain that has more to do. Databases still in use are lost.
func Leave() error {
	return errors.Join(leaveServer(), removeInstallation())
}

func leaveServer() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return nil
	}
	s := shared.server
	shared.server, shared.err = nil, errors.New("a database was asked for after pgtest.Leave")
	return s.leave()
}

// find gives the server of this test program, and starts it at the first call.
func find() (*server, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = connectServer()
	}
	return shared.server, shared.err
}

func connectServer() (*server, error) {
	if address := os.Getenv(URLVariable); address != "" {
		return named(address)
	}
	_, err := postgres.FindBinaries()
	if err == nil {
		return joinCluster(folderPath())
	}
	var none *postgres.NoBinariesError
	if !errors.As(err, &none) {
		return nil, err
	}
	s, docker := startContainer()
	if docker != nil {
		return nil, fmt.Errorf("storage tests need PostgreSQL, and there is none: install the server (Debian, Ubuntu: "+
			"apt-get install postgresql), or name a running one in %s, or start Docker (%w); %w", URLVariable, docker, err)
	}
	return s, nil
}
