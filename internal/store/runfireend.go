package store

import (
	"context"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// waitsForNothing says in SQL that the task k is open while no run of it is queued or live, no request unrouted, and nothing
// explains the wait: domain.FireWork.Active of a heavy fire, without what waits for a resume.
var waitsForNothing = guard.TaskOpen("k") + `
  AND k.state NOT IN ('BLOCKED', 'IN_REVIEW')
  AND NOT ` + guard.HasRun + `
  AND NOT ` + guard.OpenBlocker + `
  AND NOT ` + guard.OpenApproval + `
  AND NOT EXISTS (SELECT 1 FROM wakeup_requests n WHERE n.task_id = k.id AND ` + guard.Unrouted + `)`

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
	taskIDs = slices.DeleteFunc(pgtx.Distinct(taskIDs), func(id xid.ID) bool { return id == "" })
	if len(taskIDs) == 0 {
		return nil
	}
	query := `
-- $1 tasks, $2 status, $3 why they ended, $4 error, $5 now
WITH ended AS (
  SELECT f.id, ` + guard.AwaitsRun + ` AS waits FROM routine_runs f JOIN tasks k ON k.id = f.task_id
  WHERE f.task_id = ANY($1) AND f.completed_at IS NULL AND ` + waitsForNothing + `)
UPDATE routine_runs f
SET status = $2, skip_reason = $3, error = NULLIF($4, ''),
  completed_at = CASE WHEN NOT ended.waits THEN $5::timestamptz END
FROM ended WHERE f.id = ended.id AND (NOT ended.waits OR $2 = 'SKIPPED')`
	if _, err := pgtx.Exec(ctx, t, query, pgtx.IDs(taskIDs), e.status, e.reason, e.err, t.Now); err != nil {
		return fmt.Errorf("end the fires of the tasks: %w", err)
	}
	return nil
}

// reopenFires makes the fires of tasks that are open active again, since a run about them is on its way (SPEC S4.6). $1 are the
// tasks.
var reopenFires = `
UPDATE routine_runs f
SET status = 'TASK_CREATED', skip_reason = NULL, error = NULL, completed_at = NULL
FROM tasks k
WHERE f.task_id = ANY($1) AND k.id = f.task_id AND f.status IN ('FAILED', 'CANCELLED', 'SKIPPED') AND ` + guard.TaskOpen("k")
