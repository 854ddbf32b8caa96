package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// approvalRow is an approval of a locked task.
type approvalRow struct {
	id, workspaceID, taskID, requestedByID, causationID xid.ID

	status     domain.ApprovalStatus
	completion bool
	question   string
}

func (a approvalRow) facts(r *taskRow) domain.ApprovalFacts {
	return domain.ApprovalFacts{ID: string(a.id), Status: a.status, Completion: a.completion, RequestedByID: string(a.requestedByID), AssigneeID: string(r.assigneeID),
		Approvers: r.approvers}
}

const approvalColumns = `id, workspace_id, task_id, requested_by_id, causation_id, status, completion, question`

func scanApproval(rows *sql.Rows) (a approvalRow, err error) {
	return a, rows.Scan(&a.id, &a.workspaceID, &a.taskID, &a.requestedByID, &a.causationID, &a.status, &a.completion, &a.question)
}

func (t *tx) readApproval(ctx context.Context, condition string, args ...any) (*approvalRow, error) {
	var a approvalRow
	err := pgtx.QueryRow(ctx, t, []any{&a.id, &a.workspaceID, &a.taskID, &a.requestedByID, &a.causationID, &a.status, &a.completion, &a.question},
		`SELECT `+approvalColumns+` FROM approvals WHERE `+condition, args...)
	if pgtx.NoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read approval: %w", err)
	}
	return &a, nil
}

// pendingCompletion is the open approval that decides whether the task is done; nil when none is open.
func (t *tx) pendingCompletion(ctx context.Context, r *taskRow) (*approvalRow, error) {
	return t.readApproval(ctx, `task_id = $1 AND status = 'PENDING' AND completion ORDER BY id LIMIT 1`, r.id)
}

// askCompletion puts a completed task into review and asks for the decision (SPEC S5.4).
func (t *tx) askCompletion(ctx context.Context, tasks map[xid.ID]*taskRow, r *taskRow, by cause) ([]xid.ID, error) {
	m := move{to: domain.TaskStateInReview, cause: by}
	to, err := t.target(ctx, r, m)
	if err != nil {
		return nil, err
	}
	var sent []xid.ID
	if r.state != domain.TaskStateInReview {
		if sent, err = t.enter(ctx, tasks, r, to, m); err != nil {
			return nil, err
		}
	}
	_, asked, err := t.ask(ctx, r, question{text: "Is “" + r.title + "” done?", completion: true, by: by})
	return append(sent, asked...), err
}

// question is an approval to ask for. Field is what the asker calls its text.
type question struct {
	text       string
	field      string
	completion bool
	by         cause
}

// ask records an open approval, puts it into the inbox and wakes the approvers.
func (t *tx) ask(ctx context.Context, r *taskRow, q question) (xid.ID, []xid.ID, error) {
	if err := domain.AsUserError(domain.CheckCommentBody(q.field, q.text)); err != nil {
		return "", nil, err
	}
	id := xid.New("apr")
	const query = `
INSERT INTO approvals (id, workspace_id, causation_id, task_id, question, status, completion,
    requested_by_id, decided_by_name, note)
VALUES ($1, $2, $3, $4, $5, 'PENDING', $6, $7, '', '')`
	if err := pgtx.ExecOne(ctx, t, query, id, r.workspaceID, q.by.causationID, r.id, q.text, q.completion, q.by.agentID); err != nil {
		return "", nil, fmt.Errorf("insert approval: %w", err)
	}
	if err := t.noteWord(ctx, r.id); err != nil {
		return "", nil, err
	}
	err := t.note(ctx, entry{workspaceID: r.workspaceID, code: domain.ActivityCodeApprovalRequested, by: q.by.by, summary: "An approval was asked for.", subjectID: id,
		agentID: q.by.agentID, taskID: r.id, causationID: q.by.causationID, data: map[string]any{"approvalId": id, "completion": q.completion}})
	if err != nil {
		return "", nil, err
	}
	err = t.inbox(ctx, item{workspaceID: r.workspaceID, kind: domain.InboxKindApprovalRequest, dedupe: approvalItem(id), title: "Approval wanted: " + r.title,
		body: q.text, subject: id, causationID: q.by.causationID, about: q.by.agentID, taskID: r.id})
	if err != nil {
		return "", nil, err
	}
	asked := approvalRow{id: id, requestedByID: q.by.agentID, status: domain.ApprovalStatusPending, completion: q.completion}
	sent, err := t.sendWakes(ctx, *r, q.by, domain.ApproverWakes(r.facts(), asked.facts(r), string(q.by.agentID)))
	return id, sent, err
}

// approvalItem is the dedupe key of an approval's inbox item.
func approvalItem(id xid.ID) string { return "approval:" + string(id) }

// writeDecision records a decision and takes its item out of the inbox.
func (t *tx) writeDecision(ctx context.Context, a approvalRow, status domain.ApprovalStatus, note string, by cause) error {
	const query = `
UPDATE approvals
SET status = $2, decided_by_kind = $3, decided_by_id = $4, decided_by_name = $5, note = $6, decided_at = $7
WHERE id = $1 AND status = 'PENDING'`
	author := by.author()
	if by.agentID != "" {
		author.name = ""
	}
	if err := pgtx.ExecOne(ctx, t, query, a.id, status, author.kind, by.agentID, author.name, note, t.Now); err != nil {
		return fmt.Errorf("write the decision: %w", err)
	}
	return t.handleItem(ctx, a.workspaceID, approvalItem(a.id), by.by)
}

// RequestApproval asks for a decision on a task. Its answer wakes the agent that asks.
type RequestApproval struct {
	WorkspaceID, TaskID, AgentID xid.ID
	Question                     string
	Idempotency
}

// RequestApproval records the question and returns the requests of the approvers' wakes.
func (s *Tasks) RequestApproval(ctx context.Context, in RequestApproval) (made Made, sent []xid.ID, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, in.WorkspaceID, "requestApproval", in.Idempotency, func() (Made, error) {
			var id xid.ID
			id, sent, err = t.requestApproval(ctx, in)
			return Made{ID: id}, err
		})
		if err == nil && made.Replayed {
			sent, err = t.requestsByKey(ctx, in.WorkspaceID, "approve:"+string(made.ID)+":")
		}
		return err
	})
	return made, sent, pgtx.Wrap("request approval", err)
}

func (t *tx) requestApproval(ctx context.Context, in RequestApproval) (xid.ID, []xid.ID, error) {
	run, err := t.actingRun(ctx)
	if err != nil {
		return "", nil, err
	}
	tasks, err := t.lockTasks(ctx, in.TaskID)
	if err != nil {
		return "", nil, err
	}
	r, err := taskOf(tasks, in.WorkspaceID, in.TaskID)
	if err != nil {
		return "", nil, err
	}
	if err := t.checkAgent(ctx, in.WorkspaceID, in.AgentID, []string{"requestedByAgentId"}); err != nil {
		return "", nil, err
	}
	if err := t.ReadClock(ctx); err != nil {
		return "", nil, err
	}
	c, err := t.causeOf(ctx)
	if err != nil {
		return "", nil, err
	}
	c.agentID = in.AgentID
	id, sent, err := t.ask(ctx, r, question{text: in.Question, field: "note", by: c})
	if err != nil {
		return "", nil, err
	}
	return id, sent, t.noteAct(ctx, run, domain.Action{Type: domain.ActionRequestApproval, Question: in.Question}, id)
}

// Decide is a decision on an approval: by a person, or by AgentID, one of the task's approvers. UserID names the person to
// the front end.
type Decide struct {
	WorkspaceID, ApprovalID, AgentID xid.ID
	UserID                           string
	Status                           domain.ApprovalStatus // APPROVED or REJECTED
	Note                             string
}

// Decide decides an approval (SPEC S5.4): a completion's makes the task DONE or sends it back with the note, any other's
// wakes the agent that asked. It returns the requests of the wakes, and those that ended with the task.
func (s *Tasks) Decide(ctx context.Context, in Decide) (sent, cancelled []xid.ID, err error) {
	taskID, err := pgtx.QueryOne[xid.ID](ctx, s.db, `SELECT task_id FROM approvals WHERE id = $1 AND workspace_id = $2`, in.ApprovalID, in.WorkspaceID)
	if err != nil {
		return nil, nil, pgtx.NotFound(err, []string{"approvalId"}, "approval", in.ApprovalID)
	}
	err = s.inTx(ctx, func(t *tx) error {
		if err := t.lockWaiting(ctx, taskID); err != nil { // it may complete the task
			return err
		}
		act := domain.Action{Type: domain.ActionDecideApproval, ApprovalID: string(in.ApprovalID), Approved: in.Status == domain.ApprovalStatusApproved}
		run, before, err := t.actingOnce(ctx, act)
		if err != nil || before {
			return err
		}
		tasks, err := t.lockEnding(ctx, []xid.ID{taskID})
		if err != nil {
			return err
		}
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		c, err := t.causeOf(ctx)
		if err != nil {
			return err
		}
		if in.AgentID != "" {
			c.agentID = in.AgentID
		} else if in.UserID != "" {
			c.by = actor{domain.AuthorKindUser, in.UserID}
		}
		if sent, err = t.decide(ctx, tasks, taskID, in, c); err != nil {
			return err
		}
		if err := t.noteAct(ctx, run, act, in.ApprovalID); err != nil {
			return err
		}
		cancelled, err = t.endWaiting(ctx)
		return err
	})
	return sent, cancelled, pgtx.Wrap("decide approval", err)
}

// errNoTask says that an approval's task is not there any more.
var errNoTask = errors.New("the approval's task is gone")

// decide decides an approval whose task, with its dependents, is locked.
func (t *tx) decide(ctx context.Context, tasks map[xid.ID]*taskRow, taskID xid.ID, in Decide, by cause) ([]xid.ID, error) {
	if err := domain.AsUserError(domain.CheckNote("note", in.Note)); err != nil {
		return nil, err
	}
	r := tasks[taskID]
	if r == nil {
		return nil, errNoTask
	}
	a, err := t.readApproval(ctx, `id = $1`, in.ApprovalID)
	if err != nil {
		return nil, err
	}
	if err := domain.AsUserError(domain.MayDecide(a.facts(r), string(by.agentID))); err != nil {
		return nil, err
	}
	if err := t.writeDecision(ctx, *a, in.Status, in.Note, by); err != nil {
		return nil, err
	}
	err = t.note(ctx, entry{workspaceID: r.workspaceID, code: domain.ActivityCodeApprovalDecided, by: by.by, summary: "An approval was decided: " + string(in.Status) + ".",
		subjectID: a.id, agentID: a.requestedByID, taskID: r.id, causationID: by.causationID, data: map[string]any{"approvalId": a.id, "status": in.Status, "completion": a.completion}})
	if err != nil {
		return nil, err
	}
	if !a.completion {
		return t.sendWakes(ctx, *r, by, domain.DecisionWake(a.facts(r), in.Status, in.Note, string(by.agentID)))
	}
	return t.completionDecided(ctx, tasks, r, in, by)
}

// completionDecided moves the task as the decision says. A task that has ended since stays where it is.
func (t *tx) completionDecided(ctx context.Context, tasks map[xid.ID]*taskRow, r *taskRow, in Decide, by cause) ([]xid.ID, error) {
	if r.ended() {
		return nil, nil
	}
	m := move{to: domain.TaskStateDone, note: in.Note, cause: by}
	if in.Status == domain.ApprovalStatusRejected {
		m.to = domain.TaskStateInProgress
	}
	to, err := t.target(ctx, r, m)
	if err != nil {
		return nil, err
	}
	return t.enter(ctx, tasks, r, to, m)
}

// requestsByKey finds requests whose idempotency key begins with a text, oldest first.
func (t *tx) requestsByKey(ctx context.Context, workspaceID xid.ID, prefix string) ([]xid.ID, error) {
	const query = `
SELECT id
FROM wakeup_requests
WHERE workspace_id = $1 AND idempotency_key >= $2 AND idempotency_key < $2 || chr(1114111)
ORDER BY requested_at, id`
	found, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, workspaceID, prefix)
	if err != nil {
		return nil, fmt.Errorf("find the first call's wakeups: %w", err)
	}
	return found, nil
}
