package modeltest

import (
	"context"
	"fmt"
	"strings"

	"rouse.dev/rouse/internal/xid"
)

// stateQuery renders the workspace's rows as the model renders its own; numbers count in the order of making, which is
// the order of the ids of one process.
const stateQuery = `
WITH a AS (SELECT *, row_number() OVER (ORDER BY agent_id) AS n FROM agent_lanes WHERE workspace_id = $1),
f AS (SELECT *, row_number() OVER (ORDER BY id) AS n FROM routine_runs WHERE workspace_id = $1),
q AS (SELECT *, row_number() OVER (ORDER BY id) AS n FROM wakeup_requests WHERE workspace_id = $1),
r AS (SELECT *, row_number() OVER (ORDER BY id) AS n FROM runs WHERE workspace_id = $1)
SELECT 1, n, id, format('fire %s %s completed=%s reason=%s', n, status, (completed_at IS NOT NULL)::text, skip_reason) FROM f
UNION ALL
SELECT 2, n, agent_id, format('lane %s running=%s head=%s cooling=%s', n, running, coalesce((SELECT n FROM r WHERE id = head_id), CASE WHEN head_id IS NULL THEN 0 ELSE -1 END),
  (eligible_at > clock_timestamp())::text) FROM a
UNION ALL
SELECT 3, n, id, format('request %s %s run=%s delivered=%s ended=%s reason=%s resends=%s retries=%s', n, status,
  coalesce((SELECT n FROM r WHERE id = run_id), 0), (delivered_at IS NOT NULL)::text, (finished_at IS NOT NULL)::text, end_reason, resends, retry_count) FROM q
UNION ALL
SELECT 4, n, id, format('run %s %s %s parked=%s %s attempt=%s started=%s lost=%s retries=%s merged=%s cancel=%s outcome=%s reason=%s', n, status, wake_class,
  parked_reason, CASE WHEN parked_until IS NULL THEN 'none' WHEN parked_until <= clock_timestamp() THEN 'over' ELSE 'later' END, attempt,
  (started_at IS NOT NULL)::text, abandonments, retry_count, coalesced_count, (cancel_requested_at IS NOT NULL)::text, outcome, end_reason) FROM r
UNION ALL
SELECT 5, 1, workspace_id, format('workspace running=%s', running) FROM workspace_lanes WHERE workspace_id = $1
ORDER BY 1, 2`

const kindRun = 4

// state reads the workspace's rows, a line for each, and the ids of its runs in the order of their numbers.
func (w *place) state(ctx context.Context) (lines []string, runs []xid.ID, err error) {
	rows, err := w.readState.QueryContext(ctx, w.workspace)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, n int
		var id xid.ID
		var line string
		if err := rows.Scan(&kind, &n, &id, &line); err != nil {
			return nil, nil, err
		}
		lines = append(lines, line)
		if kind == kindRun {
			runs = append(runs, id)
		}
	}
	return lines, runs, rows.Err()
}

// difference is what two states do not share; "" when they are the same.
func difference(want, got []string) string {
	var out strings.Builder
	missing := map[string]int{}
	for _, line := range want {
		missing[line]++
	}
	for _, line := range got {
		if missing[line] > 0 {
			missing[line]--
			continue
		}
		fmt.Fprintf(&out, "\n  program: %s", line)
	}
	for _, line := range want {
		if missing[line] > 0 {
			missing[line]--
			fmt.Fprintf(&out, "\n  model:   %s", line)
		}
	}
	return out.String()
}

// laws are what holds of a workspace whenever nobody is in the middle of a transition: each counts its breaches.
var laws = map[string]string{
	"a lane's head is its oldest due run": `
SELECT count(*) FROM agent_lanes l WHERE workspace_id = $1 AND head_id IS DISTINCT FROM (SELECT id FROM runs WHERE agent_id = l.agent_id
  AND status = 'QUEUED' AND parked_reason IS NULL ORDER BY requested_at, id LIMIT 1)`,
	"a lane's running is its live runs": `
SELECT count(*) FROM agent_lanes l WHERE workspace_id = $1 AND running <> (SELECT count(*) FROM runs WHERE agent_id = l.agent_id AND status = 'CLAIMED')`,
	"a workspace's running is its live runs": `
SELECT count(*) FROM workspace_lanes l WHERE workspace_id = $1 AND running <> (SELECT count(*) FROM runs WHERE workspace_id = $1 AND status = 'CLAIMED')`,
	"a live run has a lease, and a lease a live run": `
SELECT count(*) FROM (SELECT * FROM runs WHERE workspace_id = $1 AND status = 'CLAIMED') r
FULL JOIN (SELECT * FROM attempt_leases WHERE workspace_id = $1) l ON l.run_id = r.id AND l.attempt = r.attempt WHERE r.id IS NULL OR l.run_id IS NULL`,
	"an attempt without an end is that of a live run": `
SELECT count(*) FROM run_attempts a JOIN runs r ON r.id = a.run_id WHERE a.workspace_id = $1 AND (a.finished_at IS NULL) <> (r.status = 'CLAIMED' AND r.attempt = a.number)`,
	"a scope has one run at most that is live or due": `
SELECT count(*) FROM (SELECT 1 FROM runs WHERE workspace_id = $1 AND (status = 'CLAIMED' OR status = 'QUEUED' AND parked_reason IS NULL)
  GROUP BY agent_id, scope HAVING count(*) > 1) x`,
	"a scope has one queued run at most that was never attempted": `
SELECT count(*) FROM (SELECT 1 FROM runs WHERE workspace_id = $1 AND status = 'QUEUED' AND attempt = 0 GROUP BY agent_id, scope HAVING count(*) > 1) x`,
	"a run waits only for a scope that is taken": `
SELECT count(*) FROM runs b WHERE workspace_id = $1 AND status = 'QUEUED' AND parked_reason = 'SCOPE_BUSY' AND NOT EXISTS (SELECT 1 FROM runs o
  WHERE o.agent_id = b.agent_id AND o.scope = b.scope AND (o.status = 'CLAIMED' OR o.status = 'QUEUED' AND o.parked_reason IS NULL))`,
	"an ended run has no open request": `
SELECT count(*) FROM wakeup_requests q JOIN runs r ON r.id = q.run_id WHERE q.workspace_id = $1 AND r.finished_at IS NOT NULL AND q.finished_at IS NULL`,
	"a run counts the requests it has or had": `
SELECT count(*) FROM runs r WHERE workspace_id = $1 AND coalesced_count < (SELECT count(*) FROM wakeup_requests WHERE run_id = r.id)`,
	"a run's events have no gap": `
SELECT count(*) FROM runs r WHERE workspace_id = $1 AND event_seq <> (SELECT count(*) FROM run_events e WHERE e.run_id = r.id)`,
	"an event raised the class of the run that it was delivered by": `
SELECT count(*) FROM wakeup_requests q JOIN runs r ON r.id = q.run_id WHERE q.workspace_id = $1 AND q.wake_class = 'EVENT' AND r.wake_class <> 'EVENT'`,
	"a request with a receipt is in a prompt": `
SELECT count(*) FROM wakeup_requests q LEFT JOIN run_contents c ON c.run_id = q.run_id
WHERE q.workspace_id = $1 AND q.delivered_at IS NOT NULL AND NOT coalesce(c.context_snapshot->'wakeupRequests' @> jsonb_build_array(jsonb_build_object('id', q.id)), false)`,
	"a row of a run has its run, agent and workspace": `
SELECT count(*) FROM (
  SELECT run_id, workspace_id, NULL AS agent_id FROM run_events UNION ALL SELECT run_id, workspace_id, NULL FROM run_attempts
  UNION ALL SELECT run_id, workspace_id, NULL FROM run_contents UNION ALL SELECT run_id, workspace_id, NULL FROM run_log_lines
  UNION ALL SELECT run_id, workspace_id, agent_id FROM attempt_leases UNION ALL SELECT run_id, workspace_id, agent_id FROM wakeup_requests
  UNION ALL SELECT id, workspace_id, agent_id FROM runs UNION ALL SELECT NULL, workspace_id, agent_id FROM agent_lanes) x
WHERE x.workspace_id = $1 AND (x.run_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = x.run_id AND r.workspace_id = $1)
  OR x.agent_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.id = x.agent_id AND a.workspace_id = $1))`,
	"no guard failed": `SELECT count(*) FROM runs WHERE workspace_id = $1 AND guard_errors > 0`,
}

// ends hold when all has been done: what was accepted was delivered, or ended with a reason, or was the same heartbeat
// as the one that it was absorbed by.
var ends = map[string]string{
	"every request ended": `SELECT count(*) FROM wakeup_requests WHERE workspace_id = $1 AND finished_at IS NULL`,
	"every run ended":     `SELECT count(*) FROM runs WHERE workspace_id = $1 AND finished_at IS NULL`,
	"every fire ended":    `SELECT count(*) FROM routine_runs WHERE workspace_id = $1 AND completed_at IS NULL`,
	"every request was delivered, or ended with a reason": `
SELECT count(*) FROM wakeup_requests q LEFT JOIN runs r ON r.id = q.run_id WHERE q.workspace_id = $1 AND q.delivered_at IS NULL AND q.end_reason IS NULL
  AND NOT (q.status = 'COALESCED' AND q.wake_class = 'PERIODIC' AND q.routine_id = r.routine_id AND q.fingerprint = r.fingerprint)`,
}

// breaches names the laws that do not hold.
func (w *place) breaches(ctx context.Context, laws map[string]string) (broken []string, err error) {
	for name, query := range laws {
		var n int
		if err := w.db.QueryRowContext(ctx, query, w.workspace).Scan(&n); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if n > 0 {
			broken = append(broken, fmt.Sprintf("not so, %d times: %s", n, name))
		}
	}
	return broken, nil
}
