package postgres

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/lib/pq"
)

// connector makes connections that send a statement and its parameters in one round trip (binary_parameters), and JSON
// as text: in that mode the driver would send bytes as bytea, which jsonb refuses. No column of ours is a bytea.
type connector struct{ *pq.Connector }

// Connect opens one connection.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	plain, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := plain.(fullConn)
	if !ok {
		return nil, fmt.Errorf("the database driver's %T lacks a part of database/sql's interfaces; it was changed by an update", plain)
	}
	return &conn{fullConn: full}, nil
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
	statements statements
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
