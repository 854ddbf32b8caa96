package reads

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/liveness"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// livenessRead gathers one verdict's evidence.
type livenessRead struct {
	q           pgtx.Querier
	workspaceID xid.ID
	cut         liveness.Cutoffs
	out         Liveness
}

// activation captures the one instant and reads the activation's, and who holds the workspace.
func (r *livenessRead) activation(ctx context.Context) error {
	const query = `
SELECT clock_timestamp(), (SELECT value::timestamptz FROM instance_facts WHERE name = $1),
  (SELECT hold FROM workspaces WHERE id = $2)`
	var now time.Time
	var hold []byte
	if err := pgtx.QueryRow(ctx, r.q, []any{&now, &r.out.ActivatedAt, &hold}, query, guard.FactActivation, r.workspaceID); err != nil {
		return err
	}
	if hold != nil {
		if err := json.Unmarshal(hold, &r.out.Hold); err != nil {
			return err
		}
	}
	r.cut = liveness.CutoffsAt(now.UTC())
	r.out.EvaluatedAt = r.cut.Now
	return nil
}

// eligibleTrigger is an armed-ness test, not a due test.
const eligibleTrigger = `workspace_id = $1 AND kind = 'SCHEDULE' AND enabled AND deleted_at IS NULL`

// DeadTriggersQuery finds the schedules that are overdue or stranded, the one that was to fire first first. Slots that wait because
// a person holds the workspace, or held it until then, are not late.
const DeadTriggersQuery = `
SELECT id, next_run_at, last_fired_at, created_at, count(*) OVER () FROM routine_triggers
WHERE ` + eligibleTrigger + `
  AND (next_run_at < $2 AND NOT (
      SELECT hold ->> 'fires' IS NOT DISTINCT FROM 'HOLD' OR hold_ended_at IS NOT NULL AND hold_ended_at >= $2
      FROM workspaces
      WHERE id = $1) OR next_run_at IS NULL AND coalesce(last_fired_at, created_at) < $3)
ORDER BY coalesce(next_run_at, last_fired_at, created_at), id LIMIT $4`

func (r *livenessRead) triggers(ctx context.Context) error {
	rows, err := pgtx.Collect(ctx, r.q, func(rows *sql.Rows) (t DeadTrigger, err error) {
		facts := domain.TriggerFacts{Kind: domain.TriggerKindSchedule, Enabled: true}
		err = rows.Scan(&t.ID, &facts.NextRunAt, &facts.LastFiredAt, &facts.CreatedAt, &r.out.Triggers.Total)
		t.NextRunAt, t.Condition = facts.NextRunAt, facts.Condition(r.cut.Now)
		t.ClaimInstant, t.LateBy = liveness.ClaimInstant(facts), liveness.LateBy(facts, r.cut.Now)
		return t, err
	}, DeadTriggersQuery, r.workspaceID, r.cut.Overdue, r.cut.Stranded, liveness.Cap)
	r.out.Triggers.Rows = rows
	return err
}

func (r *livenessRead) eligible(ctx context.Context) (err error) {
	r.out.EligibleTriggers, err = pgtx.QueryOne[int](ctx, r.q, `SELECT count(*) FROM routine_triggers WHERE `+eligibleTrigger, r.workspaceID)
	return err
}

// stuckRunsQuery: $1 the workspace, $2 now, $3 the queued and $4 the claimed cutoff, $5 the cap. Queued runs are those that
// the next pass takes by the predicates of the claim (SPEC S3.9): the oldest due ones of each agent with a free session that
// has rested, and those whose parking is over and whose scope is free, as many as the workspace has places for. They are
// aged from the latest of when they were asked for, fell due, their agent had rested, and the agent or the workspace had
// room. What is claimed and has a lease that was renewed within the grace is alive.
const StuckRunsQuery = `
-- $1 workspace, $2 now, $3 before when what waits is stuck, $4 before when what was claimed is stuck, $5 most
-- rows
WITH workspace AS (
  SELECT CASE
      WHEN held_at IS NOT NULL THEN 0
      WHEN max_running IS NULL THEN NULL
      ELSE greatest(max_running - running, 0) END AS places,
    released_at
  FROM workspace_lanes
  WHERE workspace_id = $1),
agents AS (
  SELECT agent_id FROM agent_lanes WHERE workspace_id = $1 AND ` + guard.LaneDue + `
  UNION
  SELECT agent_id FROM agent_lanes WHERE workspace_id = $1 AND head_at IS NOT NULL AND status <> 'IDLE'
  UNION
  SELECT agent_id FROM runs WHERE status = 'QUEUED' AND parked_until <= $2 AND workspace_id = $1),
-- as many of each lane as it may start, and of all as many as the workspace may
claimable AS (
  SELECT r.id, r.requested_at,
    greatest(r.requested_at, r.due_at, l.eligible_at, l.released_at,
      (SELECT released_at FROM workspace)) AS since
  FROM agents a
  JOIN agent_lanes l ON l.agent_id = a.agent_id AND l.running < l.max_sessions AND l.eligible_at <= $2
  CROSS JOIN LATERAL (
    SELECT id, requested_at, due_at FROM (
      (SELECT id, requested_at, due_at FROM runs WHERE agent_id = l.agent_id AND ` + guard.Due + `
       ORDER BY requested_at, id LIMIT l.max_sessions - l.running)
      UNION ALL
      (
        SELECT id, requested_at, parked_until
        FROM runs p
        WHERE agent_id = l.agent_id AND status = 'QUEUED' AND parked_until IS NOT NULL AND parked_until <= $2
          AND NOT EXISTS (
            SELECT 1
            FROM runs o
            WHERE o.agent_id = p.agent_id AND o.scope = p.scope AND o.status = 'CLAIMED')
          AND NOT EXISTS (
            SELECT 1
            FROM runs o
            WHERE o.agent_id = p.agent_id AND o.scope = p.scope AND o.status = 'QUEUED' AND o.id <> p.id
              AND (o.parked_reason IS NULL
                OR o.parked_until <= $2 AND (o.requested_at, o.id) < (p.requested_at, p.id)))
       ORDER BY requested_at, id LIMIT l.max_sessions - l.running)) line
    ORDER BY requested_at, id LIMIT l.max_sessions - l.running) r
  ORDER BY r.requested_at, r.id LIMIT (SELECT places FROM workspace)),
stuck AS (
  SELECT id, since, since AS shown, 'QUEUED_STUCK' AS condition FROM claimable WHERE since < $3
  UNION ALL
  SELECT r.id, r.claimed_at, coalesce(r.claimed_at, r.requested_at), 'CLAIMED_STUCK'
  FROM runs r
  LEFT JOIN attempt_leases l ON l.run_id = r.id AND l.attempt = r.attempt
  WHERE r.workspace_id = $1
    AND r.status = 'CLAIMED'
    AND (r.claimed_at IS NULL OR r.claimed_at < $4)
    AND (l.lease_until IS NULL OR l.lease_until < $4))
SELECT id, condition, shown, count(*) OVER () FROM stuck ORDER BY since NULLS FIRST, id LIMIT $5`

func (r *livenessRead) stuckRuns(ctx context.Context) error {
	return r.runs(ctx, &r.out.StuckRuns, StuckRunsQuery, r.workspaceID, r.cut.Now, r.cut.Queued, r.cut.Claimed, liveness.Cap)
}

// countedMinutes: $2 is the beginning of the window, $3 the activation. The minutes of the window whose ended runs are
// counted are those from lo on and before hi. Both are in the infinite future when none are, or when runs were told
// apart by another activation.
const countedMinutes = `
counted AS (
  SELECT coalesce(max(lo), 'infinity') AS lo, coalesce(max(hi), 'infinity') AS hi
  FROM (
    SELECT greatest(since, date_trunc('minute', $2::timestamptz + interval '1 minute' - interval '1 microsecond', 'UTC')) AS lo,
      until AS hi
    FROM shape_tally_mark
    WHERE coalesce(activated, 'infinity') = $3) m
  WHERE lo < hi)`

// uncounted are the conditions of ended runs of the window before the counted minutes, and after them.
const (
	uncountedBefore = `finished_at >= $2 AND finished_at < (SELECT lo FROM counted)`
	uncountedAfter  = `finished_at >= (SELECT hi FROM counted)`
)

// silentRun is a run that ended well without a session. A run's end is the terminal instant; that a terminal run has
// one is a check of the table.
const silentRun = `workspace_id = $1 AND silent AND requested_at >= $3`

// SilentQuery gives the newest silent runs of the window. It counts all of them by the counts of their minutes.
const SilentQuery = `
WITH ` + countedMinutes + `,
silent AS MATERIALIZED (
  SELECT id, finished_at FROM runs
  WHERE ` + silentRun + `
    AND finished_at >= $2
  ORDER BY finished_at DESC, id DESC LIMIT $4),
total AS (
  SELECT count(*) AS n FROM runs
  WHERE ` + silentRun + `
    AND ` + uncountedBefore + `
  UNION ALL
  SELECT count(*) FROM runs
  WHERE ` + silentRun + `
    AND ` + uncountedAfter + `
  UNION ALL
  SELECT sum(n) FROM shape_tallies
  WHERE workspace_id = $1
    AND minute >= (SELECT lo FROM counted)
    AND minute < (SELECT hi FROM counted)
    AND status = 'FINISHED'
    AND outcome = 'processed'
    AND active
    AND NOT session)
SELECT id, 'SILENT_SUCCESS', finished_at, (SELECT sum(n)::bigint FROM total) FROM silent ORDER BY finished_at DESC, id DESC`

func (r *livenessRead) silentSuccesses(ctx context.Context) error {
	if r.out.ActivatedAt == nil { // all are older than the classification
		return nil
	}
	return r.runs(ctx, &r.out.SilentSuccesses, SilentQuery, r.workspaceID, r.cut.Window, *r.out.ActivatedAt, liveness.Cap)
}

func (r *livenessRead) runs(ctx context.Context, into *RunEvidence, query string, args ...any) (err error) {
	into.Rows, err = pgtx.Collect(ctx, r.q, func(rows *sql.Rows) (e EvidenceRun, err error) {
		return e, rows.Scan(&e.ID, &e.Condition, &e.Since, &into.Total)
	}, query, args...)
	return err
}

// ShapesQuery groups the window's terminal runs by what their shape is derived from; the shape itself is domain.ShapeOf's.
const ShapesQuery = `
WITH ` + countedMinutes + `
SELECT status, outcome, end_reason, session, active, sum(n)::bigint
FROM (
  SELECT status, outcome, end_reason, session, active, n FROM shape_tallies
  WHERE workspace_id = $1
    AND minute >= (SELECT lo FROM counted)
    AND minute < (SELECT hi FROM counted)
  UNION ALL
  SELECT ` + guard.ShapeColumns + `, requested_at >= $3, 1 FROM runs
  WHERE workspace_id = $1
    AND finished_at IS NOT NULL
    AND ` + uncountedBefore + `
  UNION ALL
  SELECT ` + guard.ShapeColumns + `, requested_at >= $3, 1 FROM runs
  WHERE workspace_id = $1
    AND finished_at IS NOT NULL
    AND ` + uncountedAfter + `) ended
GROUP BY 1, 2, 3, 4, 5`

func (r *livenessRead) shapes(ctx context.Context) error {
	var activated any = "infinity"
	if r.out.ActivatedAt != nil {
		activated = *r.out.ActivatedAt
	}
	groups, err := pgtx.Collect(ctx, r.q, func(rows *sql.Rows) (g liveness.ShapeGroup, err error) {
		var session, active bool
		g.Facts.ActivatedAt = r.out.ActivatedAt
		err = rows.Scan(&g.Facts.Status, &g.Facts.Outcome, &g.Facts.EndReason, &session, &active, &g.Count)
		if session {
			g.Facts.SessionID = "recorded"
		}
		if active {
			g.Facts.RequestedAt = *r.out.ActivatedAt
		}
		return g, err
	}, ShapesQuery, r.workspaceID, r.cut.Window, activated)
	r.out.Shapes = liveness.CountShapes(groups)
	return err
}
