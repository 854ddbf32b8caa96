package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/xid"
)

// querier is what both a transaction and the pool can do.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// collect reads all rows of a query; scan reads one.
func collect[T any](ctx context.Context, q querier, scan func(*sql.Rows) (T, error), query string, args ...any) (out []T, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// queryOne reads the single value of a query's single row; sql.ErrNoRows when there is none.
func queryOne[T any](ctx context.Context, q querier, query string, args ...any) (T, error) {
	all, err := collect(ctx, q, scanOne[T], query, args...)
	if err != nil || len(all) == 0 {
		var zero T
		if err == nil {
			err = sql.ErrNoRows
		}
		return zero, err
	}
	return all[0], nil
}

func scanOne[T any](rows *sql.Rows) (v T, err error) { return v, rows.Scan(&v) }

// queryRow reads one row into dst; sql.ErrNoRows when there is none.
func queryRow(ctx context.Context, q querier, dst []any, query string, args ...any) error {
	found, err := collect(ctx, q, func(rows *sql.Rows) (struct{}, error) { return struct{}{}, rows.Scan(dst...) }, query, args...)
	if err == nil && len(found) == 0 {
		return sql.ErrNoRows
	}
	return err
}

// exec runs a statement and returns the number of rows it changed.
func exec(ctx context.Context, q querier, query string, args ...any) (int64, error) {
	res, err := q.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// execOne runs a statement that must change exactly one row.
func execOne(ctx context.Context, q querier, query string, args ...any) error {
	n, err := exec(ctx, q, query, args...)
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("changed %d rows, want 1", n)
	}
	return nil
}

// savepoint runs f so that its failure undoes only its own statements, and what they would have caused after the commit.
// It returns f's error; the transaction goes on. One whose savepoint could not be ended is never committed, since nobody
// knows what of it is undone.
func (t *tx) savepoint(ctx context.Context, f func() error) error {
	if _, err := exec(ctx, t, `SAVEPOINT part`); err != nil {
		return fmt.Errorf("set savepoint: %w", err)
	}
	before := t.effects
	if err := f(); err != nil {
		t.effects = before
		if _, back := exec(ctx, t, `ROLLBACK TO SAVEPOINT part`); back != nil {
			t.spoiled = errors.Join(err, fmt.Errorf("roll back to savepoint: %w", back))
			return t.spoiled
		}
		return err
	}
	if _, err := exec(ctx, t, `RELEASE SAVEPOINT part`); err != nil {
		t.spoiled = fmt.Errorf("release savepoint: %w", err)
	}
	return t.spoiled
}

// isConnectionError says that nothing can be asked of the database.
func isConnectionError(err error) bool { return postgres.Away(err) }

// ptr is a pointer to v, for nullable columns.
func ptr[T any](v T) *T { return &v }

// ids is a list of ids as a text[] parameter.
func ids(list []xid.ID) any {
	texts := make([]string, len(list))
	for i, id := range list {
		texts[i] = string(id)
	}
	return pq.Array(texts)
}

// textArray is a list of strings as a text[] parameter.
func textArray(list []string) any { return pq.Array(list) }

// orZero is what a pointer points at, or the zero value.
func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// nullable is a text parameter; the empty string is NULL.
func nullable[T ~string](v T) any {
	if v == "" {
		return nil
	}
	return string(v)
}

// nullableTime is an instant parameter; the zero time is NULL.
func nullableTime(v time.Time) any {
	if v.IsZero() {
		return nil
	}
	return v
}

// enumArray is a list of enum values as a text[] parameter.
func enumArray[T ~string](list []T) any {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = string(v)
	}
	return pq.Array(texts)
}

// intArray is a list of numbers as a bigint[] parameter.
func intArray(list []int64) any { return pq.Array(list) }

// boolArray is a list of truth values as a boolean[] parameter.
func boolArray(list []bool) any { return pq.Array(list) }
