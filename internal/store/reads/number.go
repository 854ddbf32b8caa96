package reads

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/store/pgtx"
)

// Numbers reads the one row of a statement, all of whose columns are whole numbers, by their names.
func (s *Reads) Numbers(ctx context.Context, query string, args []any) (map[string]int, error) {
	found, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (map[string]int, error) {
		names, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		numbers, into := make([]int, len(names)), make([]any, len(names))
		for i := range into {
			into[i] = &numbers[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out := make(map[string]int, len(names))
		for i, name := range names {
			out[name] = numbers[i]
		}
		return out, nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d rows of numbers, want one", len(found))
	}
	return found[0], nil
}
