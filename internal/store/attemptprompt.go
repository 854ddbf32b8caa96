package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/comment"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/prompt"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
)

// Bounds of what a prompt is given about a task; the prompt cuts further.
const (
	promptComments = 60
	promptTasks    = 60
)

// taskInPrompt is what the prompt says about the run's task k; nil for a taskless run. Of blockers that the agent named by itself it
// has no titles.
func (t *tx) taskInPrompt(ctx context.Context, run runRow, k *ent.Task) (shown *prompt.Task, err error) {
	if run.taskID == "" {
		return nil, nil
	}
	if k == nil {
		return nil, fmt.Errorf("read the task: %s is gone", run.taskID)
	}
	shown = &prompt.Task{ID: string(k.ID), Title: k.Title, Description: k.Description, State: k.State}
	if p := k.Edges.Project; p != nil {
		shown.Project = p.Name
	}
	if err := t.linksInPrompt(ctx, run, shown); err != nil {
		return nil, err
	}
	newest, err := t.promptComments(ctx, newestComments, run.taskID, promptComments)
	if err != nil {
		return nil, err
	}
	slices.Reverse(newest)
	if shown.Comments = newest; len(newest) == promptComments { // there may be more
		if shown.CommentCount, err = t.Comment.Query().Where(comment.TaskID(run.taskID)).Count(ctx); err != nil {
			return nil, fmt.Errorf("count the task's comments: %w", err)
		}
	}
	return shown, nil
}

// linkedQuery reads what the task $1 is linked with, at most $2 of each kind, for the agent $3: its open blockers, its children, and
// itself where its step completes it for its assignee.
var linkedQuery = `
(SELECT 'blocker' AS kind, x.id, CASE WHEN ` + guard.NamedBlind("$3") + ` THEN '' ELSE x.title END, x.state
FROM task_blockers b
JOIN tasks x ON x.id = b.blocker_id
WHERE b.task_id = $1 AND ` + guard.TaskOpen("x") + `
ORDER BY x.id
LIMIT $2)
UNION ALL
(SELECT 'child', id, title, state
FROM tasks
WHERE parent_id = $1 AND archived_at IS NULL AND deleted_at IS NULL
ORDER BY id
LIMIT $2)
UNION ALL
SELECT 'completes', t.id, '', t.state
FROM tasks t
JOIN workflow_steps s ON s.id = t.step_id
WHERE t.id = $1 AND t.assignee_id = $3 AND s.on_enter @> '["` + string(domain.StepActionAutoComplete) + `"]'
ORDER BY 1, 2`

// linksInPrompt fills in what the run's task is linked with.
func (t *tx) linksInPrompt(ctx context.Context, run runRow, shown *prompt.Task) error {
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
		var kind string
		var r prompt.TaskRef
		err = rows.Scan(&kind, &r.ID, &r.Title, &r.State)
		switch kind {
		case "blocker":
			shown.Blockers = append(shown.Blockers, r)
		case "child":
			shown.Children = append(shown.Children, r)
		default:
			shown.Completes = true
		}
		return struct{}{}, err
	}, linkedQuery, run.taskID, promptTasks, run.agentID)
	return pgtx.Wrap("read what the task is linked with", err)
}

func (t *tx) taskRefs(ctx context.Context, query string, args ...any) ([]prompt.TaskRef, error) {
	refs, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (r prompt.TaskRef, err error) { return r, rows.Scan(&r.ID, &r.Title, &r.State) }, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read tasks for the prompt: %w", err)
	}
	return refs, nil
}

const commentsInPrompt = `
SELECT c.id, coalesce(a.name, CASE WHEN c.channel = '' THEN c.author_name ELSE c.author_name || ' (' || c.channel || ')' END),
  c.body, c.created_at
FROM comments c
LEFT JOIN agents a ON a.id = c.author_agent_id
`

// newestComments are the newest $2 comments on the task $1, the newest first.
const newestComments = commentsInPrompt + `WHERE c.task_id = $1
ORDER BY c.created_at DESC, c.id DESC
LIMIT $2`

// promptComments reads comments with their authors' names.
func (t *tx) promptComments(ctx context.Context, query string, args ...any) ([]prompt.Comment, error) {
	found, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (c prompt.Comment, err error) {
		return c, rows.Scan(&c.ID, &c.Author, &c.Body, &c.At)
	}, query, args...)
	return found, pgtx.Wrap("read comments for the prompt", err)
}

// recordsInPrompt fills in what the ids in the wakes' payloads stand for, in one query for each kind.
func (t *tx) recordsInPrompt(ctx context.Context, run runRow, wakes []prompt.Wake, of *prompt.Task) error {
	n := namedRecords{run: run}
	for _, w := range wakes {
		n.want(w, of)
	}
	if err := t.readNamed(ctx, &n); err != nil {
		return err
	}
	for i := range wakes {
		n.show(&wakes[i], of)
	}
	return nil
}

// namedRecords are the records that the payloads of wakes name: whose they are, and what is shown of them once they are read.
type namedRecords struct {
	run runRow // whose prompt it is

	commentIDs, approvalIDs, agentIDs, taskIDs, toApprove []string

	comments         map[string]*prompt.Comment
	questions, names map[string]string
	resolved         []prompt.TaskRef
	open             map[string][]prompt.Approval

	toldOf   []string                    // tasks
	outcomes map[string][]prompt.Outcome // by task
}

// want notes what a wake of a run about the task of names.
func (n *namedRecords) want(w prompt.Wake, of *prompt.Task) {
	switch p := w.Payload.(type) {
	case *domain.CommentPayload:
		n.commentIDs = append(n.commentIDs, p.CommentID)
	case *domain.ApprovalPayload:
		n.approvalIDs = append(n.approvalIDs, p.ApprovalID)
	case *domain.AgentErrorPayload:
		n.agentIDs = append(n.agentIDs, p.FailedAgentID)
	case *domain.BudgetPayload:
		n.agentIDs = append(n.agentIDs, p.AgentID)
	case *domain.BlockersPayload:
		n.taskIDs, n.toldOf = append(n.taskIDs, p.ResolvedBlockerIDs...), append(n.toldOf, p.ResolvedBlockerIDs...)
	case *domain.TaskPayload:
		switch {
		case w.Source == domain.WakeupSourceTaskAssigned:
			n.toldOf = append(n.toldOf, p.TaskID)
		case of != nil:
			for _, child := range of.Children {
				n.toldOf = append(n.toldOf, child.ID)
			}
		}
		if p.Basis == domain.WakeBasisApprover {
			n.toApprove = append(n.toApprove, p.TaskID)
		}
	}
}

// show gives a wake what its payload names.
func (n *namedRecords) show(w *prompt.Wake, of *prompt.Task) {
	switch p := w.Payload.(type) {
	case *domain.CommentPayload:
		w.Comment = n.comments[p.CommentID]
	case *domain.ApprovalPayload:
		w.Question = n.questions[p.ApprovalID]
	case *domain.AgentErrorPayload:
		w.Agent = n.names[p.FailedAgentID]
	case *domain.BudgetPayload:
		w.Agent = n.names[p.AgentID]
	case *domain.BlockersPayload:
		w.Tasks = n.withOutcomes(slices.DeleteFunc(slices.Clone(n.resolved), func(r prompt.TaskRef) bool { return !slices.Contains(p.ResolvedBlockerIDs, r.ID) }))
	case *domain.TaskPayload:
		switch {
		case w.Source == domain.WakeupSourceTaskAssigned:
			w.Outcomes = n.outcomes[p.TaskID]
		case of != nil:
			w.Tasks = n.withOutcomes(slices.Clone(of.Children))
		}
		if p.Basis == domain.WakeBasisApprover {
			w.Approvals = n.open[p.TaskID]
		}
	}
}

// readNamed reads what is wanted, each kind of record in one statement.
func (t *tx) readNamed(ctx context.Context, n *namedRecords) (err error) {
	if n.open, err = t.openApprovals(ctx, n.toApprove); err != nil {
		return err
	}
	if n.outcomes, err = t.outcomesOf(ctx, n.run, n.toldOf); err != nil {
		return err
	}
	if n.comments, err = t.promptCommentsByID(ctx, n.commentIDs); err != nil {
		return err
	}
	if n.questions, err = t.textsByID(ctx, `SELECT id, question FROM approvals WHERE id = ANY($1)`, n.approvalIDs); err != nil {
		return err
	}
	if n.names, err = t.textsByID(ctx, `SELECT id, name FROM agents WHERE id = ANY($1)`, n.agentIDs); err != nil {
		return err
	}
	if len(n.taskIDs) == 0 {
		return nil
	}
	n.resolved, err = t.taskRefs(ctx, resolvedQuery, pgtx.TextArray(n.taskIDs), n.run.taskID, n.run.agentID)
	return err
}

// resolvedQuery reads the blockers $1 of the task $2 for the agent $3.
var resolvedQuery = `
SELECT x.id,
  CASE WHEN EXISTS (SELECT 1 FROM task_blockers b WHERE b.task_id = $2 AND b.blocker_id = x.id AND ` + guard.NamedBlind("$3") + `) THEN '' ELSE x.title END,
  x.state
FROM tasks x
WHERE x.id = ANY($1)
ORDER BY x.id`

// promptApprovals is how many open approvals of tasks a prompt names.
const promptApprovals = 20

// openApprovals are what waits for a decision on tasks, by task, the oldest first.
func (t *tx) openApprovals(ctx context.Context, taskIDs []string) (map[string][]prompt.Approval, error) {
	found := map[string][]prompt.Approval{}
	if len(taskIDs) == 0 {
		return found, nil
	}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (a prompt.Approval, err error) {
		var of string
		err = rows.Scan(&of, &a.ID, &a.Question)
		found[of] = append(found[of], a)
		return a, err
	}, `
SELECT task_id, id, question FROM approvals WHERE task_id = ANY($1) AND status = 'PENDING' ORDER BY id LIMIT $2`, pgtx.TextArray(taskIDs), promptApprovals)
	return found, pgtx.Wrap("read the open approvals", err)
}

func (t *tx) promptCommentsByID(ctx context.Context, list []string) (map[string]*prompt.Comment, error) {
	found := map[string]*prompt.Comment{}
	if len(list) == 0 {
		return found, nil
	}
	rows, err := t.promptComments(ctx, commentsInPrompt+`WHERE c.id = ANY($1)`, pgtx.TextArray(list))
	for i := range rows {
		found[rows[i].ID] = &rows[i]
	}
	return found, err
}

// textsByID reads one text for each id.
func (t *tx) textsByID(ctx context.Context, query string, list []string) (map[string]string, error) {
	found := map[string]string{}
	if len(list) == 0 {
		return found, nil
	}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var id, text string
		err := rows.Scan(&id, &text)
		found[id] = text
		return struct{}{}, err
	}, query, pgtx.TextArray(list))
	if err != nil {
		return nil, fmt.Errorf("read records for the prompt: %w", err)
	}
	return found, nil
}
