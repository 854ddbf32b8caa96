package postgres

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"
)

// relay is a way to a cluster that can fall silent: what is sent then arrives when it speaks again, and no connection
// breaks.
type relay struct {
	address string
	mu      sync.Mutex
	passing chan struct{} // closed while it passes on
}

func newRelay(t *testing.T, c *Cluster) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: l.Addr().String(), passing: make(chan struct{})}
	close(r.passing)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", filepath.Join(c.socket.path, ".s.PGSQL."+port))
			if err != nil {
				near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				all.Go(func() { r.pass(way[0], way[1]) })
			}
		}
	})
	t.Cleanup(func() { l.Close(); r.speak(); all.Wait() })
	return r
}

func (r *relay) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		<-r.way()
		if n > 0 {
			_, _ = to.Write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) way() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passing
}

func (r *relay) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passing = make(chan struct{})
}

func (r *relay) speak() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.passing:
	default:
		close(r.passing)
	}
}

// open is a pool of one connection through the relay.
func (r *relay) open(t *testing.T, silence time.Duration) *sql.DB {
	t.Helper()
	driver, err := pq.NewConnector("postgres://rouse@" + r.address + "/rouse?sslmode=disable&binary_parameters=yes&connect_timeout=60")
	if err != nil {
		t.Fatal(err)
	}
	driver.Dialer(&wireDialer{})
	db := sql.OpenDB(connector{driver, silence})
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

// select1 is a call whose text and parameter make it a prepared one the second time.
func select1(ctx context.Context, db *sql.DB) error {
	var got int
	return db.QueryRowContext(ctx, `SELECT $1::int`, 1).Scan(&got)
}

func TestAServerThatSaysNothingIsGivenUp(t *testing.T) {
	r := newRelay(t, start(t, filepath.Join(folder(t), "postgres")))
	for _, test := range []struct {
		name string
		call func(ctx context.Context, db *sql.DB, hush func()) error
	}{
		{"in a statement", func(ctx context.Context, db *sql.DB, hush func()) error {
			hush()
			return select1(ctx, db)
		}},
		{"at a begin", func(ctx context.Context, db *sql.DB, hush func()) error {
			hush()
			_, err := db.BeginTx(ctx, nil)
			return err
		}},
		{"at a commit", func(ctx context.Context, db *sql.DB, hush func()) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `SELECT 1`); err != nil {
				return err
			}
			hush()
			return tx.Commit()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := r.open(t, 300*time.Millisecond)
			for range 3 { // the last is prepared
				if err := select1(t.Context(), db); err != nil {
					t.Fatal(err)
				}
			}
			err := test.call(t.Context(), db, r.silence)
			var network net.Error
			if !errors.As(err, &network) || !network.Timeout() {
				t.Errorf("got %v, want a network's timeout", err)
			}
			r.speak()
			if err := select1(t.Context(), db); err != nil {
				t.Errorf("after it spoke again: %v", err)
			}
		})
	}
}

func TestACallEndsWithItsContextThoughTheServerSaysNothing(t *testing.T) {
	r := newRelay(t, start(t, filepath.Join(folder(t), "postgres")))
	db := r.open(t, 0)
	if err := select1(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	r.silence()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := select1(ctx, db); err == nil {
		t.Error("it was answered")
	}
	r.speak()
	if err := select1(t.Context(), db); err != nil {
		t.Errorf("after it spoke again: %v", err)
	}
}

// TestACancelledCallLeavesNoBoundBehind: neither one that the server ends, nor one that had ended before.
func TestACancelledCallLeavesNoBoundBehind(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	w := &wire{Conn: near}
	ctx, cancel := context.WithCancel(t.Context())
	end := w.until(ctx)
	cancel()
	for bound := false; !bound; {
		w.mu.Lock()
		bound = !w.last.IsZero()
		w.mu.Unlock()
	}
	end()
	if !w.last.IsZero() {
		t.Error("the bound of a call that ended stays")
	}
	ended, cancel := context.WithCancel(t.Context())
	w.until(ended)()
	cancel()
	go func() { _, _ = far.Write([]byte("x")) }()
	if _, err := io.ReadFull(w, make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

func TestHowLongAServerMaySayNothing(t *testing.T) {
	for timeout, want := range map[string]time.Duration{
		"": 0, "0": 0, "60000": 75 * time.Second, "60s": 75 * time.Second, "2min": 135 * time.Second, "500ms": 15500 * time.Millisecond, "1d": 0, "-1": 0,
	} {
		if got := silenceLimit(timeout); got != want {
			t.Errorf("with a statement_timeout of %q: %v, want %v", timeout, got, want)
		}
	}
}

func TestAWireThatWasGivenUpStaysClosed(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	w := &wire{Conn: near}
	w.open(time.Millisecond)
	if _, err := w.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("afterwards: %v", err)
	}
}
