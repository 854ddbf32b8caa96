package store

import (
	"context"
	"encoding/json"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// CreateTask is a task to make. ID is made by the caller, since the values of Executor are sealed for it. WorkflowID "" is
// the parent's workflow, or the office workflow; ProjectID "" is the parent's project.
type CreateTask struct {
	WorkspaceID, ID                             xid.ID
	Title, Description                          string
	ProjectID, WorkflowID, ParentID, AssigneeID xid.ID
	BlockedBy                                   []xid.ID
	RequiresApproval                            bool
	Executor                                    *domain.ExecutorSpec
	Idempotency
}

// CreateTask makes a task in the first step of its workflow and returns the requests of the wakes it causes.
func (s *Tasks) CreateTask(ctx context.Context, in CreateTask) (made Made, sent []xid.ID, err error) {
	if err := domain.AsUserError(domain.CheckLinks("blockedByIds", texts(in.BlockedBy))); err != nil {
		return Made{}, nil, err
	}
	if in.ID == "" {
		in.ID = xid.New("tsk")
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, in.WorkspaceID, "createTask", in.Idempotency, func() (Made, error) {
			c, err := t.causeOf(ctx)
			if err != nil {
				return Made{}, err
			}
			run, err := t.actingRun(ctx)
			if err != nil {
				return Made{}, err
			}
			if _, err := t.lockTasks(ctx, in.BlockedBy...); err != nil {
				return Made{}, err
			}
			if err := t.ReadClock(ctx); err != nil {
				return Made{}, err
			}
			if _, sent, err = t.createTask(ctx, in, c); err != nil {
				return Made{}, err
			}
			return Made{ID: in.ID}, t.noteAct(ctx, run, domain.Action{Type: domain.ActionCreateSubtask, Title: in.Title, Description: in.Description,
				Assignee: string(in.AssigneeID), BlockedBy: texts(in.BlockedBy), RequiresApproval: in.RequiresApproval}, in.ID)
		})
		if err == nil && made.Replayed {
			sent, err = t.requestsOfCreation(ctx, made.ID)
		}
		return err
	})
	return made, sent, pgtx.Wrap("create task", err)
}

// createTask makes a task, a person's or an agent's, whose blockers are locked.
func (t *tx) createTask(ctx context.Context, in CreateTask, c cause) (*taskRow, []xid.ID, error) {
	var problems []domain.FieldError
	in.Title, problems = domain.CheckTaskTexts(in.Title, in.Description, nil)
	if err := domain.AsUserError(problems); err != nil {
		return nil, nil, err
	}
	place, err := t.placeOf(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	if in.AssigneeID != "" {
		if err := t.checkAgent(ctx, in.WorkspaceID, in.AssigneeID, []string{"assigneeId"}); err != nil {
			return nil, nil, err
		}
	}
	return t.createTaskAt(ctx, in, place, c)
}

// createTaskAt makes a task whose place and assignee were checked.
func (t *tx) createTaskAt(ctx context.Context, in CreateTask, p place, c cause) (*taskRow, []xid.ID, error) {
	if err := t.insertTask(ctx, in, p); err != nil {
		return nil, nil, err
	}
	if err := t.insertBlockers(ctx, in.WorkspaceID, in.ID, in.BlockedBy, c); err != nil {
		return nil, nil, err
	}
	tasks, err := t.readTasks(ctx, in.ID)
	if err != nil {
		return nil, nil, err
	}
	r := tasks[in.ID]
	made := change{after: *r, cause: c, summary: taskMade, data: map[string]any{"created": true}}
	sent, err := t.apply(ctx, &made)
	return &made.after, sent, err
}

// place is where a new task goes.
type place struct{ workflowID, stepID, projectID xid.ID }

// placeOf finds a new task's workflow, its first step, and its project.
func (t *tx) placeOf(ctx context.Context, in CreateTask) (p place, err error) {
	p = place{workflowID: in.WorkflowID, projectID: in.ProjectID}
	if in.ParentID != "" {
		var parentWorkflow, parentProject xid.ID
		var kind domain.WorkflowKind
		const parent = `
SELECT t.workflow_id, t.project_id, f.kind
FROM tasks t
JOIN workflows f ON f.id = t.workflow_id
WHERE t.id = $1 AND t.workspace_id = $2 AND t.deleted_at IS NULL`
		if err := pgtx.QueryRow(ctx, t, []any{&parentWorkflow, &parentProject, &kind}, parent, in.ParentID, in.WorkspaceID); err != nil {
			return p, pgtx.NotFound(err, []string{"parentId"}, "task", in.ParentID)
		}
		if p.projectID == "" {
			p.projectID = parentProject
		}
		if p.workflowID == "" && kind != domain.WorkflowKindRoutine {
			p.workflowID = parentWorkflow
		}
	}
	if in.ProjectID != "" {
		if _, err := pgtx.QueryOne[bool](ctx, t, `SELECT true FROM projects WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`, in.ProjectID, in.WorkspaceID); err != nil {
			return p, pgtx.NotFound(err, []string{"projectId"}, "project", in.ProjectID)
		}
	}
	if p.workflowID == "" {
		if p.workflowID, err = pgtx.QueryOne[xid.ID](ctx, t, `SELECT office_workflow_id FROM workspaces WHERE id = $1`, in.WorkspaceID); err != nil {
			return p, pgtx.NotFound(err, []string{"workspaceId"}, "workspace", in.WorkspaceID)
		}
	}
	if p.workflowID == "" {
		return p, domain.RefuseField([]string{"workflowId"}, domain.UserErrorCodeRequired, "the workspace has no office workflow: name a workflow (createWorkflow makes one)")
	}
	p.stepID, err = pgtx.QueryOne[xid.ID](ctx, t, `
SELECT s.id
FROM workflow_steps s
JOIN workflows f ON f.id = s.workflow_id
WHERE f.id = $1 AND f.workspace_id = $2
ORDER BY s.position
LIMIT 1`, p.workflowID, in.WorkspaceID)
	if err != nil {
		return p, pgtx.NotFound(err, []string{"workflowId"}, "workflow", p.workflowID)
	}
	return p, nil
}

func (t *tx) insertTask(ctx context.Context, in CreateTask, p place) error {
	var executor []byte
	if in.Executor != nil {
		var err error
		if executor, err = json.Marshal(in.Executor); err != nil {
			return fmt.Errorf("encode the executor: %w", err)
		}
	}
	const query = `
-- $1 id, $2 workspace, $3 title, $4 description, $5 project, $6 parent, $7 assignee, $8 number of the
-- assignment, $9 whether the end needs an approval, $10 executor, $11 now, $12 first step
INSERT INTO tasks (id, workspace_id, title, description, state, workflow_id, step_id, project_id, parent_id,
    assignee_id, assignment_version, wake_generation, requires_approval, executor, created_at, updated_at,
    revision)
SELECT $1, $2, $3, $4, s.state, s.workflow_id, s.id, $5, $6, $7, $8, 0, $9, $10, $11, $11, 0
FROM workflow_steps s WHERE s.id = $12`
	err := pgtx.ExecOne(ctx, t, query, in.ID, in.WorkspaceID, in.Title, in.Description, p.projectID, in.ParentID, in.AssigneeID, pgtx.Btoi(in.AssigneeID != ""),
		in.RequiresApproval, pgtx.Nullable(string(executor)), t.Now, p.stepID)
	if err != nil {
		return fmt.Errorf("insert task: %w", err)
	}
	return nil
}

// requestsOfCreation are the wakes of a task's making, for a call that is repeated.
func (t *tx) requestsOfCreation(ctx context.Context, taskID xid.ID) ([]xid.ID, error) {
	const query = `
SELECT id
FROM wakeup_requests
WHERE task_id = $1
  AND (idempotency_key LIKE 'task_assigned:' || $1 || ':%:1'
    OR idempotency_key LIKE 'queue_run:' || $1 || ':%.1')
ORDER BY requested_at, id`
	found, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, string(taskID))
	if err != nil {
		return nil, fmt.Errorf("find the first call's wakeups: %w", err)
	}
	return found, nil
}
