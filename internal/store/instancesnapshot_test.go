package store

import (
	"database/sql"
	"strings"
	"testing"
)

func TestTheOldestSnapshotIsSeenWithItsHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tx, err := w.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // it wrote nothing
	var pid string
	if err := tx.QueryRowContext(t.Context(), `SELECT pg_backend_pid()::text`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.ExecContext(t.Context(), `SELECT pg_current_xact_id()`); err != nil { // one that began since
		t.Fatal(err)
	}
	held, err := w.OldestSnapshot(t.Context())
	if err != nil || held.Age <= 0 || held.Transactions < 1 || !strings.Contains(held.Holder, "process "+pid+" of account ") {
		t.Errorf("%+v, %v", held, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if freed, err := w.OldestSnapshot(t.Context()); err != nil || strings.Contains(freed.Holder, "process "+pid+" of account ") {
		t.Errorf("%+v, %v", freed, err)
	}
}
