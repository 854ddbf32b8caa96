package store

import (
	"context"
	"time"
)

// Now is the instant by the database's clock, which decides what is due, late, expired or of which period: what is shown of
// such things is told by it, too.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	now, err := queryOne[time.Time](ctx, s.db, `SELECT clock_timestamp()`)
	return now.UTC(), wrap("read the database's clock", err)
}
