package pgtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/xid"
)

// Querier is what both a transaction and the pool can do.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Collect reads all rows of a query; scan reads one.
func Collect[T any](ctx context.Context, q Querier, scan func(*sql.Rows) (T, error), query string, args ...any) (out []T, err error) {
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

// QueryOne reads the single value of a query's single row; sql.ErrNoRows when there is none.
func QueryOne[T any](ctx context.Context, q Querier, query string, args ...any) (T, error) {
	all, err := Collect(ctx, q, ScanOne[T], query, args...)
	if err != nil || len(all) == 0 {
		var zero T
		if err == nil {
			err = sql.ErrNoRows
		}
		return zero, err
	}
	return all[0], nil
}

// ScanOne reads a row of one column.
func ScanOne[T any](rows *sql.Rows) (v T, err error) { return v, rows.Scan(&v) }

// QueryRow reads one row into dst; sql.ErrNoRows when there is none.
func QueryRow(ctx context.Context, q Querier, dst []any, query string, args ...any) error {
	found, err := Collect(ctx, q, func(rows *sql.Rows) (struct{}, error) { return struct{}{}, rows.Scan(dst...) }, query, args...)
	if err == nil && len(found) == 0 {
		return sql.ErrNoRows
	}
	return err
}

// Exec runs a statement and returns the number of rows it changed.
func Exec(ctx context.Context, q Querier, query string, args ...any) (int64, error) {
	res, err := q.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// ExecOne runs a statement that must change exactly one row.
func ExecOne(ctx context.Context, q Querier, query string, args ...any) error {
	n, err := Exec(ctx, q, query, args...)
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("changed %d rows, want 1", n)
	}
	return nil
}

// Ptr is a pointer to v, for nullable columns.
func Ptr[T any](v T) *T { return &v }

// IDs is a list of ids as a text[] parameter.
func IDs(list []xid.ID) any {
	texts := make([]string, len(list))
	for i, id := range list {
		texts[i] = string(id)
	}
	return pq.Array(texts)
}

// TextArray is a list of strings as a text[] parameter.
func TextArray(list []string) any { return pq.Array(list) }

// OrZero is what a pointer points at, or the zero value.
func OrZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Nullable is a text parameter; the empty string is NULL.
func Nullable[T ~string](v T) any {
	if v == "" {
		return nil
	}
	return string(v)
}

// NullableTime is an instant parameter; the zero time is NULL.
func NullableTime(v time.Time) any {
	if v.IsZero() {
		return nil
	}
	return v
}

// EnumArray is a list of enum values as a text[] parameter.
func EnumArray[T ~string](list []T) any {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = string(v)
	}
	return pq.Array(texts)
}

// IntArray is a list of numbers as a bigint[] parameter.
func IntArray(list []int64) any { return pq.Array(list) }

// BoolArray is a list of truth values as a boolean[] parameter.
func BoolArray(list []bool) any { return pq.Array(list) }

// Btoi is 1 for true.
func Btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Keys are the ids of a map, in no order.
func Keys[T any](m map[xid.ID]T) []xid.ID {
	list := make([]xid.ID, 0, len(m))
	for id := range m {
		list = append(list, id)
	}
	return list
}
