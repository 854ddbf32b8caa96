package graph

import (
	"context"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/approval"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// requestApproval asks for a decision. By a run's token its agent asks (SPEC S7.4).
func (r *Resolver) requestApproval(ctx context.Context, in model.RequestApprovalInput) (*ent.Approval, []*ent.WakeupRequest, bool, error) {
	x, err := r.presentTask(ctx, in.TaskID)
	if err != nil {
		return nil, noWakeups(), false, err
	}
	once, err := idempotency(in, in.IdempotencyKey)
	if err != nil {
		return nil, noWakeups(), false, err
	}
	mask, err := r.agentMask(ctx)
	if err != nil {
		return nil, noWakeups(), false, err
	}
	agentID := in.RequestedByAgentID
	if caller, _ := auth.FromContext(ctx); caller.Kind == auth.KindRun {
		agentID = caller.AgentID
	}
	made, sent, err := r.Store.RequestApproval(ctx, store.RequestApproval{WorkspaceID: x.WorkspaceID, TaskID: x.ID, AgentID: agentID, Question: mask(in.Note), Idempotency: once})
	if err != nil {
		return nil, noWakeups(), false, err
	}
	wakes, err := r.routed(ctx, sent)
	if err != nil {
		return nil, nil, false, err
	}
	row, err := r.Reader.Approval.Get(ctx, made.ID)
	return row, wakes, made.Replayed, err
}

// decideApproval decides an approval that the caller sees. By a run's token its agent decides, where it is an approver.
func (r *Resolver) decideApproval(ctx context.Context, in model.DecideApprovalInput) (*model.DecideApprovalPayload, error) {
	out := &model.DecideApprovalPayload{WakeupRequests: noWakeups(), CancelledWakeups: noWakeups()}
	a, err := visible(r.Reader.Approval.Get(ctx, in.ApprovalID))
	switch {
	case err != nil:
		return out, fmt.Errorf("look for approval: %w", err)
	case a == nil:
		return out, notFound("approvalId", "approval")
	case in.UserID != nil && in.AgentID != nil:
		return out, domain.Refuse(domain.UserErrorCodeInvalid, "name at most one of userId and agentId")
	}
	if err := joinProblems(domain.AsUserError(domain.CheckUserID(valueOf(in.UserID), "userId")), checkTexts(in)); err != nil {
		return out, err
	}
	mask, err := r.agentMask(ctx)
	if err != nil {
		return out, err
	}
	decide := store.Decide{WorkspaceID: a.WorkspaceID, ApprovalID: a.ID, AgentID: idOf(in.AgentID), UserID: valueOf(in.UserID), Note: mask(valueOf(in.Note)), Status: domain.ApprovalStatusRejected}
	if in.Decision == model.ApprovalDecisionApprove {
		decide.Status = domain.ApprovalStatusApproved
	}
	if caller, _ := auth.FromContext(ctx); caller.Kind == auth.KindRun {
		decide.AgentID, decide.UserID = caller.AgentID, ""
	}
	sent, cancelled, err := r.Store.Decide(ctx, decide)
	if out.Task, out.WakeupRequests, out.CancelledWakeups, err = r.changed(ctx, a.TaskID, sent, cancelled, err); err != nil {
		return out, err
	}
	out.Approval, err = r.Reader.Approval.Get(ctx, a.ID)
	return out, err
}

// requesterOf shows who asked: an agent, or the scheduler for a completion that a person asked for.
func requesterOf(ctx context.Context, a *ent.Approval) (model.Actor, error) {
	if a.RequestedByID == "" {
		return &model.SystemActor{Component: "tasks"}, nil
	}
	return actorBy(ctx, domain.AuthorKindAgent, a.RequestedByID, "", "")
}

// deciderOf shows who decided; nil while it is open.
func deciderOf(ctx context.Context, a *ent.Approval) (model.Actor, error) {
	if a.DecidedByKind == nil {
		return nil, nil
	}
	return actorBy(ctx, *a.DecidedByKind, a.DecidedByID, a.DecidedByName, "")
}

// pageOfApprovals lists a task's approvals, oldest first; their ids sort so.
func (r *Resolver) pageOfApprovals(ctx context.Context, taskID xid.ID, after *ent.Cursor, first *int) (*ent.ApprovalConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	edge := func(x *ent.Approval) *ent.ApprovalEdge { return x.ToEdge(nil) }
	read, err := readPage(ctx, r.Reader.Approval.Query().Where(approval.TaskID(taskID)), p, inOrderMade, func(x *ent.Approval) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	return &ent.ApprovalConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}

// pageOfWorkspaceApprovals lists what was asked about a workspace's tasks, newest first.
func (r *Resolver) pageOfWorkspaceApprovals(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, first *int, f *model.ApprovalFilter) (*ent.ApprovalConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	q := r.Reader.Approval.Query().Where(approval.WorkspaceID(workspaceID))
	if f != nil && f.Status != nil {
		q.Where(approval.StatusIn(f.Status...))
		p.branches = oneOf("status", f.Status, "")
	}
	at := func(x *ent.Approval) ent.Cursor { return ent.Cursor{ID: x.ID, Value: x.CreatedAt} }
	read, err := readPage(ctx, q, p, ordering{kind: byTime, column: approval.FieldCreatedAt, desc: true}, at)
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	edge := func(x *ent.Approval) *ent.ApprovalEdge { return &ent.ApprovalEdge{Node: x, Cursor: at(x)} }
	return &ent.ApprovalConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}
