package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
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
	db := sql.OpenDB(countingConnector{connector, n})
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, n
}

type countingConnector struct {
	driver.Connector
	n *atomic.Int64
}

func (c countingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return countingConn{conn.(pqConn), c.n}, nil
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
	n *atomic.Int64
}

func (c countingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.n.Add(1)
	return c.pqConn.QueryContext(ctx, query, args)
}

func (c countingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.n.Add(1)
	return c.pqConn.ExecContext(ctx, query, args)
}
