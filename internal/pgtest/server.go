package pgtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"rouse.dev/rouse/internal/postgres"
)

// server is where this test program makes its databases.
type server struct {
	url  func(database string) string
	stop func() error // ends or leaves the server itself

	mu      sync.Mutex
	built   map[string]bool // templates known to be ready
	garbage []string        // databases of tests that are over
	copying string          // the clause for the fastest way of cloning; "" before version 15
	asked   bool            // whether copying is known
}

var counter atomic.Int64

const (
	templatePrefix = "rouse_template_"
	testPrefix     = "rouse_test_"
	// templateLock is the advisory lock under which templates are built, so that test programs build each once.
	templateLock = 0x726f757365
	// abandonedAfter is the age at which a killed test program's databases on a named server are dropped.
	abandonedAfter = 24 * time.Hour
)

func newServer(at func(string) string, stop func() error) *server {
	return &server{url: at, stop: stop, built: map[string]bool{}}
}

// named uses the server at an address a person has given.
func named(address string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return nil, fmt.Errorf("%s is malformed: it must look like postgres://user:password@host:5432/postgres", URLVariable)
	}
	s := newServer(func(database string) string {
		other := *u
		other.Path = "/" + database
		return other.String()
	}, func() error { return nil })
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := s.dropAbandoned(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", URLVariable, err)
	}
	return s, nil
}

// leave drops what is left of this program's databases and leaves the server.
func (s *server) leave() error {
	return errors.Join(s.asAdmin(context.Background(), s.collect), s.stop())
}

// asAdmin runs f on a connection to the maintenance database. It is opened for each use: a pool kept open would be a
// goroutine that outlives the test it was opened in.
func (s *server) asAdmin(ctx context.Context, f func(context.Context, *sql.Conn) error) error {
	db, err := postgres.Open(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return f(ctx, conn)
}

// clone makes a new database from a template and gives its name.
func (s *server) clone(ctx context.Context, template string) (string, error) {
	name := fmt.Sprintf("%s%d_%d_%d", testPrefix, time.Now().Unix(), os.Getpid(), counter.Add(1))
	err := s.asAdmin(ctx, func(ctx context.Context, conn *sql.Conn) error {
		if err := s.collect(ctx, conn); err != nil {
			return err
		}
		copying, err := s.strategy(ctx, conn)
		if err != nil {
			return err
		}
		_, err = conn.ExecContext(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template+copying)
		return err
	})
	return name, err
}

// strategy is how a template is copied: as files where the server can, which is fastest for a small one.
func (s *server) strategy(ctx context.Context, conn *sql.Conn) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked {
		return s.copying, nil
	}
	var version string
	if err := conn.QueryRowContext(ctx, "SHOW server_version_num").Scan(&version); err != nil {
		return "", err
	}
	number, err := strconv.Atoi(version)
	if err != nil {
		return "", fmt.Errorf("server version: %w", err)
	}
	if s.asked = true; number >= 150000 {
		s.copying = " STRATEGY FILE_COPY"
	}
	return s.copying, nil
}

// discard notes that a database is no longer used. It is dropped with the next clone: at once, the server would first
// wait a tenth of a second for the connections just closed.
func (s *server) discard(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.garbage = append(s.garbage, name)
}

func (s *server) collect(ctx context.Context, conn *sql.Conn) error {
	s.mu.Lock()
	names := s.garbage
	s.garbage = nil
	s.mu.Unlock()
	for _, name := range names {
		if _, err := conn.ExecContext(ctx, "DROP DATABASE IF EXISTS "+pq.QuoteIdentifier(name)+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("drop the database of a test that is over: %w", err)
		}
	}
	return nil
}

// dropAbandoned drops databases of test programs that were killed, by the time in their names.
func (s *server) dropAbandoned(ctx context.Context) error {
	return s.asAdmin(ctx, func(ctx context.Context, conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx, "SELECT datname FROM pg_database WHERE starts_with(datname, $1)", testPrefix)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			if abandoned(name, time.Now()) {
				s.discard(name)
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return s.collect(ctx, conn)
	})
}

// abandoned tells from a test database's name whether it is too old to be in use.
func abandoned(name string, now time.Time) bool {
	made, _, ok := strings.Cut(strings.TrimPrefix(name, testPrefix), "_")
	seconds, err := strconv.ParseInt(made, 10, 64)
	return ok && err == nil && now.Sub(time.Unix(seconds, 0)) > abandonedAfter
}

// template gives the name of a database with the migrations applied, and builds it when it is the first to ask.
func (s *server) template(ctx context.Context, files fs.FS) (string, error) {
	key, err := hash(files)
	if err != nil {
		return "", err
	}
	name := templatePrefix + key
	s.mu.Lock()
	ready := s.built[name]
	s.mu.Unlock()
	if ready {
		return name, nil
	}
	if err := s.asAdmin(ctx, func(ctx context.Context, conn *sql.Conn) error { return s.build(ctx, conn, name, files) }); err != nil {
		return "", fmt.Errorf("build the template database: %w", err)
	}
	s.mu.Lock()
	s.built[name] = true
	s.mu.Unlock()
	return name, nil
}

func (s *server) build(ctx context.Context, conn *sql.Conn, name string, files fs.FS) error {
	// The lock belongs to the connection, which is closed after this.
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return err
	}
	var finished bool
	err := conn.QueryRowContext(ctx, "SELECT datistemplate FROM pg_database WHERE datname = $1", name).Scan(&finished)
	if err == nil && finished {
		return nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, err := conn.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil { // never finished
		return err
	}
	copying, err := s.strategy(ctx, conn)
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"+copying); err != nil {
		return err
	}
	if err := s.migrate(ctx, name, files); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true ALLOW_CONNECTIONS false")
	if pq.As(err, pqerror.InsufficientPrivilege) != nil {
		return fmt.Errorf("the user in %s must own its databases: %w", URLVariable, err)
	}
	return err
}

func (s *server) migrate(ctx context.Context, name string, files fs.FS) error {
	db, err := postgres.Open(ctx, s.url(name))
	if err != nil {
		return err
	}
	return errors.Join(postgres.Migrate(ctx, db, files, slog.New(slog.DiscardHandler)), db.Close())
}

// hash is a short name for the content of all migration files.
func hash(files fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		_, _ = fmt.Fprintf(sum, "%s\x00%d\x00%s", path, len(text), text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read migrations: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
