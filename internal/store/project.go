package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// CreateProject is a project to make. ID is made by the caller, since the values of Executor are sealed for it.
type CreateProject struct {
	WorkspaceID, ID xid.ID
	Name            string
	Executor        *domain.ExecutorSpec
	Idempotency
}

// CreateProject makes a project; the loop may act on its tasks (SPEC S5.1).
func (s *Records) CreateProject(ctx context.Context, in CreateProject) (made Made, err error) {
	var problems []domain.FieldError
	in.Name, problems = domain.CheckName(in.Name, nil)
	if err := domain.AsUserError(problems); err != nil {
		return Made{}, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, in.WorkspaceID, "createProject", in.Idempotency, func() (Made, error) {
			create := t.Project.Create().SetID(in.ID).SetWorkspaceID(in.WorkspaceID).SetName(in.Name)
			if in.Executor != nil {
				create.SetExecutor(in.Executor)
			}
			err := create.Exec(ctx)
			if pgtx.UniqueViolation(err) != "" {
				return Made{}, nameTaken("project", in.Name)
			}
			if err != nil {
				return Made{}, fmt.Errorf("insert project: %w", err)
			}
			return Made{ID: in.ID}, t.noteProject(ctx, in.WorkspaceID, in.ID, "The project was made.", map[string]any{"created": true, "name": in.Name})
		})
		return err
	})
	return made, pgtx.Wrap("create project", err)
}

// UpdateProject is a change of a project. A name cannot be cleared.
type UpdateProject struct {
	WorkspaceID, ProjectID xid.ID
	ExpectedRevision       *int
	Name                   domain.Change[string]
	Executor               domain.Change[domain.ExecutorSpec]
}

// UpdateProject changes a project and returns the paths of the secrets that its executor has no more, and the runs that its new
// executor makes due. A change that changes
// nothing leaves the revision alone.
func (s *Records) UpdateProject(ctx context.Context, in UpdateProject) (removed []string, moved Moved, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		var name string
		var revision int
		const lock = `
SELECT name, revision
FROM projects
WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL
FOR NO KEY UPDATE`
		if err := pgtx.QueryRow(ctx, t, []any{&name, &revision}, lock, in.ProjectID, in.WorkspaceID); err != nil {
			return pgtx.NotFound(err, []string{"projectId"}, "project", in.ProjectID)
		}
		if err := checkRevision(in.ExpectedRevision, revision, "project"); err != nil {
			return err
		}
		next, problems := domain.ChangedName(name, in.Name)
		if err := domain.AsUserError(problems); err != nil {
			return err
		}
		var executor bool
		if executor, removed, err = t.changeExecutor(ctx, executorOfProject, in.ProjectID, in.Executor); err != nil || next == name && !executor {
			return err
		}
		var changed []string
		if next != name {
			changed = append(changed, "name")
		}
		if executor {
			changed = append(changed, "executor")
		}
		return t.updateProject(ctx, in, next, changed)
	})
	if err == nil && in.Executor.Set {
		moved = s.followExecutor(ctx, entry{workspaceID: in.WorkspaceID, code: domain.ActivityCodeProjectChanged, by: callerOr(ctx, "projects"), subjectID: in.ProjectID, data: map[string]any{"projectId": in.ProjectID}})
	}
	return removed, moved, pgtx.Wrap("update project", err)
}

func (t *tx) updateProject(ctx context.Context, in UpdateProject, name string, changed []string) error {
	if err := t.ReadClock(ctx); err != nil {
		return err
	}
	u := t.Project.UpdateOneID(in.ProjectID).AddRevision(1).SetUpdatedAt(t.Now).SetName(name)
	switch {
	case in.Executor.Set && in.Executor.Value == nil:
		u.ClearExecutor()
	case in.Executor.Set:
		u.SetExecutor(in.Executor.Value)
	}
	err := u.Exec(ctx)
	if pgtx.UniqueViolation(err) != "" {
		return nameTaken("project", name)
	}
	if err != nil {
		return fmt.Errorf("update the project's row: %w", err)
	}
	return t.noteProject(ctx, in.WorkspaceID, in.ProjectID, "The project was changed.", map[string]any{"changed": changed})
}

// noteProject says in the feed what became of a project.
func (t *tx) noteProject(ctx context.Context, workspaceID, id xid.ID, summary string, data map[string]any) error {
	data["projectId"] = id
	return t.note(ctx, entry{workspaceID: workspaceID, code: domain.ActivityCodeProjectChanged, by: callerOr(ctx, "projects"), summary: summary, subjectID: id, data: data})
}
