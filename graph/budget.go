package graph

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/budgetpolicy"
	"rouse.dev/rouse/ent/project"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// costSpan is the longest span that costs are added up over.
const costSpan = 400 * 24 * time.Hour

// budgets reads budgets by their ids, as they stand now.
func (r *Resolver) budgets(ctx context.Context, ids []xid.ID) (map[xid.ID]*model.Budget, error) {
	rows, err := r.Reader.BudgetPolicy.Query().Where(budgetpolicy.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, err
	}
	now, err := load(ctx).now()
	if err != nil {
		return nil, err
	}
	out := make(map[xid.ID]*model.Budget, len(rows))
	for _, row := range rows {
		if out[row.ID], err = model.BudgetOf(row, now); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pageOfBudgets lists a workspace's budgets in the order they were made; their ids sort so.
func (r *Resolver) pageOfBudgets(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, first *int) (*model.BudgetConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	at := func(x *ent.BudgetPolicy) ent.Cursor { return idCursor(x.ID) }
	read, err := readPage(ctx, r.Reader.BudgetPolicy.Query().Where(budgetpolicy.WorkspaceID(workspaceID)), p, inOrderMade, at)
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	now, err := load(ctx).now()
	if err != nil {
		return nil, err
	}
	out := &model.BudgetConnection{Edges: []*model.BudgetEdge{}, PageInfo: &read.info, TotalCount: read.total}
	for _, row := range read.rows {
		node, err := model.BudgetOf(row, now)
		if err != nil {
			return nil, err
		}
		out.Edges = append(out.Edges, &model.BudgetEdge{Cursor: at(row), Node: node})
	}
	return out, nil
}

// budgetSubject loads what a budget limits, or a cost belongs to; nil when it is deleted or has no type here.
func budgetSubject(ctx context.Context, id xid.ID) (ent.Noder, error) {
	l := load(ctx)
	switch id.Prefix() {
	case "wsp":
		return record(l.workspaces.Load(ctx, id))
	case "prj":
		row, err := l.projects.Load(ctx, id)
		if row != nil && row.DeletedAt != nil {
			row = nil
		}
		return record(row, err)
	case "agt":
		row, err := l.agents.Load(ctx, id)
		if row != nil && row.DeletedAt != nil {
			row = nil
		}
		return record(row, err)
	}
	return nil, nil
}

// budgetState is where the budgets of these subjects stand, the worst of them.
func budgetState(ctx context.Context, subjects ...xid.ID) (domain.BudgetState, error) {
	rows, err := load(ctx).budgetOf.LoadAll(ctx, subjects)
	if err != nil {
		return "", err
	}
	now, err := load(ctx).now()
	if err != nil {
		return "", err
	}
	var list []domain.Budget
	for _, row := range rows {
		if row == nil {
			continue
		}
		b, err := model.DomainBudget(row)
		if err != nil {
			return "", err
		}
		list = append(list, b.At(now))
	}
	return domain.WorstState(list...), nil
}

func (r *Resolver) costs(ctx context.Context, workspaceID xid.ID, from, until time.Time, by domain.CostGrouping) ([]*model.CostGroup, error) {
	if !from.Before(until) || until.Sub(from) > costSpan {
		return nil, badInput("costs are added up from an instant until a later one, at most 400 days")
	}
	groups, err := r.Store.Costs(ctx, workspaceID, from, until, by)
	if err != nil {
		return nil, err
	}
	out := make([]*model.CostGroup, len(groups))
	for i, g := range groups {
		out[i] = &model.CostGroup{CostUsd: g.Cost.String(), InputTokens: int64(g.InputTokens), OutputTokens: int64(g.OutputTokens), Runs: g.Runs}
		if g.SubjectID != "" {
			out[i].SubjectID = &g.SubjectID
		}
		if by == domain.CostGroupingDay {
			out[i].Day = &g.Day
		}
	}
	return out, nil
}

func (r *Resolver) upsertBudget(ctx context.Context, in model.UpsertBudgetInput) (xid.ID, store.Released, error) {
	change := store.UpsertBudget{LimitUSD: in.LimitUsd, Period: in.Period, Thresholds: in.AlertThresholds, OnExceed: in.OnExceed, ExpectedRevision: in.ExpectedRevision}
	if err := r.budgetSubject(ctx, in.Subject, &change); err != nil {
		return "", store.Released{}, err
	}
	return r.Store.UpsertBudget(ctx, change)
}

// released is what a change of a budget caused, as it is shown: its wakes, routed, the agents that it resumed, and the runs that
// look again at once.
type released struct {
	wakes  []*ent.WakeupRequest
	agents []*ent.Agent
	due    []*ent.Run
}

func (r *Resolver) released(ctx context.Context, caused store.Released) (out released, err error) {
	if out.wakes, err = r.routed(ctx, caused.Requests); err != nil {
		return out, err
	}
	if out.agents, err = present(ctx, load(ctx).agents, caused.Agents); err != nil {
		return out, err
	}
	out.due, err = present(ctx, load(ctx).runs, caused.Due)
	return out, err
}

// budgetSubject finds the subject among what the caller sees, and its workspace.
func (r *Resolver) budgetSubject(ctx context.Context, in *model.BudgetSubjectInput, to *store.UpsertBudget) error {
	if in == nil || !oneMember(in.WorkspaceID != nil, in.ProjectID != nil, in.AgentID != nil) {
		return domain.RefuseField([]string{"subject"}, domain.UserErrorCodeInvalid, "set exactly one of workspaceId, projectId and agentId")
	}
	switch {
	case in.WorkspaceID != nil:
		to.SubjectKind, to.SubjectID, to.WorkspaceID = domain.BudgetSubjectKindWorkspace, *in.WorkspaceID, *in.WorkspaceID
		row, err := visible(r.Reader.Workspace.Get(ctx, *in.WorkspaceID))
		return found(row, err, "workspaceId", "workspace")
	case in.ProjectID != nil:
		row, err := visible(r.Reader.Project.Query().Where(project.ID(*in.ProjectID), project.DeletedAtIsNil()).Only(ctx))
		if row != nil {
			to.SubjectKind, to.SubjectID, to.WorkspaceID = domain.BudgetSubjectKindProject, row.ID, row.WorkspaceID
		}
		return found(row, err, "projectId", "project")
	}
	row, err := visible(r.Reader.Agent.Query().Where(agent.ID(*in.AgentID), agent.DeletedAtIsNil()).Only(ctx))
	if row != nil {
		to.SubjectKind, to.SubjectID, to.WorkspaceID = domain.BudgetSubjectKindAgent, row.ID, row.WorkspaceID
	}
	return found(row, err, "agentId", "agent")
}

// found refuses a subject that the caller does not see.
func found[T any](row *T, err error, field, what string) error {
	switch {
	case err != nil:
		return fmt.Errorf("look for %s: %w", what, err)
	case row == nil:
		return domain.RefuseField([]string{"subject", field}, domain.UserErrorCodeNotFound, "there is no such %s", what)
	}
	return nil
}

func (r *Resolver) deleteBudget(ctx context.Context, id xid.ID) (store.Released, error) {
	row, err := visible(r.Reader.BudgetPolicy.Get(ctx, id))
	if err != nil {
		return store.Released{}, fmt.Errorf("look for budget: %w", err)
	}
	if row == nil {
		return store.Released{}, notFound("budgetId", "budget")
	}
	return r.Store.DeleteBudget(ctx, row.WorkspaceID, id)
}

// texts are ids as texts.
func texts(ids []xid.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}
