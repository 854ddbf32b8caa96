package postgres

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A server that is there says something: it ends a statement by its statement_timeout, and answers a cancel at once. One
// that says nothing for longer is stopped, or behind a network that drops everything, which the kernel notices after a
// quarter of an hour, if ever.
const (
	silenceMargin  = 15 * time.Second // beyond the statement_timeout
	cancelPatience = 5 * time.Second  // after the end of the caller's context
)

// silenceLimit is how long a server whose statements are bounded may say nothing; 0 is for ever. timeout is a
// statement_timeout as PostgreSQL reads it. A timeout in units that Go does not know counts as no timeout.
func silenceLimit(timeout string) time.Duration {
	limit, err := time.ParseDuration(strings.Replace(timeout, "min", "m", 1))
	if ms, whole := strconv.ParseInt(timeout, 10, 32); whole == nil {
		limit, err = time.Duration(ms)*time.Millisecond, nil
	}
	if err != nil || limit <= 0 {
		return 0
	}
	return limit + silenceMargin
}

// wire is a connection to a server that is given up when the server says nothing for too long. Until it is open, the
// driver bounds it (connect_timeout).
type wire struct {
	net.Conn
	mu    sync.Mutex
	limit time.Duration // how long the server may be silent; 0 is for ever
	last  time.Time     // when it is given up at the latest; zero: the caller has not gone
}

// Read waits for the server's next word.
func (w *wire) Read(b []byte) (int, error) {
	if err := w.bound(w.SetReadDeadline); err != nil {
		return 0, err
	}
	n, err := w.Conn.Read(b)
	return n, w.given(err)
}

// Write waits until the kernel takes what is said, which it does not while the other end takes nothing.
func (w *wire) Write(b []byte) (int, error) {
	if err := w.bound(w.SetWriteDeadline); err != nil {
		return 0, err
	}
	n, err := w.Conn.Write(b)
	return n, w.given(err)
}

func (w *wire) bound(set func(time.Time) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch patience := time.Now().Add(w.limit); {
	case !w.last.IsZero() && (w.limit == 0 || w.last.Before(patience)):
		return set(w.last)
	case w.limit > 0:
		return set(patience)
	}
	return nil
}

// given closes a connection that was waited for in vain: what the server says later would be taken for another answer.
func (w *wire) given(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = w.Close()
	}
	return err
}

// open ends the driver's bound and begins our own.
func (w *wire) open(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = limit
}

// until bounds a call by its context: the driver asks the server to cancel when ctx ends, and then waits for its answer,
// however long. Calling the result ends the bound.
func (w *wire) until(ctx context.Context) (end func()) {
	ended := false
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !ended {
			w.last = time.Now().Add(cancelPatience)
			_ = w.SetDeadline(w.last)
		}
	})
	return func() {
		if stop() {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if ended = true; !w.last.IsZero() {
			w.last = time.Time{}
			_ = w.SetDeadline(w.last)
		}
	}
}

// wireDialer opens wires, and shows them to whoever asks for a connection.
type wireDialer struct{ net.Dialer }

// wireKey is the key of a **wire in the context of a dial, to be filled.
type wireKey struct{}

// DialContext opens a connection.
func (d *wireDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	plain, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: plain}
	if shown, ok := ctx.Value(wireKey{}).(**wire); ok {
		*shown = w
	}
	return w, nil
}

// DialTimeout is never called by the driver, which prefers DialContext.
func (d *wireDialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}
