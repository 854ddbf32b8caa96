package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/task"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// droppedRequest is a request that ended because its agent was held or its budget was spent.
type droppedRequest struct {
	id, taskID              xid.ID
	source                  domain.WakeupSource
	basis                   *domain.WakeBasis
	class                   domain.WakeClass
	routineGone             bool
	requestedAt, finishedAt time.Time
}

// dropped lists requests of a locked lane that ended AGENT_INACTIVE or BUDGET_BLOCKED behind a place, in the order in which
// they ended, as many as one step looks at.
func (t *tx) dropped(ctx context.Context, l lane, from resendFrom) ([]droppedRequest, error) {
	const query = `
SELECT id, task_id, source, basis, wake_class,
  EXISTS (SELECT 1 FROM routines o WHERE o.id = q.routine_id AND o.deleted_at IS NOT NULL), requested_at,
  finished_at
FROM wakeup_requests q
WHERE agent_id = $1
  AND put_by_at >= $2
  AND (put_by_at, id) > ($2, $3)
  AND (end_reason = 'AGENT_INACTIVE' OR end_reason = 'BUDGET_BLOCKED')
ORDER BY put_by_at, id LIMIT $4`
	dropped, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (d droppedRequest, err error) {
		return d, rows.Scan(&d.id, &d.taskID, &d.source, &d.basis, &d.class, &d.routineGone, &d.requestedAt, &d.finishedAt)
	}, query, l.agentID, from.at, from.id, backlogRuns)
	if err != nil {
		return nil, fmt.Errorf("read what the hold dropped: %w", err)
	}
	return dropped, nil
}

// resendDropped sends what a hold dropped again, one step of it from a place on, and returns the place that it came to and
// the requests, oldest first. A periodic one is not sent, since its next slot does the same, nor one whose routine was
// deleted or that has lost its reason.
func (t *tx) resendDropped(ctx context.Context, l lane, from resendFrom) (resendFrom, []xid.ID, error) {
	looked, err := t.dropped(ctx, l, from)
	if err != nil {
		return from, nil, err
	}
	next := resendFrom{}
	if len(looked) == backlogRuns {
		last := looked[len(looked)-1]
		next = resendFrom{at: &last.finishedAt, id: string(last.id)}
	}
	events := slices.DeleteFunc(looked, func(d droppedRequest) bool { return d.class != domain.WakeClassEvent || d.routineGone })
	slices.SortFunc(events, func(a, b droppedRequest) int {
		return cmp.Or(a.requestedAt.Compare(b.requestedAt), cmp.Compare(a.id, b.id))
	})
	sent, err := t.holding(ctx, l, events)
	if err != nil {
		return from, nil, err
	}
	if err := t.resend(ctx, l, sent); err != nil {
		return from, nil, err
	}
	const place = `UPDATE agent_lanes SET resend_from = $2, resend_after = $3 WHERE agent_id = $1`
	if err := pgtx.ExecOne(ctx, t, place, l.agentID, next.at, next.id); err != nil {
		return from, nil, fmt.Errorf("note how far the resume is: %w", err)
	}
	if next.at != nil {
		t.Publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	}
	return next, sent, nil
}

// resendOn takes a resume one step further, once what it sent before is routed.
func (t *tx) resendOn(ctx context.Context, l lane, from resendFrom) error {
	const query = `SELECT count(*) FROM (SELECT 1 FROM wakeup_requests WHERE agent_id = $1 AND ` + guard.Unrouted + ` LIMIT $2) q`
	unrouted, err := pgtx.QueryOne[int](ctx, t, query, l.agentID, backlogRuns)
	if err != nil || unrouted == backlogRuns {
		return pgtx.Wrap("count unrouted requests", err)
	}
	_, _, err = t.resendDropped(ctx, l, from)
	return err
}

// left counts the events behind a place that a resume has still to look at.
func (t *tx) left(ctx context.Context, l lane, from resendFrom) (int, error) {
	const query = `
SELECT count(*) FROM wakeup_requests
WHERE agent_id = $1
  AND put_by_at >= $2
  AND (put_by_at, id) > ($2, $3)
  AND (end_reason = 'AGENT_INACTIVE' OR end_reason = 'BUDGET_BLOCKED')
  AND wake_class = 'EVENT'`
	if from.at == nil {
		return 0, nil
	}
	n, err := pgtx.QueryOne[int](ctx, t, query, l.agentID, from.at, from.id)
	return n, pgtx.Wrap("count what the hold dropped", err)
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
	if _, err := pgtx.Exec(ctx, t, `SELECT 1 FROM tasks WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE`, pgtx.IDs(taskIDs)); err != nil {
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

// basisFacts are the facts that decide about one request; x is its task, nil without one.
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
// more (SPEC S3.6, C304). The fires that ended with them, and those of their tasks, are open again (SPEC S4.6).
func (t *tx) resend(ctx context.Context, l lane, requests []xid.ID) error {
	if len(requests) == 0 {
		return nil
	}
	const query = `
WITH sent AS (
  UPDATE wakeup_requests
  SET status = 'QUEUED', run_id = NULL, end_reason = NULL, resends = resends + 1, claimed_at = NULL,
    delivered_at = NULL, finished_at = NULL, scheduled_retry_at = NULL, retry_source = NULL
  WHERE id = ANY($1) AND finished_at IS NOT NULL RETURNING routine_run_id)
UPDATE routine_runs
SET status = CASE WHEN task_id IS NULL THEN 'ENQUEUED' ELSE 'TASK_CREATED' END, skip_reason = NULL,
  error = NULL, completed_at = NULL
WHERE id IN (SELECT routine_run_id FROM sent)
  -- what ended with its request opens with it; a fire that its routine's policy dropped stays dropped
  AND (status IN ('FAILED', 'CANCELLED')
    OR status = 'SKIPPED' AND (task_id IS NOT NULL OR skip_reason IN ('AGENT_INACTIVE', 'BUDGET_BLOCKED')))`
	if _, err := pgtx.Exec(ctx, t, query, pgtx.IDs(requests)); err != nil {
		return fmt.Errorf("send requests again: %w", err)
	}
	t.sent = append(t.sent, requests...)
	t.Publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	return t.noteRequests(ctx, l.workspaceID, requests, domain.ActivityCodeWakeupResent, callerOr(ctx, "queue"), "The wakeup was sent again.", "")
}

// sendAgainUndelivered returns the event requests that no prompt of their runs contained to the router: the same rows, at
// their place in the order, one resend more (SPEC S3.6, C215). What is left without delivery is the same heartbeat.
func (t *tx) sendAgainUndelivered(ctx context.Context, runs []runRow) error {
	if len(runs) == 0 {
		return nil
	}
	const query = `
UPDATE wakeup_requests SET status = 'QUEUED', run_id = NULL, resends = resends + 1, claimed_at = NULL
FROM (
  SELECT id AS request, run_id AS run
  FROM wakeup_requests
  WHERE run_id = ANY($1) AND delivered_at IS NULL AND wake_class = 'EVENT' AND ` + guard.RequestLives + `) late
WHERE id = late.request
RETURNING id, late.run`
	resent := map[xid.ID][]xid.ID{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var request, run xid.ID
		err := rows.Scan(&request, &run)
		resent[run] = append(resent[run], request)
		return struct{}{}, err
	}, query, pgtx.IDs(idsOf(runs)))
	if err != nil {
		return fmt.Errorf("send undelivered requests again: %w", err)
	}
	return t.noteAllResent(ctx, runs, resent)
}

// noteAllResent is noteResent for the requests of several runs.
func (t *tx) noteAllResent(ctx context.Context, runs []runRow, resent map[xid.ID][]xid.ID) error {
	for _, run := range runs {
		if len(resent[run.id]) == 0 {
			continue
		}
		if err := t.noteResent(ctx, run, resent[run.id]); err != nil {
			return err
		}
	}
	return nil
}

// noteResent notes in the feed and the log that requests go back to the router.
func (t *tx) noteResent(ctx context.Context, run runRow, resent []xid.ID) error {
	t.sent = append(t.sent, resent...)
	t.Publish(event.Event{Kind: event.Queue, WorkspaceID: run.workspaceID, ID: run.agentID})
	return t.noteRequests(ctx, run.workspaceID, resent, domain.ActivityCodeWakeupResent, system("queue"), "The wakeup came too late for its run's prompt and was sent again.", "")
}
