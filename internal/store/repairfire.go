package store

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// staleFire is a fire of a heavy routine that is open although its task waits for nothing: a version that ended such fires with
// their task alone left it behind, or two runs ended at one moment. What it takes for its end is how the last run ended; one
// whose last run ended well is left to its task.
var staleFire = `f.completed_at IS NULL AND f.task_id IS NOT NULL AND ` + waitsForNothing + ` AND NOT ` + guard.AwaitsRun

// lastRunOfTask is the newest ended run of the task k.
const lastRunOfTask = `LATERAL (
  SELECT r.status, r.outcome, r.end_reason, r.error_message
  FROM runs r
  WHERE r.task_id = k.id AND r.finished_at IS NOT NULL
  ORDER BY r.finished_at DESC LIMIT 1)`

// staleFires finds them, without locks. Fires whose task never had a run lost their request before it was routed.
func (s *Records) staleFires(ctx context.Context) ([]xid.ID, error) {
	return pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], staleFiresQuery)
}

var staleFiresQuery = `
SELECT f.id FROM routine_runs f JOIN tasks k ON k.id = f.task_id LEFT JOIN ` + lastRunOfTask + ` last ON true
WHERE ` + staleFire + `
  AND coalesce(last.status <> 'FINISHED' OR last.outcome <> '` + domain.OutcomeProcessed + `', true)
ORDER BY f.id
LIMIT 200`

// repairFire ends one of them.
func (t *tx) repairFire(ctx context.Context, id xid.ID) (done Repairs, err error) {
	if err := t.ReadClock(ctx); err != nil {
		return done, err
	}
	if _, err := pgtx.Exec(ctx, t, `SELECT 1 FROM tasks WHERE id = (SELECT task_id FROM routine_runs WHERE id = $1) FOR NO KEY UPDATE`, id); err != nil {
		return done, err
	}
	query := `
UPDATE routine_runs f
SET status = CASE coalesce(last.status, 'CANCELLED')
  WHEN 'FINISHED' THEN 'SKIPPED'
  ELSE coalesce(last.status::text, 'CANCELLED') END, skip_reason = CASE
  WHEN last.status IN ('FINISHED', 'CANCELLED') THEN last.end_reason END, error = CASE last.status
  WHEN 'FAILED' THEN last.error_message END, completed_at = $2
FROM tasks k LEFT JOIN ` + lastRunOfTask + ` last ON true
WHERE f.id = $1
  AND k.id = f.task_id
  AND ` + staleFire + `
  AND coalesce(last.status <> 'FINISHED' OR last.outcome <> '` + domain.OutcomeProcessed + `', true)`
	n, err := pgtx.Exec(ctx, t, query, id, t.Now)
	return Repairs{Fires: int(n)}, err
}
