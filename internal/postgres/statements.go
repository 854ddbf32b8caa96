package postgres

import (
	"context"
	"database/sql/driver"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// Bounds of what one connection keeps prepared. A statement is prepared the second time it comes, so that those whose
// text differs with every call (lists of ids) do not push out the ones that come again and again.
const (
	maxPrepared = 150
	maxSeen     = 600
)

// statements are what one connection has prepared: the server then parses and plans each text once instead of at every
// call, which costs more than most of them do. A connection serves one caller at a time, so there is no lock.
type statements struct {
	prepared map[string]*preparedStatement
	seen     map[string]struct{}
	clock    int // rises with each use, for the least recently used
}

type preparedStatement struct {
	fullStatement
	used int
}

// fullStatement is what the driver's statements can do.
type fullStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// find returns the prepared statement for a text, or nil when it is to be sent as it is.
func (s *statements) find(ctx context.Context, c fullConn, query string) (*preparedStatement, error) {
	s.clock++
	if p, ok := s.prepared[query]; ok {
		p.used = s.clock
		return p, nil
	}
	if _, again := s.seen[query]; !again {
		if s.seen == nil || len(s.seen) >= maxSeen {
			s.seen = make(map[string]struct{})
		}
		s.seen[query] = struct{}{}
		return nil, nil
	}
	return s.prepare(ctx, c, query)
}

func (s *statements) prepare(ctx context.Context, c fullConn, query string) (*preparedStatement, error) {
	if len(s.prepared) >= maxPrepared {
		if err := s.drop(s.oldest()); err != nil {
			return nil, err
		}
	}
	plain, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	full, ok := plain.(fullStatement)
	if !ok {
		return nil, plain.Close()
	}
	if s.prepared == nil {
		s.prepared = make(map[string]*preparedStatement)
	}
	p := &preparedStatement{full, s.clock}
	s.prepared[query] = p
	delete(s.seen, query)
	return p, nil
}

func (s *statements) oldest() (query string) {
	least := s.clock + 1
	for q, p := range s.prepared {
		if p.used < least {
			query, least = q, p.used
		}
	}
	return query
}

func (s *statements) drop(query string) error {
	p := s.prepared[query]
	delete(s.prepared, query)
	return p.Close()
}

// failed forgets a statement that the server does not want any more, e.g. since a migration changed its table. The
// server refuses everything until the transaction ends, so it is not closed: it goes with the connection.
func (s *statements) failed(query string, err error) {
	if pq.As(err, pqerror.FeatureNotSupported, pqerror.InvalidSQLStatementName) != nil {
		delete(s.prepared, query)
	}
}

// QueryContext runs a query, prepared when it came before.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	defer c.wire.until(ctx)()
	if len(args) == 0 {
		return c.fullConn.QueryContext(ctx, query, args)
	}
	p, err := c.statements.find(ctx, c.fullConn, query)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return c.fullConn.QueryContext(ctx, query, args)
	}
	rows, err := p.QueryContext(ctx, args)
	c.statements.failed(query, err)
	return rows, err
}

// ExecContext runs a statement, prepared when it came before.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	defer c.wire.until(ctx)()
	if len(args) == 0 {
		return c.fullConn.ExecContext(ctx, query, args)
	}
	p, err := c.statements.find(ctx, c.fullConn, query)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return c.fullConn.ExecContext(ctx, query, args)
	}
	result, err := p.ExecContext(ctx, args)
	c.statements.failed(query, err)
	return result, err
}
