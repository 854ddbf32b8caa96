package reads

import (
	"context"
	"database/sql"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of a routine's health: what it reads does not grow with its history.
const (
	HealthFires  = 100  // newest fires that are looked at for a row of failures or of skips
	HealthHeld   = 1000 // fires that wait for one and are counted
	healthDone   = 50   // newest fires that ended well, for the duration
	HealthCosted = 1000 // newest fires whose costs are added up
	HealthPeriod = 30 * 24 * time.Hour
)

// RoutineHealth is how a routine's fires fare. Failures are those since the last fire that ended well. Skips are the newest fires
// in a row that were dropped. Held is the fire that others wait for or are merged into; its ID is "" when there is none.
type RoutineHealth struct {
	LastSuccessAt   *time.Time
	Failures, Skips int
	SkipReason      *domain.EndReason
	Held            HeldFires
	P50             *time.Duration
}

// HeldFires are the fires that wait for one. RunID is "" where nothing of that fire is on its way.
type HeldFires struct {
	ID, RunID xid.ID
	Since     time.Time
	Fires     int
}

// RoutineHealthQuery reads the health of routines $1. Each part of it ends at its bound, in an index: $2 fires in a row, $3 held
// ones, $4 ended ones for the duration.
const RoutineHealthQuery = `
SELECT r.id, ok.at, failed.n, coalesce(skip.n, 0), skip.reason, coalesce(gate.id, ''), coalesce(work.id, ''), held.since,
  coalesce(held.n, 0), spent.p50
FROM unnest($1::text[]) AS r (id)
LEFT JOIN LATERAL (
  SELECT f.id, f.started_at, f.completed_at AS at FROM routine_runs f
  WHERE f.routine_id = r.id AND f.status = 'DONE' ORDER BY f.started_at DESC, f.id DESC LIMIT 1) ok ON true
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (
    SELECT 1 FROM routine_runs f
    WHERE f.routine_id = r.id AND f.status = 'FAILED'
      AND (f.started_at, f.id) > (coalesce(ok.started_at, '-infinity'), coalesce(ok.id, '')) LIMIT $2) few) failed
LEFT JOIN LATERAL (
  SELECT count(*) AS n, (array_agg(skip_reason ORDER BY started_at DESC, id DESC))[1] AS reason FROM (
    SELECT id, started_at, skip_reason, bool_and(status = 'SKIPPED') OVER (ORDER BY started_at DESC, id DESC) AS yes FROM (
      SELECT f.id, f.started_at, f.skip_reason, f.status FROM routine_runs f
      WHERE f.routine_id = r.id AND (f.completed_at IS NOT NULL OR f.status = 'SKIPPED')
      ORDER BY f.started_at DESC, f.id DESC LIMIT $2) newest) fires
  WHERE yes) skip ON true
LEFT JOIN LATERAL (
  SELECT f.id, f.task_id FROM routine_runs f
  WHERE f.routine_id = r.id AND f.completed_at IS NULL
    AND EXISTS (SELECT 1 FROM routine_runs h WHERE h.held_by_id = f.id)
  ORDER BY f.started_at, f.id LIMIT 1) gate ON true
LEFT JOIN LATERAL (
  SELECT count(*) AS n, min(started_at) AS since FROM (
    SELECT started_at FROM routine_runs WHERE held_by_id = gate.id ORDER BY started_at LIMIT $3) few) held ON gate.id IS NOT NULL
LEFT JOIN LATERAL (
  SELECT u.id FROM runs u WHERE u.task_id = gate.task_id AND u.status IN ('QUEUED', 'CLAIMED')
  UNION ALL
  SELECT q.run_id FROM wakeup_requests q WHERE gate.task_id IS NULL AND q.routine_run_id = gate.id AND q.run_id IS NOT NULL
  LIMIT 1) work ON gate.id IS NOT NULL
CROSS JOIN LATERAL (
  SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM u.finished_at - u.started_at)) AS p50 FROM (
    SELECT f.id FROM routine_runs f
    WHERE f.routine_id = r.id AND f.status = 'DONE' ORDER BY f.started_at DESC, f.id DESC LIMIT $4) done
  JOIN wakeup_requests q ON q.routine_run_id = done.id
  JOIN runs u ON u.id = q.run_id
  WHERE u.status = 'FINISHED' AND u.outcome = 'processed' AND u.started_at IS NOT NULL) spent`

// RoutineHealth reads how several routines fare, in one query.
func (s *Reads) RoutineHealth(ctx context.Context, routineIDs []xid.ID) (map[xid.ID]*RoutineHealth, error) {
	found := make(map[xid.ID]*RoutineHealth, len(routineIDs))
	_, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		h := &RoutineHealth{}
		var since *time.Time
		var seconds *float64
		err := rows.Scan(&id, &h.LastSuccessAt, &h.Failures, &h.Skips, &h.SkipReason, &h.Held.ID, &h.Held.RunID, &since, &h.Held.Fires, &seconds)
		if since != nil {
			h.Held.Since = *since
		}
		if seconds != nil {
			h.P50 = new(time.Duration(*seconds * float64(time.Second)).Round(time.Millisecond))
		}
		found[id] = h
		return struct{}{}, err
	}, RoutineHealthQuery, pgtx.IDs(routineIDs), HealthFires, HealthHeld, healthDone)
	return found, pgtx.Wrap("read the health of routines", err)
}

// RoutineCost is what a routine's fires of HealthPeriod cost. Partial says that it had more than HealthCosted fires, whose newest
// alone are added up.
type RoutineCost struct {
	Cost    domain.Money
	Partial bool
}

// RoutineCostsQuery adds up what the fires of routines $1 cost that began from $2 on, the newest $3 of each. A fire's cost is that
// of its runs: the one that served its request, and those about its task. Fires that were merged are served by another's run.
const RoutineCostsQuery = `
SELECT r.id, least(coalesce(sum(u.cost_usd), 0), 999999999999)::text, max(fires.n) >= $3
FROM unnest($1::text[]) AS r (id)
CROSS JOIN LATERAL (
  SELECT array_agg(f.id) AS ids, array_agg(f.task_id) FILTER (WHERE f.task_id IS NOT NULL) AS tasks, count(*) AS n FROM (
    SELECT id, task_id FROM routine_runs
    WHERE routine_id = r.id AND started_at >= $2 ORDER BY started_at DESC, id DESC LIMIT $3) f) fires
LEFT JOIN LATERAL (
  SELECT q.run_id AS id FROM wakeup_requests q WHERE q.routine_run_id = ANY(fires.ids) AND q.run_id IS NOT NULL
  UNION
  SELECT t.id FROM runs t WHERE t.task_id = ANY(fires.tasks)) work ON true
LEFT JOIN runs u ON u.id = work.id
GROUP BY r.id`

// RoutineCosts reads what several routines cost since an instant, in one query.
func (s *Reads) RoutineCosts(ctx context.Context, routineIDs []xid.ID, since time.Time) (map[xid.ID]RoutineCost, error) {
	found := make(map[xid.ID]RoutineCost, len(routineIDs))
	_, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		var text string
		var c RoutineCost
		if err := rows.Scan(&id, &text, &c.Partial); err != nil {
			return struct{}{}, err
		}
		var err error
		c.Cost, err = domain.ParseMoney(text)
		found[id] = c
		return struct{}{}, err
	}, RoutineCostsQuery, pgtx.IDs(routineIDs), since, HealthCosted)
	return found, pgtx.Wrap("add up what routines cost", err)
}
