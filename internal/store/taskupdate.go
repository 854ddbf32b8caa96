package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// UpdateTask is a change of a task's texts, project, executor or need of an approval. Values of Executor are sealed for
// TaskID.
type UpdateTask struct {
	WorkspaceID, TaskID xid.ID
	ExpectedRevision    *int
	Title, Description  domain.Change[string]
	ProjectID           domain.Change[string]
	RequiresApproval    domain.Change[bool]
	Executor            domain.Change[domain.ExecutorSpec]
}

// TaskUpdated is what a change of a task causes: the requests of its wakes, the paths of the secrets that its executor lost, and
// the runs that its new executor makes due.
type TaskUpdated struct {
	Sent    []xid.ID
	Removed []string
	Moved   Moved
}

// UpdateTask changes a task. A task that becomes an office task by its project counts as assigned anew to its assignee. A
// change that changes nothing leaves the revision alone.
func (s *Tasks) UpdateTask(ctx context.Context, in UpdateTask) (done TaskUpdated, err error) {
	err = s.withTask(ctx, in.WorkspaceID, in.TaskID, func(t *tx, r *taskRow) error {
		if err := checkRevision(in.ExpectedRevision, r.revision, "task"); err != nil {
			return err
		}
		done.Sent, done.Removed, err = t.updateTask(ctx, r, in)
		return err
	})
	if err == nil && (in.Executor.Set || in.ProjectID.Set) {
		done.Moved = s.followExecutor(ctx, entry{workspaceID: in.WorkspaceID, code: domain.ActivityCodeTaskChanged, by: callerOr(ctx, "tasks"), subjectID: in.TaskID, taskID: in.TaskID})
	}
	return done, pgtx.Wrap("update task", err)
}

func (t *tx) updateTask(ctx context.Context, r *taskRow, in UpdateTask) (sent []xid.ID, removed []string, err error) {
	by, err := t.causeOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	c := change{before: *r, after: *r, cause: by, summary: "The task was changed."}
	var problems []domain.FieldError
	c.after.title, c.after.description, problems = domain.ChangedTaskTexts(r.title, r.description, in.Title, in.Description)
	if err := domain.AsUserError(problems); err != nil {
		return nil, nil, err
	}
	c.after.projectID = xid.ID(in.ProjectID.Or(string(r.projectID), ""))
	c.after.requiresApproval = in.RequiresApproval.Or(r.requiresApproval, false)
	executor, removed, err := t.changeExecutor(ctx, executorOfTask, r.id, in.Executor)
	if err != nil {
		return nil, nil, err
	}
	changed := changedFields(c, executor)
	if len(changed) == 0 {
		return nil, nil, nil
	}
	c.data = map[string]any{"changed": changed}
	if executor {
		if err := t.writeTaskExecutor(ctx, r.id, in.Executor.Value); err != nil {
			return nil, nil, err
		}
	}
	if c.after.projectID != r.projectID {
		if c.after.office, err = t.officeWith(ctx, r, c.after.projectID); err != nil {
			return nil, nil, err
		}
	}
	sent, err = t.apply(ctx, &c)
	return sent, removed, err
}

// changedFields names what a change changes, in the order of the alphabet.
func changedFields(c change, executor bool) []string {
	var changed []string
	for name, different := range map[string]bool{
		"title": c.before.title != c.after.title, "description": c.before.description != c.after.description,
		"projectId": c.before.projectID != c.after.projectID, "requiresApproval": c.before.requiresApproval != c.after.requiresApproval, "executor": executor,
	} {
		if different {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

func (t *tx) writeTaskExecutor(ctx context.Context, taskID xid.ID, spec *domain.ExecutorSpec) error {
	var encoded []byte
	if spec != nil {
		var err error
		if encoded, err = json.Marshal(spec); err != nil {
			return fmt.Errorf("encode the executor: %w", err)
		}
	}
	if err := pgtx.ExecOne(ctx, t, `UPDATE tasks SET executor = $2 WHERE id = $1`, taskID, pgtx.Nullable(string(encoded))); err != nil {
		return fmt.Errorf("write the task's executor: %w", err)
	}
	return nil
}

// officeWith says whether the loop may act on a task once it has the project.
func (t *tx) officeWith(ctx context.Context, r *taskRow, projectID xid.ID) (bool, error) {
	if projectID != "" {
		if _, err := pgtx.QueryOne[bool](ctx, t, `SELECT true FROM projects WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`, projectID, r.workspaceID); err != nil {
			return false, pgtx.NotFound(err, []string{"projectId"}, "project", projectID)
		}
	}
	var inOffice bool
	var kind domain.WorkflowKind
	const query = `
SELECT ` + inOfficeWorkflow + `, f.kind
FROM workflows f
JOIN workspaces w ON w.id = f.workspace_id
WHERE f.id = $1`
	if err := pgtx.QueryRow(ctx, t, []any{&inOffice, &kind}, query, r.workflowID); err != nil {
		return false, fmt.Errorf("read the task's workflow: %w", err)
	}
	return domain.IsOffice(projectID != "", inOffice, kind), nil
}
