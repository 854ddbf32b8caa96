// Package pgprofile tells benchmarks where the time of a PostgreSQL server goes, by statement.
package pgprofile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Wanted says whether ROUSE_BENCH_PROFILE asks benchmarks for a profile. It costs the server some of its time, so that the
// figures of such a run are no figures.
func Wanted() bool { return os.Getenv("ROUSE_BENCH_PROFILE") != "" }

// Preload lets a server count its statements from its next start on. data is its data folder.
func Preload(data string) (err error) {
	file, err := os.OpenFile(filepath.Join(data, "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("let PostgreSQL count its statements: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = fmt.Fprintln(file, "shared_preload_libraries = 'pg_stat_statements'")
	return err
}

// Begin forgets what was counted. The server counts since its start, after Preload.
func Begin(ctx context.Context, db *sql.DB) error {
	for _, query := range []string{`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`, `SELECT pg_stat_statements_reset()`} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("count statements anew: %w", err)
		}
	}
	return nil
}

const topQuery = `
SELECT calls, rows, total_exec_time * 1000, left(regexp_replace(query, '\s+', ' ', 'g'), 150)
FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY total_exec_time DESC`

// Top is a table of the most statements that took the server longest since Begin, with a line for all of them. Its figures are
// for each of n things that were done.
func Top(ctx context.Context, db *sql.DB, n float64, most int) (table string, err error) {
	rows, err := db.QueryContext(ctx, topQuery)
	if err != nil {
		return "", fmt.Errorf("read what statements took: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var b strings.Builder
	fmt.Fprintln(&b, "   calls    rows       µs  µs a call  statement")
	var allCalls, allRows, allMicros float64
	for i := 0; rows.Next(); i++ {
		var calls, touched, micros float64
		var query string
		if err := rows.Scan(&calls, &touched, &micros, &query); err != nil {
			return "", fmt.Errorf("read what statements took: %w", err)
		}
		allCalls, allRows, allMicros = allCalls+calls, allRows+touched, allMicros+micros
		if i < most {
			fmt.Fprintf(&b, "%8.2f%8.2f%9.1f%11.1f  %s\n", calls/n, touched/n, micros/n, micros/calls, query)
		}
	}
	fmt.Fprintf(&b, "%8.2f%8.2f%9.1f             all statements\n", allCalls/n, allRows/n, allMicros/n)
	return b.String(), rows.Err()
}
