package main

import (
	"database/sql"
	"testing"

	"github.com/lib/pq"
)

// queueWakes queues wakes for agents in turn, past the API: as many as a test of many would take minutes to ask for. Each has a
// scope of its own, so that none joins another.
func queueWakes(t testing.TB, db *sql.DB, workspace string, agents []string, n int) {
	t.Helper()
	const query = `
INSERT INTO wakeup_requests (id, workspace_id, agent_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status,
  recovered, resends, hops, retry_count)
SELECT 'wkp_' || lpad(n::text, 26, '0'), $1, ($2::text[])[1 + n % cardinality($2::text[])], 'cau_' || n, 'task:' || n, 'SELF', 'EVENT', false, 'many',
  '{"reason": "many"}', 'QUEUED', false, 0, 0, 0
FROM generate_series(1, $3::int) n`
	if _, err := db.ExecContext(t.Context(), query, workspace, pq.Array(agents), n); err != nil {
		t.Fatalf("queue %d wakes: %v", n, err)
	}
}

// countIn asks a database for a number.
func countIn(t testing.TB, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	return n
}
