package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// QueueRun asks by name for a run of an agent on a task of any workflow; AgentID "" is the assignee.
type QueueRun struct {
	WorkspaceID, TaskID, AgentID xid.ID
	Reason                       string // short label, at most 200 characters; "": a standing one
	Idempotency
}

// QueueRun inserts the request, unrouted. It is refused on a task that has ended, and when the agent has too many queued
// runs (SPEC S3.10).
func (s *Tasks) QueueRun(ctx context.Context, in QueueRun) (made Made, err error) {
	if len([]rune(in.Reason)) > 200 {
		return Made{}, domain.RefuseField([]string{"reason"}, domain.UserErrorCodeTooLong, "a reason has at most 200 characters")
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, in.WorkspaceID, "queueRun", in.Idempotency, func() (Made, error) { return t.queueRun(ctx, in) })
		return err
	})
	return made, pgtx.Wrap("queue a run", err)
}

func (t *tx) queueRun(ctx context.Context, in QueueRun) (Made, error) {
	tasks, err := t.lockTasks(ctx, in.TaskID)
	if err != nil {
		return Made{}, err
	}
	r, err := taskOf(tasks, in.WorkspaceID, in.TaskID)
	if err != nil {
		return Made{}, err
	}
	if r.ended() {
		return Made{}, domain.RefuseField([]string{"taskId"}, domain.UserErrorCodeInvalidState, "the task is %s; move it back first (moveTask)", r.state)
	}
	if in.AgentID == "" {
		in.AgentID = r.assigneeID
	}
	if in.AgentID == "" {
		return Made{}, domain.RefuseField([]string{"agentId"}, domain.UserErrorCodeRequired, "the task has no assignee: name the agent")
	}
	if err := t.checkAgent(ctx, in.WorkspaceID, in.AgentID, []string{"agentId"}); err != nil {
		return Made{}, err
	}
	queued, err := t.queuedRuns(ctx, in.AgentID)
	if err != nil {
		return Made{}, err
	}
	if domain.Backlog(queued, domain.WakeCauseQueueRun) != domain.BacklogAccept {
		return Made{}, domain.AsUserError([]domain.FieldError{domain.BacklogFull(queued)})
	}
	by, err := t.causeOf(ctx)
	if err != nil {
		return Made{}, err
	}
	if in.Reason == "" {
		in.Reason = "run asked for"
	}
	wake := domain.QueueRunWake(string(r.id), string(in.AgentID), in.Reason, in.Key)
	wake.PersonWaiting = by.agentID == ""
	sent, err := t.sendWakes(ctx, *r, by, []domain.TaskWake{wake})
	if err != nil {
		return Made{}, err
	}
	if len(sent) == 0 { // the mutation's key has been forgotten, its request not
		id, err := pgtx.QueryOne[xid.ID](ctx, t, `SELECT id FROM wakeup_requests WHERE workspace_id = $1 AND idempotency_key = $2`, r.workspaceID,
			fmt.Sprintf("queue_run:%s:%s:%s", r.id, in.AgentID, in.Key))
		return Made{ID: id, Replayed: true}, pgtx.Wrap("find the request that has the key", err)
	}
	return Made{ID: sent[0]}, t.note(ctx, entry{workspaceID: r.workspaceID, code: domain.ActivityCodeWakeupRequested, by: by.by,
		summary: "Somebody asked for a run of the task.", subjectID: sent[0], agentID: in.AgentID, taskID: r.id, causationID: by.causationID,
		data: map[string]any{"wakeupRequestId": sent[0], "source": wake.Source, "note": in.Reason}})
}

// queuedRuns counts the agent's queued runs, as far as the backlog bound needs to know.
func (t *tx) queuedRuns(ctx context.Context, agentID xid.ID) (int, error) {
	const query = `SELECT count(*) FROM (SELECT 1 FROM runs WHERE agent_id = $1 AND status = 'QUEUED' LIMIT $2) AS queued`
	n, err := pgtx.QueryOne[int](ctx, t, query, agentID, domain.MaxBacklog+1)
	return n, pgtx.Wrap("count the agent's queued runs", err)
}
