package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// taskRow is a task, locked, with what its changes depend on.
type taskRow struct {
	id, workspaceID, workflowID, stepID, projectID, parentID, assigneeID, checkoutRunID xid.ID

	title, description            string
	state                         domain.TaskState
	archived, requiresApproval    bool
	revision                      int
	assignmentVersion, generation int

	office, assignmentQueued bool
	stepActions              []domain.StepAction
	reviewers, approvers     []string
	openBlockers             []string
}

// inOfficeWorkflow says of a workflow f that it is the office workflow of its workspace w.
const inOfficeWorkflow = `f.id IS NOT DISTINCT FROM w.office_workflow_id`

// officeTask is domain.IsOffice in SQL, of a task t with its workspace w and its workflow f.
const officeTask = `(t.project_id IS NOT NULL OR ` + inOfficeWorkflow + ` OR f.kind = 'ROUTINE')`

var taskQuery = `
SELECT t.id, t.workspace_id, t.workflow_id, t.step_id, t.project_id, t.parent_id, t.assignee_id,
  t.checkout_run_id, t.title, t.description, t.state, t.archived_at IS NOT NULL, t.requires_approval,
  t.revision, t.assignment_version, t.wake_generation, ` + officeTask + `,
  -- the loop acts on it no more, but its assignment is still queued from when it did
  NOT ` + officeTask + ` AND EXISTS (
    SELECT 1
    FROM wakeup_requests q
    LEFT JOIN runs r ON r.id = q.run_id
    WHERE q.task_id = t.id
      AND q.agent_id = t.assignee_id
      AND q.source = 'TASK_ASSIGNED'
      AND q.basis = 'ASSIGNEE'
      AND q.finished_at IS NULL
      AND (q.run_id IS NULL OR r.status = 'QUEUED')),
  s.on_enter,
  ARRAY(SELECT agent_id FROM task_reviewers WHERE task_id = t.id ORDER BY 1),
  ARRAY(SELECT agent_id FROM task_approvers WHERE task_id = t.id ORDER BY 1),
  ARRAY(
    SELECT x.id
    FROM task_blockers b
    JOIN tasks x ON x.id = b.blocker_id
    WHERE b.task_id = t.id AND ` + guard.TaskOpen("x") + `
    ORDER BY 1)
FROM tasks t
JOIN workspaces w ON w.id = t.workspace_id
JOIN workflows f ON f.id = t.workflow_id
JOIN workflow_steps s ON s.id = t.step_id
WHERE t.id = ANY($1) AND t.deleted_at IS NULL`

func scanTask(rows *sql.Rows) (*taskRow, error) {
	var r taskRow
	var actions []byte
	var reviewers, approvers, blockers pq.StringArray
	err := rows.Scan(&r.id, &r.workspaceID, &r.workflowID, &r.stepID, &r.projectID, &r.parentID, &r.assigneeID, &r.checkoutRunID, &r.title, &r.description, &r.state,
		&r.archived, &r.requiresApproval, &r.revision, &r.assignmentVersion, &r.generation, &r.office, &r.assignmentQueued, &actions, &reviewers, &approvers, &blockers)
	if err != nil {
		return nil, err
	}
	r.reviewers, r.approvers, r.openBlockers = reviewers, approvers, blockers
	return &r, json.Unmarshal(actions, &r.stepActions)
}

// lockTasks locks tasks in the order of their ids and reads them in a statement of its own, so that it sees what the
// former holders committed. Tasks that are not there are not in the answer.
func (t *tx) lockTasks(ctx context.Context, taskIDs ...xid.ID) (map[xid.ID]*taskRow, error) {
	if _, err := pgtx.Exec(ctx, t, `SELECT 1 FROM tasks WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE`, pgtx.IDs(taskIDs)); err != nil {
		return nil, fmt.Errorf("lock tasks: %w", err)
	}
	return t.readTasks(ctx, taskIDs...)
}

func (t *tx) readTasks(ctx context.Context, taskIDs ...xid.ID) (map[xid.ID]*taskRow, error) {
	rows, err := pgtx.Collect(ctx, t, scanTask, taskQuery, pgtx.IDs(taskIDs))
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	byID := make(map[xid.ID]*taskRow, len(rows))
	for _, r := range rows {
		byID[r.id] = r
	}
	return byID, nil
}

// taskOf is a task that the caller may change: it is in the workspace and not archived.
func taskOf(tasks map[xid.ID]*taskRow, workspaceID, taskID xid.ID) (*taskRow, error) {
	r := tasks[taskID]
	switch {
	case r == nil || r.workspaceID != workspaceID:
		return nil, domain.RefuseField([]string{"taskId"}, domain.UserErrorCodeNotFound, "there is no task %s in this workspace", taskID)
	case r.archived:
		return nil, domain.RefuseField([]string{"taskId"}, domain.UserErrorCodeInvalidState, "the task is archived; make a new one instead")
	}
	return r, nil
}

// withTask runs f with one task locked that may be changed; the clock is read after the lock.
func (s *Tasks) withTask(ctx context.Context, workspaceID, taskID xid.ID, f func(*tx, *taskRow) error) error {
	return s.inTx(ctx, func(t *tx) error {
		tasks, err := t.lockTasks(ctx, taskID)
		if err != nil {
			return err
		}
		r, err := taskOf(tasks, workspaceID, taskID)
		if err != nil {
			return err
		}
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		return f(t, r)
	})
}

// facts is the task as the rules about its wakes see it.
func (r *taskRow) facts() domain.TaskFacts {
	return domain.TaskFacts{ID: string(r.id), Office: r.office, State: r.state, Archived: r.archived, AssigneeID: string(r.assigneeID),
		StepID: string(r.stepID), StepActions: r.stepActions, Reviewers: r.reviewers, Approvers: r.approvers,
		OpenBlockers: len(r.openBlockers), AssignmentQueued: r.assignmentQueued, Generation: r.generation}
}

// ended says whether the task holds nobody up any more.
func (r *taskRow) ended() bool { return r.state.Ended() || r.archived }

// cause is who changes a task, and the chain in which they do.
type cause struct {
	by          actor
	agentID     xid.ID // that acts, or that is named as the author; "" for people
	causationID xid.ID
	hops        int // of the requests that follow
}

// causeOf is the caller whom the API put into ctx: an agent by the token of its run goes on with the run's chain, anybody
// else begins one.
func (t *tx) causeOf(ctx context.Context) (cause, error) {
	c := cause{by: callerOr(ctx, "tasks"), causationID: xid.New("cau")}
	caller, _ := auth.FromContext(ctx)
	if caller.Kind != auth.KindRun {
		return c, nil
	}
	var hops int
	if err := pgtx.QueryRow(ctx, t, []any{&c.causationID, &hops}, `SELECT causation_id, hops FROM runs WHERE id = $1`, caller.RunID); err != nil {
		return c, fmt.Errorf("read the caller's run: %w", err)
	}
	c.agentID, c.hops = caller.AgentID, domain.NextHops(hops)
	return c, nil
}

// causeOfRun is a run that acts by its result.
func causeOfRun(run runRow) cause {
	return cause{by: actor{domain.AuthorKindAgent, string(run.agentID)}, agentID: run.agentID, causationID: run.causationID, hops: domain.NextHops(run.hops)}
}

// author is who a text of this cause is by: the agent that acts or is named, else the caller.
func (c cause) author() actor {
	if c.agentID != "" {
		return actor{domain.AuthorKindAgent, string(c.agentID)}
	}
	return c.by
}

// change is one change of a locked task: what it was and what it becomes.
type change struct {
	before, after taskRow
	cause         cause

	returnComment xid.ID   // says why it came back from review
	endedBlockers []string // that ended or were taken off
	linkEnded     bool     // a blocker or a child has ended
	said          bool     // somebody said where the task stands
	summary       string   // for the feed
	data          map[string]any
}

// apply writes a change, sends the wakes that it causes, and returns their requests.
func (t *tx) apply(ctx context.Context, c *change) ([]xid.ID, error) {
	events := domain.TaskChange{Before: c.before.facts(), After: c.after.facts(), ByAgentID: string(c.cause.agentID),
		ReturnCommentID: string(c.returnComment), EndedBlockers: c.endedBlockers}
	generation, wakes := follows(events, c.linkEnded)
	c.after.generation = generation
	if err := t.writeTask(ctx, c); err != nil {
		return nil, err
	}
	if c.said {
		if err := t.noteWord(ctx, c.after.id); err != nil {
			return nil, err
		}
	}
	if c.summary != "" {
		if err := t.noteTask(ctx, c.after, c.cause, domain.ActivityCodeTaskChanged, c.summary, c.data); err != nil {
			return nil, err
		}
	}
	return t.sendWakes(ctx, c.after, c.cause, wakes)
}

// taskMade says in the feed that a task is new.
const taskMade = "The task was made."

// follows is what follows from a change by itself: the task's generation afterwards, and the wakes that are keyed on it.
func follows(c domain.TaskChange, linkEnded bool) (generation int, wakes []domain.TaskWake) {
	c.After.Generation = c.NextGeneration(linkEnded)
	return c.After.Generation, domain.WakeupsFor(c)
}

func (t *tx) writeTask(ctx context.Context, c *change) error {
	a := c.after
	const query = `
-- $1 title, $2 description, $3 state, $4 step, $5 project, $6 assignee, $7 number of the assignment, $8
-- generation, $9 whether the end needs an approval, $10 whether it is archived, $11 now, $12 task
UPDATE tasks
SET title = $1, description = $2, state = $3, step_id = $4, project_id = $5, assignee_id = $6,
  assignment_version = $7, wake_generation = $8, requires_approval = $9,
  archived_at = CASE WHEN $10 THEN coalesce(archived_at, $11) END, updated_at = $11, revision = revision + 1
WHERE id = $12`
	err := pgtx.ExecOne(ctx, t, query, a.title, a.description, a.state, a.stepID, a.projectID, a.assigneeID, a.assignmentVersion, a.generation, a.requiresApproval,
		a.archived, t.Now, a.id)
	if err != nil {
		return fmt.Errorf("write the task: %w", err)
	}
	return nil
}

func (t *tx) noteTask(ctx context.Context, r taskRow, c cause, code domain.ActivityCode, summary string, data map[string]any) error {
	return t.note(ctx, entry{workspaceID: r.workspaceID, code: code, by: c.by, summary: summary, subjectID: r.id, agentID: r.assigneeID,
		taskID: r.id, causationID: c.causationID, data: data})
}

// sendWakes inserts the requests of wakes, unrouted, and returns those that are new.
func (t *tx) sendWakes(ctx context.Context, r taskRow, c cause, wakes []domain.TaskWake) ([]xid.ID, error) {
	var sent []xid.ID
	for _, w := range wakes {
		q := newRequest{workspaceID: r.workspaceID, agentID: xid.ID(w.AgentID), causationID: c.causationID, scope: domain.WakeScope(w.Source, string(r.id)),
			source: w.Source, class: domain.WakeClassEvent, personWaiting: w.PersonWaiting, reason: w.Reason, payload: w.Payload, key: w.Key, hops: c.hops}
		if w.Source.TaskBound() {
			q.taskID = r.id
		}
		if w.Basis != "" {
			q.basis = &w.Basis
		}
		id, duplicate, err := t.insertRequest(ctx, q)
		if err != nil {
			return nil, err
		}
		if !duplicate {
			sent = append(sent, id)
		}
	}
	return sent, nil
}
