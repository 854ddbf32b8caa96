package reads

import (
	"context"
	"database/sql"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/liveness"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// GateEvidence is fires that others wait for without work on its way, the longest waited for first, then by id.
type GateEvidence struct {
	Rows  []GateFire
	Total int
}

// GateFire is one of them. TaskID is "" of a lightweight fire, RunID "" where no run is left. Fires counts the fires that were
// merged into it or skipped for it since its work stopped, at most maxGateFires; Since is the first of them.
type GateFire struct {
	ID, TaskID, RunID xid.ID
	Condition         domain.LoopGateCondition
	Fires             int
	Since             time.Time
}

// maxGateFires bounds how many fires that wait for one are counted.
const maxGateFires = 10_000

// gatesQuery: $1 the workspace, $2 the cutoff, $3 the cap, $4 the bound of the count. Open fires that hold others back
// and of which no run is live or due: their run is parked for long, or their task is open and has none. Fires count
// from the instant at which the work stopped: the end of the last run or attempt, or when the run was asked for. Fires
// that wait for their agent's resume do not count, because somebody paused the agent, and the agent shows it.
var gatesQuery = `
WITH fire AS (
  SELECT f.id, f.task_id, f.started_at FROM routine_runs f
  WHERE f.workspace_id = $1
    AND f.completed_at IS NULL
    AND EXISTS (SELECT 1 FROM routine_runs h WHERE h.held_by_id = f.id)),
-- a lightweight fire waits with its run, a heavy one with its task
work AS (
  SELECT fire.id, fire.task_id, fire.started_at, r.id AS run_id, r.requested_at FROM fire
  JOIN wakeup_requests q ON q.routine_run_id = fire.id JOIN runs r ON r.id = q.run_id
  WHERE fire.task_id IS NULL AND r.status = 'QUEUED' AND r.` + guard.LongParked + `
  UNION ALL
  SELECT fire.id, fire.task_id, fire.started_at, r.id, r.requested_at
  FROM fire
  JOIN tasks k ON k.id = fire.task_id
  LEFT JOIN LATERAL (
    SELECT o.id, o.requested_at, o.status = 'QUEUED' AND coalesce(o.` + guard.LongParked + `, false) AS parked
    FROM runs o
    WHERE o.task_id = k.id AND o.status IN ('QUEUED', 'CLAIMED') ORDER BY 3 LIMIT 1) r ON true
  WHERE ` + guard.TaskOpen("k") + ` AND (r.id IS NULL OR r.parked) AND NOT ` + guard.AwaitsRun + `),
gate AS (
  SELECT work.*, greatest(started_at, requested_at, CASE
    WHEN run_id IS NULL THEN (SELECT max(finished_at) FROM runs WHERE task_id = work.task_id)
    ELSE (SELECT max(finished_at) FROM run_attempts WHERE run_attempts.run_id = work.run_id) END) AS stopped
  FROM work)
SELECT gate.id, gate.task_id, gate.run_id, held.n, held.since, count(*) OVER () FROM gate
CROSS JOIN LATERAL (
  SELECT count(*) AS n, min(started_at) AS since FROM (
    SELECT started_at
    FROM routine_runs
    WHERE held_by_id = gate.id AND started_at >= gate.stopped
    ORDER BY started_at
    LIMIT $4) few) held
WHERE held.since < $2 ORDER BY held.since, gate.id LIMIT $3`

func (r *livenessRead) gates(ctx context.Context) (err error) {
	r.out.Gates.Rows, err = pgtx.Collect(ctx, r.q, func(rows *sql.Rows) (g GateFire, err error) {
		err = rows.Scan(&g.ID, &g.TaskID, &g.RunID, &g.Fires, &g.Since, &r.out.Gates.Total)
		g.Condition = liveness.GateCondition(g.RunID != "")
		return g, err
	}, gatesQuery, r.workspaceID, r.cut.Stranded, liveness.Cap, maxGateFires)
	return err
}
