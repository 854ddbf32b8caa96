package graph

import (
	"context"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/project"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// createProject makes a project. Its id is made here, since the values of its executor are sealed for it.
func (r *Resolver) createProject(ctx context.Context, in model.CreateProjectInput) (*ent.Project, bool, error) {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return nil, false, err
	}
	id := xid.New("prj")
	executor, executorErr := newExecutor(in.Executor, []string{"executor"}, id, r.Sealer)
	once, onceErr := idempotency(in, in.IdempotencyKey)
	if err := joinProblems(executorErr, onceErr); err != nil {
		return nil, false, err
	}
	made, err := r.Store.CreateProject(ctx, store.CreateProject{WorkspaceID: in.WorkspaceID, ID: id, Name: in.Name, Executor: executor, Idempotency: once})
	if err != nil {
		return nil, false, err
	}
	row, err := r.Reader.Project.Get(ctx, made.ID)
	return row, made.Replayed, err
}

func (r *Resolver) updateProject(ctx context.Context, in model.UpdateProjectInput) (row *ent.Project, removed []string, moved store.Moved, err error) {
	x, err := visible(r.Reader.Project.Query().Where(project.ID(in.ProjectID), project.DeletedAtIsNil()).Only(ctx))
	if err != nil {
		return nil, nil, moved, fmt.Errorf("look for project: %w", err)
	}
	if x == nil {
		return nil, nil, moved, notFound("projectId", "project")
	}
	executor, executorErr := changeOfExecutor(in.Executor, []string{"executor"}, x.ID, r.Sealer)
	if err := joinProblems(executorErr, checkTexts(in)); err != nil {
		return nil, nil, moved, err
	}
	removed, moved, err = r.Store.UpdateProject(ctx, store.UpdateProject{WorkspaceID: x.WorkspaceID, ProjectID: x.ID, ExpectedRevision: in.ExpectedRevision, Name: changeOf(in.Name), Executor: executor})
	if err != nil {
		return nil, nil, moved, err
	}
	row, err = r.Reader.Project.Get(ctx, x.ID)
	return row, removed, moved, err
}

// pageOfProjects lists projects in the order they were made; their ids sort so.
func (r *Resolver) pageOfProjects(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.ProjectConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	if err != nil {
		return nil, err
	}
	edge := func(x *ent.Project) *ent.ProjectEdge { return x.ToEdge(nil) }
	read, err := readPage(ctx, r.Reader.Project.Query().Where(project.WorkspaceID(workspaceID), project.DeletedAtIsNil()), p, inOrderMade, func(x *ent.Project) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	return &ent.ProjectConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}
