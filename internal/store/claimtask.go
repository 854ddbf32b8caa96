package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// errTaskBusy says that somebody holds the row of a run's task: the claim does not wait for it.
var errTaskBusy = errors.New("the run's task is locked")

// tasksOf are the ids of the runs' tasks.
func tasksOf(runs []runRow) []xid.ID {
	var list []xid.ID
	for _, run := range runs {
		if run.taskID != "" {
			list = append(list, run.taskID)
		}
	}
	return list
}

// tryTasks locks those of the tasks that nobody else holds. The claim waits for no task, so it may lock them after the
// workspaces' lanes.
func (t *tx) tryTasks(ctx context.Context, taskIDs []xid.ID) (map[xid.ID]bool, error) {
	locked := map[xid.ID]bool{}
	if len(taskIDs) == 0 {
		return locked, nil
	}
	got, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], `
SELECT id FROM tasks WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`, pgtx.IDs(taskIDs))
	if err != nil {
		return nil, fmt.Errorf("lock tasks: %w", err)
	}
	for _, id := range got {
		locked[id] = true
	}
	return locked, nil
}

// waitForHeads locks the tasks of the lanes' heads, waiting: for a claim of a lane alone. It comes before the workspaces'
// lanes.
func (t *tx) waitForHeads(ctx context.Context, lanes []lane) error {
	var runIDs []string
	for _, l := range lanes {
		if l.headID != nil {
			runIDs = append(runIDs, *l.headID)
		}
	}
	const query = `SELECT 1 FROM tasks WHERE id IN (SELECT task_id FROM runs WHERE id = ANY($1)) ORDER BY id FOR NO KEY UPDATE`
	if _, err := pgtx.Exec(ctx, t, query, pgtx.TextArray(runIDs)); err != nil {
		return fmt.Errorf("lock the heads' tasks: %w", err)
	}
	return nil
}

// readGuards reads what the guards look at of runs about tasks, whose rows are locked.
func (t *tx) readGuards(ctx context.Context, runs []runRow) (map[xid.ID]guard.TaskFacts, error) {
	var list []xid.ID
	for _, run := range runs {
		if run.taskID != "" {
			list = append(list, run.id)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return guard.ReadTaskFacts(ctx, t, list)
}

// dropStale ends the stale requests of a run; its others go on (SPEC S3.8). quiet leaves them out of the feed, because
// the entry about the run's end covers them. The log has a line for each all the same.
func (t *tx) dropStale(ctx context.Context, run runRow, stale []domain.StaleRequests, quiet bool) error {
	for _, s := range stale {
		const query = `
-- $1 run, $2 source, $3 basis, or "", $4 why they end, $5 now
UPDATE wakeup_requests
SET status = 'CANCELLED', end_reason = $4, finished_at = $5
WHERE run_id = $1 AND source = $2 AND coalesce(basis::text, '') = $3
  AND ` + guard.RequestLives + ` AND finished_at IS NULL
RETURNING id, routine_run_id`
		var ended, fires []xid.ID
		_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
			var id, fire xid.ID
			err := rows.Scan(&id, &fire)
			ended, fires = append(ended, id), append(fires, fire)
			return struct{}{}, err
		}, query, run.id, s.Source, string(s.Basis), s.Reason, t.Now)
		if err != nil {
			return fmt.Errorf("end stale requests: %w", err)
		}
		if err := t.endRoutineRuns(ctx, fires, routineRunEnd{status: domain.RoutineRunStatusCancelled, reason: &s.Reason}); err != nil {
			return err
		}
		if quiet {
			t.tellDropped(run, ended, domain.StaleActivity(s.Reason), s.Reason)
			continue
		}
		if err := t.noteRequests(ctx, run.workspaceID, ended, domain.StaleActivity(s.Reason), system("queue"), "The wakeup lost its reason: "+string(s.Reason)+".", s.Reason); err != nil {
			return err
		}
	}
	return nil
}

// parkBlocked parks a due run until an event says that it can go on.
func (t *tx) parkBlocked(ctx context.Context, run runRow) error {
	const query = `
UPDATE runs
SET parked_reason = 'TASK_BLOCKED', parked_until = NULL, revision = revision + 1
WHERE id = $1 AND status = 'QUEUED'`
	if err := pgtx.ExecOne(ctx, t, query, run.id); err != nil {
		return fmt.Errorf("park run: %w", err)
	}
	if err := t.runEvent(ctx, run, domain.RunEventKindGuard, 0, map[string]any{"parked": domain.ParkedReasonTaskBlocked}); err != nil {
		return err
	}
	return t.releaseScope(ctx, run.agentID, run.scope)
}
