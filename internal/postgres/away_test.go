package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// The one table of what an error of the database means: for the passes of the scheduler, the API, workers and the verdict.
func TestWhatAnErrorSaysOfTheDatabase(t *testing.T) {
	state := func(code string) error { return &pq.Error{Code: pqerror.Code(code)} }
	const no, busy, away = 0, 1, 2
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"no error", nil, no},
		{"a connection that the driver gave up", driver.ErrBadConn, away},
		{"a connection that was given back", sql.ErrConnDone, away},
		{"a connection that ended", io.EOF, away},
		{"a connection that ended in an answer", io.ErrUnexpectedEOF, away},
		{"a connection that was closed here", net.ErrClosed, away},
		{"a refused connection", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, away},
		{"a reset connection", syscall.ECONNRESET, away},
		{"a name that is not found", &net.DNSError{Name: "db"}, away},
		{"a server that says nothing", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, away},
		{"a failed connection, by its code", state("08006"), away},
		{"a standby", state("25006"), away},
		{"a full disk", state("53100"), away},
		{"too many connections", state("53300"), away},
		{"a shutdown", state("57P01"), away},
		{"a crash", state("57P02"), away},
		{"a start", state("57P03"), away},
		{"a session that was ended because it was idle", state("57P05"), away},
		{"a transaction in a wrong state", state("25P02"), busy},
		{"a deadlock", state("40P01"), busy},
		{"a lost serialization race", state("40001"), busy},
		{"too little memory for a statement", state("53200"), busy},
		{"a row that somebody holds", state("55P03"), busy},
		{"a statement that took too long", state("57014"), busy},
		{"a page that cannot be read", state("58030"), busy},
		{"a transaction that has ended", sql.ErrTxDone, busy},
		{"a deadline of ours", context.DeadlineExceeded, busy},
		{"a caller that went away", context.Canceled, no},
		{"no such row", sql.ErrNoRows, no},
		{"a broken rule", state("23505"), no},
		{"a fault in a statement", state("42703"), no},
		{"a fault of ours", errors.New("decode payload"), no},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.err
			if err != nil {
				err = errors.Join(errors.New("one"), fmt.Errorf("read agents: %w", err))
			}
			if isAway, mayPass := Away(err), MayPass(err); isAway != (tt.want == away) || mayPass != (tt.want >= busy) {
				t.Errorf("away %t, may pass %t", isAway, mayPass)
			}
		})
	}
}
