package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/pgtest"
)

// countingDB is a database of its own whose statements are counted; BEGIN and COMMIT are none.
func countingDB(t *testing.T) (*sql.DB, *atomic.Int64) {
	t.Helper()
	_, url := pgtest.NewURL(t)
	connector, err := pq.NewConnector(url)
	if err != nil {
		t.Fatal(err)
	}
	n := &atomic.Int64{}
	return openCounting(t, countingConnector{connector, n, nil}), n
}

func openCounting(t *testing.T, c countingConnector) *sql.DB {
	t.Helper()
	db := sql.OpenDB(c)
	t.Cleanup(func() {
		if err := db.Close(); err != nil && !errors.Is(err, net.ErrClosed) { // whoever gave a query up has closed its connection
			t.Error(err)
		}
	})
	return db
}

// keepingDB is a database of its own whose statements are kept, while somebody asks for that.
func keepingDB(t *testing.T) (*sql.DB, *kept) {
	t.Helper()
	_, url := pgtest.NewURL(t)
	connector, err := pq.NewConnector(url)
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{}
	return openCounting(t, countingConnector{connector, &atomic.Int64{}, k}), k
}

// kept is statements with their arguments, in their order.
type kept struct {
	mu         sync.Mutex
	keeping    bool
	statements []statement
}

type statement struct {
	query string
	args  []any
}

// during is the statements of f.
func (k *kept) during(f func()) []statement {
	k.mu.Lock()
	k.keeping, k.statements = true, nil
	k.mu.Unlock()
	f()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keeping = false
	return k.statements
}

func (c countingConn) keep(query string, args []driver.NamedValue) {
	if c.kept == nil {
		return
	}
	c.kept.mu.Lock()
	defer c.kept.mu.Unlock()
	if !c.kept.keeping {
		return
	}
	s := statement{query: query}
	for _, a := range args {
		s.args = append(s.args, a.Value)
	}
	c.kept.statements = append(c.kept.statements, s)
}

type countingConnector struct {
	driver.Connector
	n    *atomic.Int64
	kept *kept
}

func (c countingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return countingConn{conn.(pqConn), c.n, c.kept}, nil
}

// pqConn is what database/sql uses of a connection of lib/pq.
type pqConn interface {
	driver.Conn
	driver.QueryerContext
	driver.ExecerContext
	driver.ConnBeginTx
}

type countingConn struct {
	pqConn
	n    *atomic.Int64
	kept *kept
}

func (c countingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.n.Add(1)
	c.keep(query, args)
	return c.pqConn.QueryContext(ctx, query, args)
}

func (c countingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.n.Add(1)
	c.keep(query, args)
	return c.pqConn.ExecContext(ctx, query, args)
}
