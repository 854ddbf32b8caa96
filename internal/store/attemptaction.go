package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// followUp is what a run that ended well asks for, with the tasks that this may touch, locked.
type followUp struct {
	run     runRow
	actions []domain.Action
	tasks   map[xid.ID]*taskRow
	cause   cause
	made    map[string]xid.ID // subtasks, by the place of their action: #1 is the first

	leftOpen domain.LeftOpen // why its step did not complete its task; "" where it did, or does not
}

// lockFollowUps locks all tasks that the ends of runs and their actions may touch, in one statement. These are the
// runs' tasks, the tasks that they block and their parents; the same of tasks whose approvals are decided; and blockers
// of new subtasks. Others are locked with them. The runs' lanes and rows are held: nobody who holds a task waits for them.
func (t *tx) lockFollowUps(ctx context.Context, runs []runRow, actions []domain.Action, others ...xid.ID) (map[xid.ID]*taskRow, error) {
	ending := tasksOf(runs)
	var approvals []string
	for _, a := range actions {
		if a.Problem != "" {
			continue
		}
		if a.Type == domain.ActionDecideApproval {
			approvals = append(approvals, a.ApprovalID)
		}
		for _, id := range a.BlockedBy {
			if !strings.HasPrefix(id, "#") {
				others = append(others, xid.ID(id))
			}
		}
	}
	if len(approvals) > 0 {
		of, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], `SELECT DISTINCT task_id FROM approvals WHERE id = ANY($1) AND workspace_id = $2`, pgtx.TextArray(approvals), runs[0].workspaceID)
		if err != nil {
			return nil, fmt.Errorf("find the approvals' tasks: %w", err)
		}
		ending = append(ending, of...)
	}
	switch {
	case len(ending) > 0:
		return t.lockEnding(ctx, ending, others...)
	case len(others) > 0:
		return t.lockTasks(ctx, others...)
	}
	return nil, nil
}

// carryOut does what a result asks for, each action by itself (SPEC S7.5). An action that is refused or fails stands in
// the run's event, and does not affect the others. A step that completes its task does so at the end, unless somebody
// said otherwise.
func (t *tx) carryOut(ctx context.Context, f *followUp) ([]outcome, error) {
	var outcomes []outcome
	f.made = map[string]xid.ID{}
	acts, err := t.actsBefore(ctx, f)
	if err != nil {
		return nil, err
	}
	restated := domain.NewRestated(acts, f.actions)
	for i, a := range f.actions {
		if done, before := f.doneBefore(restated, a, i); before {
			outcomes = append(outcomes, done)
			continue
		}
		o, err := t.carryOutOne(ctx, f, a.Type, a.Problem, func() (xid.ID, error) { return t.act(ctx, f, a, i) })
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, o)
	}
	return t.completeByDefault(ctx, f, outcomes)
}

// actsBefore are what the run's agent did by calls; none are read for a result that asks for nothing.
func (t *tx) actsBefore(ctx context.Context, f *followUp) ([]domain.Act, error) {
	if len(f.actions) == 0 {
		return nil, nil
	}
	return t.actsOf(ctx, f.run.id)
}

// doneBefore is the outcome of an action, the n-th from 0, that a call of the run's agent has done already.
func (f *followUp) doneBefore(restated *domain.Restated, a domain.Action, n int) (outcome, bool) {
	if a.Problem != "" {
		return outcome{}, false
	}
	a.BlockedBy = slices.Clone(a.BlockedBy)
	for i, id := range a.BlockedBy {
		if made, is := f.made[id]; is {
			a.BlockedBy[i] = string(made)
		}
	}
	act, before := restated.Take(a)
	if before && a.Type == domain.ActionCreateSubtask {
		f.made[actionPlace(n)] = xid.ID(act.ID)
	}
	return outcome{Type: a.Type, Done: true, Before: true, ID: xid.ID(act.ID)}, before
}

// actionPlace is how a result names what its n-th action makes, from 0.
func actionPlace(n int) string { return fmt.Sprintf("#%d", n+1) }

// carryOutOne runs one action in a savepoint. The error is one that ends the transaction.
func (t *tx) carryOutOne(ctx context.Context, f *followUp, kind domain.ActionType, problem string, do func() (xid.ID, error)) (outcome, error) {
	o := outcome{Type: kind, Problem: problem}
	if problem != "" {
		return o, nil
	}
	err := t.savepoint(ctx, func() (err error) { o.ID, err = do(); return err })
	if err == nil {
		o.Done = true
		return o, nil
	}
	if ctx.Err() != nil || postgres.Away(err) || pgtx.Retryable(err) {
		return o, err
	}
	o.ID, o.Problem = "", "rouse could not do it; the cause is in its log"
	if user, ok := errors.AsType[*domain.UserError](err); ok {
		o.Problem = user.Error()
	} else {
		t.onCommit(func(s *base) {
			s.log.Error("an action of a run failed", keysOf(f.run, "action", kind, "error", err)...)
		})
	}
	fresh, err := t.readTasks(ctx, slices.Collect(maps.Keys(f.tasks))...) // what the action changed of them is undone
	maps.Copy(f.tasks, fresh)
	return o, err
}

// act does one action and names the record that it made or changed.
func (t *tx) act(ctx context.Context, f *followUp, a domain.Action, n int) (xid.ID, error) {
	if a.Type == domain.ActionSelfWake {
		id, _, err := t.selfWake(ctx, f.run, f.cause, a, strconv.Itoa(n))
		return id, err
	}
	if a.Type == domain.ActionDecideApproval {
		return t.decideByAction(ctx, f, a)
	}
	if a.Type == domain.ActionAddLink {
		return t.addLink(ctx, f.run, a)
	}
	r, err := taskOf(f.tasks, f.run.workspaceID, f.run.taskID)
	if err != nil {
		return "", err
	}
	switch a.Type {
	case domain.ActionComment:
		return t.commentByAction(ctx, f, r, a)
	case domain.ActionMoveTask:
		_, err := t.move(ctx, f.tasks, r, move{to: a.State, note: a.Note, cause: f.cause})
		return r.id, err
	case domain.ActionCompleteTask:
		_, err := t.move(ctx, f.tasks, r, move{to: domain.TaskStateDone, cause: f.cause})
		return r.id, err
	case domain.ActionCreateSubtask:
		return t.subtask(ctx, f, a, n)
	case domain.ActionRequestApproval:
		id, _, err := t.ask(ctx, r, question{text: a.Question, field: "question", by: f.cause})
		return id, err
	}
	return "", fmt.Errorf("no way to carry out %s", a.Type)
}

// commentByAction comments on the run's task, and wakes whom the comment mentions.
func (t *tx) commentByAction(ctx context.Context, f *followUp, r *taskRow, a domain.Action) (xid.ID, error) {
	var mentions []xid.ID
	for _, id := range a.Mentions {
		mentions = append(mentions, xid.ID(id))
	}
	if err := t.checkAgents(ctx, f.run.workspaceID, "mentions", mentions); err != nil {
		return "", err
	}
	id, _, err := t.comment(ctx, r, newComment{author: f.cause.author(), body: a.Body, mentions: mentions, causationID: f.cause.causationID}, f.cause)
	return id, err
}

// subtask makes a child of the run's task. Its blockers are tasks by their ids, or by the place of the action that makes
// them.
func (t *tx) subtask(ctx context.Context, f *followUp, a domain.Action, n int) (xid.ID, error) {
	in := CreateTask{WorkspaceID: f.run.workspaceID, ID: xid.New("tsk"), Title: a.Title, Description: a.Description, ParentID: f.run.taskID,
		AssigneeID: xid.ID(a.Assignee), RequiresApproval: a.RequiresApproval}
	for _, id := range a.BlockedBy {
		blocker := xid.ID(id)
		if strings.HasPrefix(id, "#") {
			if blocker = f.made[id]; blocker == "" {
				return "", domain.RefuseField([]string{"blocked_by"}, domain.UserErrorCodeInvalid, "action %s has made no subtask", id)
			}
		}
		in.BlockedBy = append(in.BlockedBy, blocker)
	}
	made, _, err := t.createTask(ctx, in, f.cause)
	if err != nil {
		return "", err
	}
	f.tasks[made.id], f.made[actionPlace(n)] = made, made.id
	return in.ID, nil
}

func (t *tx) decideByAction(ctx context.Context, f *followUp, a domain.Action) (xid.ID, error) {
	taskID, err := pgtx.QueryOne[xid.ID](ctx, t, `SELECT task_id FROM approvals WHERE id = $1 AND workspace_id = $2`, a.ApprovalID, f.run.workspaceID)
	if err != nil {
		return "", pgtx.NotFound(err, []string{"approval_id"}, "approval", xid.ID(a.ApprovalID))
	}
	status := domain.ApprovalStatusRejected
	if a.Approved {
		status = domain.ApprovalStatusApproved
	}
	_, err = t.decide(ctx, f.tasks, taskID, Decide{WorkspaceID: f.run.workspaceID, ApprovalID: xid.ID(a.ApprovalID), AgentID: f.run.agentID, Status: status, Note: a.Note}, f.cause)
	return xid.ID(a.ApprovalID), err
}

// selfWake wakes the run's agent once more. which tells the run's self wakes apart: of two with the same one there is the first alone.
func (t *tx) selfWake(ctx context.Context, run runRow, by cause, a domain.Action, which string) (id xid.ID, again bool, err error) {
	return t.insertRequest(ctx, newRequest{
		workspaceID: run.workspaceID, agentID: run.agentID, causationID: by.causationID, scope: domain.ScopeTaskless,
		source: domain.WakeupSourceSelf, class: domain.WakeClassEvent, reason: domain.FirstRunes(a.Reason, 200),
		payload: &domain.SelfPayload{Reason: a.Reason, Payload: a.Payload}, key: fmt.Sprintf("self:%s:%s", run.id, which), hops: by.hops,
	})
}
