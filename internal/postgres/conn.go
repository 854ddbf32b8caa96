package postgres

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lib/pq"
)

// connector makes connections that send a statement and its parameters in one round trip (binary_parameters). They send
// JSON as text, because in that mode the driver would send bytes as bytea, which jsonb refuses. No column of ours is a
// bytea.
type connector struct {
	*pq.Connector
	silence time.Duration // how long the server may say nothing; 0 is for ever
}

// Connect opens one connection.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	var w *wire
	plain, err := c.Connector.Connect(context.WithValue(ctx, wireKey{}, &w))
	if err != nil {
		return nil, err
	}
	full, ok := plain.(fullConn)
	if !ok {
		return nil, fmt.Errorf("the database driver's %T lacks a part of database/sql's interfaces; it was changed by an update", plain)
	}
	w.open(c.silence)
	return &conn{fullConn: full, wire: w}, nil
}

// fullConn is all that the driver's connections can do.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.QueryerContext
	driver.ExecerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	driver.NamedValueChecker
}

type conn struct {
	fullConn
	wire       *wire
	statements statements
}

// BeginTx begins a transaction.
func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	defer c.wire.until(ctx)()
	return c.fullConn.BeginTx(ctx, options)
}

// PrepareContext prepares a statement.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer c.wire.until(ctx)()
	return c.fullConn.PrepareContext(ctx, query)
}

// Ping asks the server for an answer.
func (c *conn) Ping(ctx context.Context) error {
	defer c.wire.until(ctx)()
	return c.fullConn.Ping(ctx)
}

// CheckNamedValue turns JSON into text.
func (c *conn) CheckNamedValue(value *driver.NamedValue) error {
	switch v := value.Value.(type) {
	case json.RawMessage:
		value.Value = textOf(v)
	case []byte:
		value.Value = textOf(v)
	default:
		return c.fullConn.CheckNamedValue(value)
	}
	return nil
}

// textOf keeps the difference between nothing (NULL) and an empty text.
func textOf(b []byte) driver.Value {
	if b == nil {
		return nil
	}
	return string(b)
}
