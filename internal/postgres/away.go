package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// awayStates are the errors of a server that cannot be asked, or that nobody can write to, by the beginning of their code.
// What one statement alone may meet, such as too little memory or a damaged page, is not among them: others would succeed.
var awayStates = []string{
	"08",    // the connection failed
	"25006", // it is read-only, as a standby is until it takes over
	"53100", // its disk is full
	"53300", // it has no connection left
	"57P0",  // it shuts down, crashed, starts, ended this session, or the database was dropped
}

// busyStates are the errors of a server that answers and may take the same statement later.
var busyStates = []string{
	"25", // the transaction is in a wrong state, as after a lost connection
	"40", // a deadlock, or a lost serialization race
	"53", // it lacks memory or another resource
	"55", // somebody holds a lock
	"57", // the statement was cancelled, as by its timeout
	"58", // its disk or its system failed
}

// Away says of an error that the database cannot be asked just now, so that nothing else would succeed either. The end of a
// context is not such an error, because it says nothing about the database.
func Away(err error) bool {
	if err == nil {
		return false
	}
	if state := State(err); state != "" {
		return hasPrefixOf(state, awayStates)
	}
	for _, broken := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, broken) {
			return true
		}
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return true
	}
	_, ok := errors.AsType[net.Error](err)
	return ok && !errors.Is(err, context.DeadlineExceeded) // which is one by its methods
}

// MayPass says of an error that the same statement may succeed later: the database is away or busy, or the statement had too
// little time.
func MayPass(err error) bool {
	return Away(err) || hasPrefixOf(State(err), busyStates) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, context.DeadlineExceeded)
}

// State is the SQLSTATE of an error that the server sent; "" for any other error.
func State(err error) string {
	sent, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if !ok || len(sent.SQLState()) != 5 {
		return ""
	}
	return sent.SQLState()
}

func hasPrefixOf(state string, beginnings []string) bool {
	for _, beginning := range beginnings {
		if strings.HasPrefix(state, beginning) {
			return true
		}
	}
	return false
}
