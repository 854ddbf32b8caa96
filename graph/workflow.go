package graph

import (
	"context"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/workflow"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

func (r *Resolver) createWorkflow(ctx context.Context, in model.CreateWorkflowInput) (*ent.Workflow, bool, error) {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return nil, false, err
	}
	once, err := idempotency(in, in.IdempotencyKey)
	if err != nil {
		return nil, false, err
	}
	plan := domain.WorkflowPlan{Name: in.Name, Kind: in.Kind}
	for _, s := range in.Steps {
		plan.Steps = append(plan.Steps, domain.StepPlan{Name: s.Name, State: s.State, OnEnter: append([]domain.StepAction{}, s.OnEnter...)})
	}
	made, err := r.Store.CreateWorkflow(ctx, store.CreateWorkflow{WorkspaceID: in.WorkspaceID, Plan: plan, Idempotency: once})
	if err != nil {
		return nil, false, err
	}
	row, err := r.Reader.Workflow.Get(ctx, made.ID)
	return row, made.Replayed, err
}

// pageOfWorkflows lists workflows in the order they were made; their ids sort so.
func (r *Resolver) pageOfWorkflows(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, first *int) (*ent.WorkflowConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	edge := func(x *ent.Workflow) *ent.WorkflowEdge { return x.ToEdge(nil) }
	read, err := readPage(ctx, r.Reader.Workflow.Query().Where(workflow.WorkspaceID(workspaceID)), p, inOrderMade, func(x *ent.Workflow) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list workflows: %w", err)
	}
	return &ent.WorkflowConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}
