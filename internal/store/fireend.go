package store

import (
	"context"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// waitsForNothing says in SQL that the task k is open while no run of it is queued or live, no request unrouted, and nothing
// explains the wait: domain.FireWork.Active of a heavy fire, without what waits for a resume.
var waitsForNothing = isOpen("k") + ` AND k.state NOT IN ('BLOCKED', 'IN_REVIEW') AND NOT ` + hasRun + ` AND NOT ` + openBlocker + ` AND NOT ` + openApproval + `
  AND NOT EXISTS (SELECT 1 FROM wakeup_requests n WHERE n.task_id = k.id AND n.status = 'QUEUED' AND n.run_id IS NULL)`

// endFires ends what stands behind requests that have just ended: their fires, and those of heavy routines about whose tasks
// nothing is on its way any more. Empty ids are left out.
func (t *tx) endFires(ctx context.Context, fires, tasks []xid.ID, e routineRunEnd) error {
	if err := t.endRoutineRuns(ctx, fires, e); err != nil {
		return err
	}
	return t.endFiresOfTasks(ctx, tasks, e)
}

// endFiresOfTasks ends the fires of heavy routines whose task's last run has just ended badly, or was settled: as the run did
// (SPEC S4.6). The task stays open, for a person; a wake about it makes the fire open again (reopenFires). One whose request
// is sent again by its agent's resume is SKIPPED and has not ended yet: until then later fires find it active.
func (t *tx) endFiresOfTasks(ctx context.Context, taskIDs []xid.ID, e routineRunEnd) error {
	taskIDs = slices.DeleteFunc(once(taskIDs), func(id xid.ID) bool { return id == "" })
	if len(taskIDs) == 0 {
		return nil
	}
	query := `
WITH ended AS (
  SELECT f.id, ` + awaitsRun + ` AS waits FROM routine_runs f JOIN tasks k ON k.id = f.task_id
  WHERE f.task_id = ANY($1) AND f.completed_at IS NULL AND ` + waitsForNothing + `)
UPDATE routine_runs f SET status = $2, skip_reason = $3, error = NULLIF($4, ''), completed_at = CASE WHEN NOT ended.waits THEN $5::timestamptz END
FROM ended WHERE f.id = ended.id AND (NOT ended.waits OR $2 = 'SKIPPED')`
	if _, err := exec(ctx, t, query, ids(taskIDs), e.status, e.reason, e.err, t.now); err != nil {
		return fmt.Errorf("end the fires of the tasks: %w", err)
	}
	return nil
}

// reopenFires makes the fires of tasks that are open active again, since a run about them is on its way (SPEC S4.6). $1 are the
// tasks.
var reopenFires = `
UPDATE routine_runs f SET status = 'TASK_CREATED', skip_reason = NULL, error = NULL, completed_at = NULL FROM tasks k
WHERE f.task_id = ANY($1) AND k.id = f.task_id AND f.status IN ('FAILED', 'CANCELLED', 'SKIPPED') AND ` + isOpen("k")

// staleFire is a fire of a heavy routine that is open although its task waits for nothing: a version that ended such fires with
// their task alone left it behind, or two runs ended at one moment. What it takes for its end is how the last run ended; one
// whose last run ended well is left to its task.
var staleFire = `f.completed_at IS NULL AND f.task_id IS NOT NULL AND ` + waitsForNothing + ` AND NOT ` + awaitsRun

// lastRunOfTask is the newest ended run of the task k.
const lastRunOfTask = `LATERAL (SELECT r.status, r.outcome, r.end_reason, r.error_message FROM runs r WHERE r.task_id = k.id AND r.finished_at IS NOT NULL
  ORDER BY r.finished_at DESC LIMIT 1)`

// staleFires finds them, without locks. Fires whose task never had a run lost their request before it was routed.
func (s *Store) staleFires(ctx context.Context) ([]xid.ID, error) {
	return collect(ctx, s.db, scanOne[xid.ID], staleFiresQuery)
}

var staleFiresQuery = `
SELECT f.id FROM routine_runs f JOIN tasks k ON k.id = f.task_id LEFT JOIN ` + lastRunOfTask + ` last ON true
WHERE ` + staleFire + ` AND coalesce(last.status <> 'FINISHED' OR last.outcome <> '` + domain.OutcomeProcessed + `', true) ORDER BY f.id LIMIT 200`

// repairFire ends one of them.
func (t *tx) repairFire(ctx context.Context, id xid.ID) (done Repairs, err error) {
	if err := t.readClock(ctx); err != nil {
		return done, err
	}
	if _, err := exec(ctx, t, `SELECT 1 FROM tasks WHERE id = (SELECT task_id FROM routine_runs WHERE id = $1) FOR NO KEY UPDATE`, id); err != nil {
		return done, err
	}
	query := `
UPDATE routine_runs f SET status = CASE coalesce(last.status, 'CANCELLED') WHEN 'FINISHED' THEN 'SKIPPED' ELSE coalesce(last.status, 'CANCELLED') END,
  skip_reason = CASE WHEN last.status IN ('FINISHED', 'CANCELLED') THEN last.end_reason END, error = CASE last.status WHEN 'FAILED' THEN last.error_message END, completed_at = $2
FROM tasks k LEFT JOIN ` + lastRunOfTask + ` last ON true
WHERE f.id = $1 AND k.id = f.task_id AND ` + staleFire + ` AND coalesce(last.status <> 'FINISHED' OR last.outcome <> '` + domain.OutcomeProcessed + `', true)`
	n, err := exec(ctx, t, query, id, t.now)
	return Repairs{Fires: int(n)}, err
}
