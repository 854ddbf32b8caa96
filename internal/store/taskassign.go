package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// AssignTask gives a task to an agent; AssigneeID "" takes it away.
type AssignTask struct {
	WorkspaceID, TaskID, AssigneeID xid.ID
	ExpectedRevision                *int
}

// AssignTask sets or clears the assignee. The former one's assignments and pending retries for the task end at once, a run
// that has started goes on (SPEC S5.5). It returns the requests that were sent and those that were cancelled.
func (s *Tasks) AssignTask(ctx context.Context, in AssignTask) (sent, cancelled []xid.ID, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		former, err := pgtx.QueryOne[xid.ID](ctx, t, `SELECT assignee_id FROM tasks WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`, in.TaskID, in.WorkspaceID)
		if err != nil {
			return pgtx.NotFound(err, []string{"taskId"}, "task", in.TaskID)
		}
		sent, cancelled, err = t.assign(ctx, in, former)
		return err
	})
	return sent, cancelled, pgtx.Wrap("assign task", err)
}

func (t *tx) assign(ctx context.Context, in AssignTask, former xid.ID) (sent, cancelled []xid.ID, err error) {
	var l lane
	if former != "" {
		if l, err = t.lockLane(ctx, former); err != nil {
			return nil, nil, err
		}
	}
	tasks, err := t.lockTasks(ctx, in.TaskID)
	if err != nil {
		return nil, nil, err
	}
	r, err := taskOf(tasks, in.WorkspaceID, in.TaskID)
	if err != nil {
		return nil, nil, err
	}
	if r.assigneeID != former {
		return nil, nil, pgtx.ErrChanged
	}
	if err := checkRevision(in.ExpectedRevision, r.revision, "task"); err != nil {
		return nil, nil, err
	}
	if in.AssigneeID == former {
		return nil, nil, nil
	}
	if in.AssigneeID != "" {
		if err := t.checkAgent(ctx, in.WorkspaceID, in.AssigneeID, []string{"assigneeId"}); err != nil {
			return nil, nil, err
		}
	}
	if err := t.ReadClock(ctx); err != nil {
		return nil, nil, err
	}
	by, err := t.causeOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	c := change{before: *r, after: *r, cause: by, summary: "The task was assigned.", data: map[string]any{"from": pgtx.Nullable(former), "to": pgtx.Nullable(in.AssigneeID)}}
	c.after.assigneeID = in.AssigneeID
	c.after.assignmentVersion++
	if sent, err = t.apply(ctx, &c); err != nil || former == "" {
		return sent, nil, err
	}
	cancelled, err = t.dropRequests(ctx, l, in.TaskID, nil, domain.ReassignCancels)
	return sent, cancelled, err
}

// pendingRequest is a request about a task that no agent has begun to serve.
type pendingRequest struct {
	id, runID, routineRunID xid.ID
	source                  domain.WakeupSource
	basis                   domain.WakeBasis
	retry                   bool
}

// dropRequests ends the requests of a locked lane about a task that are unrouted or of a queued run, as the rule says for
// each, and the runs of which none is left. It looks at the oldest of them, at most so many, nil: at all, and returns those
// that it ended.
func (t *tx) dropRequests(ctx context.Context, l lane, taskID xid.ID, most *int, rule func(domain.WakeupSource, domain.WakeBasis, bool) domain.EndReason) ([]xid.ID, error) {
	const query = `
SELECT q.id, q.run_id, q.routine_run_id, q.source, coalesce(q.basis::text, ''), coalesce(r.retry_count > 0, false)
FROM wakeup_requests q LEFT JOIN runs r ON r.id = q.run_id
WHERE q.task_id = $2
  AND q.agent_id = $1
  AND q.finished_at IS NULL
  AND q.status IN ('QUEUED', 'COALESCED')
  AND (q.run_id IS NULL OR r.status = 'QUEUED')
ORDER BY q.requested_at, q.id LIMIT $3`
	pending, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (p pendingRequest, err error) {
		return p, rows.Scan(&p.id, &p.runID, &p.routineRunID, &p.source, &p.basis, &p.retry)
	}, query, l.agentID, taskID, most)
	if err != nil {
		return nil, fmt.Errorf("read what waits about the task: %w", err)
	}
	byReason := map[domain.EndReason][]xid.ID{}
	var ended []xid.ID
	runs := map[xid.ID]domain.EndReason{}
	for _, p := range pending {
		reason := rule(p.source, p.basis, p.retry)
		if reason == "" {
			continue
		}
		byReason[reason] = append(byReason[reason], p.id)
		ended = append(ended, p.id)
		if p.runID != "" {
			runs[p.runID] = reason
		}
	}
	for reason, list := range byReason {
		if err := t.endStale(ctx, l.workspaceID, list, reason); err != nil {
			return nil, err
		}
	}
	for runID, reason := range runs {
		if err := t.endEmptyRun(ctx, runID, reason); err != nil {
			return nil, err
		}
	}
	if len(ended) == 0 {
		return nil, nil
	}
	t.Publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	return ended, t.fixHead(ctx, l)
}

// endStale ends requests that have lost their reason, the fires behind them, and says so in the feed.
func (t *tx) endStale(ctx context.Context, workspaceID xid.ID, requests []xid.ID, reason domain.EndReason) error {
	const query = `
UPDATE wakeup_requests
SET status = 'CANCELLED', end_reason = $2, finished_at = $3
WHERE id = ANY($1) AND finished_at IS NULL
RETURNING routine_run_id, task_id`
	var fires, tasks []xid.ID
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
		var fire, task xid.ID
		err = rows.Scan(&fire, &task)
		fires, tasks = append(fires, fire), append(tasks, task)
		return struct{}{}, err
	}, query, pgtx.IDs(requests), reason, t.Now)
	if err != nil {
		return fmt.Errorf("end stale requests: %w", err)
	}
	end := routineRunEnd{status: domain.RoutineRunStatusCancelled, reason: &reason}
	if err := t.endFires(ctx, fires, tasks, end); err != nil {
		return err
	}
	return t.noteRequests(ctx, workspaceID, requests, domain.StaleActivity(reason), callerOr(ctx, "queue"), "The wakeup lost its reason: "+string(reason)+".", reason)
}

// endEmptyRun ends a queued run of a locked lane when none of its requests is left.
func (t *tx) endEmptyRun(ctx context.Context, runID xid.ID, reason domain.EndReason) error {
	left, err := pgtx.QueryOne[bool](ctx, t, `SELECT EXISTS (SELECT 1 FROM wakeup_requests WHERE run_id = $1 AND finished_at IS NULL)`, runID)
	if err != nil || left {
		return pgtx.Wrap("look for requests of the run", err)
	}
	run, err := t.lockRun(ctx, runID)
	if err != nil || run.status != domain.RunStatusQueued {
		return err
	}
	err = t.endRun(ctx, run, runEnd{status: domain.RunStatusCancelled, reason: &reason, event: domain.RunEventKindCancelled, eventData: map[string]any{"reason": reason}})
	if err != nil {
		return err
	}
	if err := t.endFiresOfTasks(ctx, []xid.ID{run.taskID}, routineRunEnd{status: domain.RoutineRunStatusCancelled, reason: &reason}); err != nil {
		return err
	}
	return t.releaseScope(ctx, run.agentID, run.scope)
}
