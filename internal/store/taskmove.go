package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// MoveTask moves a task to a state, or to a step of its workflow: exactly one of To and StepID. A note on the way back from
// review becomes a comment, which wakes the assignee.
type MoveTask struct {
	WorkspaceID, TaskID xid.ID
	To                  domain.TaskState
	StepID              xid.ID
	Note                string
	ExpectedRevision    *int
}

// MoveTask moves a task with the wakes that follow, and returns their requests. To DONE it completes the task, which asks
// for a decision first where the task needs one (SPEC S5.4). A move that ends the task ends what waits about it: those
// requests are returned as cancelled.
func (s *Tasks) MoveTask(ctx context.Context, in MoveTask) (sent, cancelled []xid.ID, err error) {
	if (in.To == "") == (in.StepID == "") {
		return nil, nil, domain.RefuseField([]string{"to"}, domain.UserErrorCodeInvalid, "name either the state or the step to move to")
	}
	err = s.inTx(ctx, func(t *tx) error {
		if err := t.lockIfEnding(ctx, in); err != nil {
			return err
		}
		if sent, err = t.moveTask(ctx, in); err != nil {
			return err
		}
		cancelled, err = t.endWaiting(ctx)
		return err
	})
	return sent, cancelled, pgtx.Wrap("move task", err)
}

// lockIfEnding locks the lanes of those that have something queued about a task that is about to end.
func (t *tx) lockIfEnding(ctx context.Context, in MoveTask) error {
	state := in.To
	if in.StepID != "" {
		var err error
		state, err = pgtx.QueryOne[domain.TaskState](ctx, t, `SELECT state FROM workflow_steps WHERE id = $1`, in.StepID)
		if err != nil && !pgtx.NoRows(err) {
			return fmt.Errorf("read the step: %w", err)
		}
	}
	if !state.Ended() {
		return t.lockAlso(ctx)
	}
	return t.lockWaiting(ctx, in.TaskID)
}

func (t *tx) moveTask(ctx context.Context, in MoveTask) ([]xid.ID, error) {
	run, err := t.actingRun(ctx)
	if err != nil {
		return nil, err
	}
	tasks, err := t.lockEnding(ctx, []xid.ID{in.TaskID})
	if err != nil {
		return nil, err
	}
	r, err := taskOf(tasks, in.WorkspaceID, in.TaskID)
	if err != nil {
		return nil, err
	}
	if err := checkRevision(in.ExpectedRevision, r.revision, "task"); err != nil {
		return nil, err
	}
	if err := t.ReadClock(ctx); err != nil {
		return nil, err
	}
	c, err := t.causeOf(ctx)
	if err != nil {
		return nil, err
	}
	sent, err := t.move(ctx, tasks, r, move{to: in.To, stepID: in.StepID, note: in.Note, cause: c})
	if err != nil {
		return nil, err
	}
	return sent, t.noteAct(ctx, run, domain.Action{Type: domain.ActionMoveTask, State: cmp.Or(in.To, r.state)}, r.id)
}

// move is where a task goes, by whom.
type move struct {
	to     domain.TaskState
	stepID xid.ID
	note   string
	cause  cause
}

// move moves a task, for a person or an agent, whose dependents are locked.
func (t *tx) move(ctx context.Context, tasks map[xid.ID]*taskRow, r *taskRow, m move) ([]xid.ID, error) {
	if err := domain.AsUserError(domain.CheckNote("note", m.note)); err != nil {
		return nil, err
	}
	to, err := t.target(ctx, r, m)
	if err != nil {
		return nil, err
	}
	if to.state == r.state && to.id == r.stepID {
		return nil, t.noteWord(ctx, r.id) // that it stays where it is was said, too
	}
	pending, err := t.pendingCompletion(ctx, r)
	if err != nil {
		return nil, err
	}
	if to.state == domain.TaskStateDone && r.state != domain.TaskStateDone {
		switch domain.Complete(r.requiresApproval, pending != nil, m.cause.agentID != "") {
		case domain.CompletionRefuse:
			return nil, waitsForDecision(pending.id)
		case domain.CompletionAsk:
			return t.askCompletion(ctx, tasks, r, m.cause)
		}
	}
	if pending != nil && to.state != r.state {
		if m.cause.agentID != "" {
			return nil, waitsForDecision(pending.id)
		}
		status := domain.ApprovalStatusRejected
		if to.state == domain.TaskStateDone {
			status = domain.ApprovalStatusApproved
		}
		if err := t.writeDecision(ctx, *pending, status, m.note, m.cause); err != nil {
			return nil, err
		}
	}
	return t.enter(ctx, tasks, r, to, m)
}

func waitsForDecision(approvalID xid.ID) error {
	return domain.RefuseField([]string{"taskId"}, domain.UserErrorCodeInvalidState,
		"the task waits for the decision of approval %s; people and its approvers give it (decideApproval)", approvalID)
}

// enter puts a task into a step.
func (t *tx) enter(ctx context.Context, tasks map[xid.ID]*taskRow, r *taskRow, to stepRow, m move) ([]xid.ID, error) {
	c := change{before: *r, after: *r, cause: m.cause, said: true, summary: "The task was moved to " + string(to.state) + ".",
		data: map[string]any{"from": r.state, "to": to.state, "step": to.name}}
	c.after.state, c.after.stepID, c.after.stepActions = to.state, to.id, to.actions
	if m.note != "" {
		c.data["note"] = m.note
	}
	if r.state == domain.TaskStateInReview && to.state == domain.TaskStateInProgress {
		body := m.note
		if body == "" {
			body = "Sent back from review."
		}
		comment, err := t.insertComment(ctx, *r, newComment{author: m.cause.author(), body: body, causationID: m.cause.causationID})
		if err != nil {
			return nil, err
		}
		c.returnComment = comment
	}
	sent, err := t.apply(ctx, &c)
	if err != nil {
		return nil, err
	}
	*r = c.after
	followed, err := t.followEnd(ctx, &c, tasks)
	return append(sent, followed...), err
}

// stepRow is a step of a workflow.
type stepRow struct {
	id      xid.ID
	name    string
	state   domain.TaskState
	actions []domain.StepAction
}

// target is the step that a move leads to. A state leads to the workflow's first step that stands for it; without one the
// task keeps its step.
func (t *tx) target(ctx context.Context, r *taskRow, m move) (stepRow, error) {
	if m.stepID == "" && m.to == r.state {
		return stepRow{id: r.stepID, state: r.state, actions: r.stepActions}, nil
	}
	const query = `
SELECT id, name, state, on_enter
FROM workflow_steps
WHERE workflow_id = $1 AND (id = NULLIF($2, '') OR $2 = '' AND state = $3)
ORDER BY position
LIMIT 1`
	var to stepRow
	var actions []byte
	err := pgtx.QueryRow(ctx, t, []any{&to.id, &to.name, &to.state, &actions}, query, r.workflowID, string(m.stepID), m.to)
	switch {
	case pgtx.NoRows(err) && m.stepID != "":
		return to, domain.RefuseField([]string{"stepId"}, domain.UserErrorCodeNotFound, "the task's workflow has no step %s", m.stepID)
	case pgtx.NoRows(err):
		return stepRow{id: r.stepID, state: m.to, actions: r.stepActions}, nil
	case err != nil:
		return to, fmt.Errorf("find the step: %w", err)
	}
	if err := json.Unmarshal(actions, &to.actions); err != nil {
		return to, fmt.Errorf("read the step's actions: %w", err)
	}
	return to, nil
}
