package store

import (
	"strings"
	"testing"
)

// A transaction that has written something holds the feed back, though it holds no snapshot; one that only reads does not.
func TestWhoHoldsTheFeedBackIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begin := func(statement string) (pid int, end func() error) {
		t.Helper()
		tx, err := w.db.BeginTx(t.Context(), nil)
		w.ok(err)
		t.Cleanup(func() { _ = tx.Rollback() }) // it may have ended
		w.ok(tx.QueryRowContext(t.Context(), statement).Scan(&pid))
		return pid, tx.Rollback
	}
	reader, _ := begin(`SELECT pg_backend_pid() FROM agents UNION ALL SELECT pg_backend_pid() LIMIT 1`)
	if h, err := w.FeedHolder(t.Context()); err != nil || h.PID == reader {
		t.Errorf("with a reader: %+v, %v", h, err)
	}
	writer, end := begin(`SELECT pg_backend_pid() WHERE pg_current_xact_id() IS NOT NULL AND set_config('application_name', 'a forgotten psql', true) <> ''`)
	h, err := w.FeedHolder(t.Context())
	w.ok(err)
	type holder struct {
		pid                int
		application, state string
	}
	if got, want := (holder{h.PID, h.Application, h.State}), (holder{writer, "a forgotten psql", "idle in transaction"}); got != want {
		t.Errorf("with a writer: %+v, want %+v", got, want)
	}
	if h.Age <= 0 || !strings.Contains(h.String(), h.Application) {
		t.Errorf("it has held the feed for %s, and is shown as %q", h.Age, h)
	}
	w.ok(end())
	if h, err := w.FeedHolder(t.Context()); err != nil || h.PID == writer {
		t.Errorf("after its end: %+v, %v", h, err)
	}
}
