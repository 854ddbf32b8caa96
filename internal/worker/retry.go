package worker

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"time"
)

const (
	firstPause = 20 * time.Millisecond
	longPause  = time.Second
	// tryLimit bounds one try of a write.
	tryLimit = 15 * time.Second
)

// awayClasses are the SQLSTATE classes of a database that is away, busy or restarting: the same write may pass later.
var awayClasses = []string{
	"08", // connection
	"25", // e.g. read-only during a failover
	"40", // deadlock, serialization
	"53", // out of resources
	"55", // lock not available
	"57", // shutdown, restart, statement timeout
	"58", // its disk or system
}

// away reports whether err means that the database cannot be asked just now.
func away(err error) bool {
	if state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		code := state.SQLState()
		return len(code) == 5 && slices.Contains(awayClasses, code[:2])
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed)
}

// persist repeats a write while the database is away, until ctx ends. It returns the last error.
func persist(ctx context.Context, write func(context.Context) error) error {
	for wait := firstPause; ; wait = min(2*wait, longPause) {
		err := func() error {
			try, cancel := context.WithTimeout(ctx, tryLimit)
			defer cancel()
			return write(try)
		}()
		if err == nil || !away(err) || ctx.Err() != nil {
			return err
		}
		pause(ctx, wait)
	}
}

// pause waits for d, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
