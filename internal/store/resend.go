package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/task"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/xid"
)

// droppedRequest is an event request that ended because its agent was held or its budget was spent.
type droppedRequest struct {
	id, taskID xid.ID
	source     domain.WakeupSource
	basis      *domain.WakeBasis
}

// droppedSince lists the event requests of a locked lane that ended AGENT_INACTIVE or BUDGET_BLOCKED from an instant on,
// oldest first. A periodic one is not among them, since its next slot does the same, nor one whose routine was deleted.
func (t *tx) droppedSince(ctx context.Context, l lane, since time.Time) ([]droppedRequest, error) {
	const query = `
SELECT id, task_id, source, basis FROM wakeup_requests
WHERE agent_id = $1 AND finished_at >= $2 AND (end_reason = 'AGENT_INACTIVE' OR end_reason = 'BUDGET_BLOCKED') AND wake_class = 'EVENT'
  AND NOT EXISTS (SELECT 1 FROM routines o WHERE o.id = wakeup_requests.routine_id AND o.deleted_at IS NOT NULL)
ORDER BY requested_at, id`
	dropped, err := collect(ctx, t, func(rows *sql.Rows) (d droppedRequest, err error) {
		return d, rows.Scan(&d.id, &d.taskID, &d.source, &d.basis)
	}, query, l.agentID, since)
	if err != nil {
		return nil, fmt.Errorf("read what the hold dropped: %w", err)
	}
	return dropped, nil
}

// holding keeps the requests that still have their reason. It locks the tasks they are about, in id order, so that nobody
// takes the reason away in between.
func (t *tx) holding(ctx context.Context, l lane, dropped []droppedRequest) ([]xid.ID, error) {
	var taskIDs, kept []xid.ID
	for _, d := range dropped {
		if d.source.TaskBound() {
			taskIDs = append(taskIDs, d.taskID)
		}
	}
	tasks, err := t.lockTasksFor(ctx, l.agentID, taskIDs)
	if err != nil {
		return nil, err
	}
	for _, d := range dropped {
		if domain.BasisLost(basisFacts(l.agentID, d, tasks[d.taskID])) == "" {
			kept = append(kept, d.id)
		}
	}
	return kept, nil
}

// lockTasksFor locks tasks and reads them with the agent among their reviewers and approvers, if it is.
func (t *tx) lockTasksFor(ctx context.Context, agentID xid.ID, taskIDs []xid.ID) (map[xid.ID]*ent.Task, error) {
	byID := map[xid.ID]*ent.Task{}
	if len(taskIDs) == 0 {
		return byID, nil
	}
	if _, err := exec(ctx, t, `SELECT 1 FROM tasks WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE`, ids(taskIDs)); err != nil {
		return nil, fmt.Errorf("lock tasks: %w", err)
	}
	itself := func(q *ent.AgentQuery) { q.Where(agent.ID(agentID)) }
	tasks, err := t.Task.Query().Where(task.IDIn(taskIDs...)).WithReviewers(itself).WithApprovers(itself).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	for _, x := range tasks {
		byID[x.ID] = x
	}
	return byID, nil
}

// basisFacts are what decides about one request; x is its task, nil when there is none.
func basisFacts(agentID xid.ID, d droppedRequest, x *ent.Task) domain.BasisFacts {
	f := domain.BasisFacts{TaskBound: d.source.TaskBound(), TaskMissing: x == nil || x.DeletedAt != nil}
	if d.basis != nil {
		f.Basis = *d.basis
	}
	if x != nil {
		f.TaskState, f.TaskArchived, f.Assigned = x.State, x.ArchivedAt != nil, x.AssigneeID == agentID
		f.Reviews, f.Approves = len(x.Edges.Reviewers) > 0, len(x.Edges.Approvers) > 0
	}
	return f
}

// resend returns ended requests of a locked lane to the router: the same rows, at their places in the order, one resend
// more (SPEC S3.6, C304). The fires that their guard skipped, and those of their
// tasks, are open again (SPEC S4.6).
func (t *tx) resend(ctx context.Context, l lane, requests []xid.ID) error {
	if len(requests) == 0 {
		return nil
	}
	const query = `
WITH sent AS (
  UPDATE wakeup_requests SET status = 'QUEUED', run_id = NULL, end_reason = NULL, resends = resends + 1, claimed_at = NULL,
    delivered_at = NULL, finished_at = NULL, scheduled_retry_at = NULL, retry_source = NULL
  WHERE id = ANY($1) AND finished_at IS NOT NULL RETURNING routine_run_id)
UPDATE routine_runs SET status = CASE WHEN task_id IS NULL THEN 'ENQUEUED' ELSE 'TASK_CREATED' END, skip_reason = NULL, error = NULL, completed_at = NULL
WHERE id IN (SELECT routine_run_id FROM sent) AND (status = 'SKIPPED' AND skip_reason IN ('AGENT_INACTIVE', 'BUDGET_BLOCKED')
  OR status IN ('SKIPPED', 'FAILED', 'CANCELLED') AND task_id IS NOT NULL)`
	if _, err := exec(ctx, t, query, ids(requests)); err != nil {
		return fmt.Errorf("send requests again: %w", err)
	}
	t.publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	return t.noteRequests(ctx, l.workspaceID, requests, domain.ActivityCodeWakeupResent, callerOr(ctx, "queue"), "The wakeup was sent again.", "")
}
