package server

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/lib/pq"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
)

// sqlState is an error of PostgreSQL.
type sqlState string

func (s sqlState) Error() string    { return "pq: " + string(s) }
func (s sqlState) SQLState() string { return string(s) }

func TestWhatAnOutageIs(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want string // code; "" for a server error, or what the edge makes of it
	}{
		{"a broken connection", t.Context(), driver.ErrBadConn, edge.CodeUnavailable},
		{"a refused connection", t.Context(), &net.OpError{Op: "dial", Err: errors.New("refused")}, edge.CodeUnavailable},
		{"a name that is not found", t.Context(), &net.DNSError{Name: "db"}, edge.CodeUnavailable},
		{"a connection that ends in an answer", t.Context(), io.ErrUnexpectedEOF, edge.CodeUnavailable},
		{"a connection failure by its number", t.Context(), sqlState("08006"), edge.CodeUnavailable},
		{"a shutdown", t.Context(), sqlState("57P01"), edge.CodeUnavailable},
		{"a crash", t.Context(), sqlState("57P02"), edge.CodeUnavailable},
		{"a start", t.Context(), sqlState("57P03"), edge.CodeUnavailable},
		{"a full disk", t.Context(), sqlState("53100"), edge.CodeUnavailable},
		{"no memory", t.Context(), sqlState("53200"), edge.CodeUnavailable},
		{"too many connections", t.Context(), sqlState("53300"), edge.CodeUnavailable},
		{"a statement that was cancelled", t.Context(), sqlState("57014"), ""},
		{"a broken rule", t.Context(), sqlState("23505"), ""},
		{"a deadline", t.Context(), context.DeadlineExceeded, ""},
		{"a fault of ours", t.Context(), errors.New("no rows"), ""},
		{"a caller that went away", ended, driver.ErrBadConn, ""},
		{"an error that is the caller's", t.Context(), &graph.Error{Code: graph.CodeNotFound}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOutage(nil, quiet())
			code := ""
			if e := o.presentError(tt.ctx, fmt.Errorf("read agents: %w", tt.err)); e != nil {
				code = e.Code
			}
			if code != tt.want || o.away.Load() != (tt.want == edge.CodeUnavailable) {
				t.Errorf("code %q, away %t", code, o.away.Load())
			}
		})
	}
}

func TestADatabaseThatIsReallyAway(t *testing.T) {
	closed, err := sql.Open("postgres", "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	if err := closed.PingContext(t.Context()); !postgres.Away(err) {
		t.Errorf("nobody listens: %v", err)
	}
	db, _ := pgtest.NewURL(t)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var pid int
	if err := tx.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `SELECT pg_terminate_backend($1, 5000)`, pid); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `SELECT 1`); !postgres.Away(err) {
		t.Errorf("a connection that was ended: %v", err)
	}
	if _, err := db.ExecContext(t.Context(), `SELECT no_such_column`); postgres.Away(err) {
		t.Errorf("a fault in a statement: %v", err)
	}
}

func TestAnOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &screen{ready: make(chan struct{})}
		var back time.Time
		o := newOutage(func(context.Context) error {
			if time.Now().Before(back) {
				return driver.ErrBadConn
			}
			return nil
		}, slog.New(slog.NewTextHandler(log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); o.run(ctx) }()
		for round := range 2 {
			back = time.Now().Add(time.Minute)
			for range 50 {
				if e := o.presentError(ctx, driver.ErrBadConn); e != errUnavailable {
					t.Fatal(e)
				}
				time.Sleep(time.Second)
			}
			if text := log.String(); strings.Count(text, "\n") != 2*round+1 || strings.Count(text, "level=WARN") != round+1 {
				t.Errorf("during an outage: %s", text)
			}
			time.Sleep(15 * time.Second)
			synctest.Wait()
			if text := log.String(); strings.Count(text, "\n") != 2*round+2 || strings.Count(text, "answers again") != round+1 {
				t.Errorf("after an outage: %s", text)
			}
		}
		_ = o.presentError(ctx, driver.ErrBadConn)
		stop()
		<-done
	})
}

// A full disk is told once, and the process is not ready, until there is room to write again: reading works all the time.
func TestAFullDiskIsToldOnceAndNotReady(t *testing.T) {
	db, _ := pgtest.NewURL(t)
	log := &screen{ready: make(chan struct{})}
	d := &Database{DB: db}
	o := newOutage(d.tryToWrite, slog.New(slog.NewTextHandler(log, nil)))
	s := &Server{db: d, outage: o}
	change := func(query string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.tryToWrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	change(`CREATE FUNCTION no_room() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`)
	change(`CREATE EVENT TRIGGER full_disk ON ddl_command_start WHEN TAG IN ('CREATE TABLE AS') EXECUTE FUNCTION no_room()`)
	full := d.tryToWrite(t.Context())
	if !isFull(full) {
		t.Fatalf("%v", full)
	}
	for range 20 {
		if e := o.presentError(t.Context(), fmt.Errorf("create a task: %w", full)); e != errFull {
			t.Fatal(e)
		}
	}
	if err := s.ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("ready: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); o.run(ctx) }()
	change(`DROP EVENT TRIGGER full_disk`)
	for s.ready(t.Context()) != nil {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("it is never ready again")
		}
	}
	stop()
	<-done
	if text := log.String(); strings.Count(text, "no room left") != 1 || strings.Count(text, "answers again") != 1 {
		t.Errorf("told: %s", text)
	}
}
