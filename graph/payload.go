package graph

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// payloadOf shows the stored payload of a request. Records that are gone are null.
func payloadOf(ctx context.Context, w *ent.WakeupRequest) (model.WakeupPayload, error) {
	stored, err := domain.DecodePayload(w.Source, w.Payload)
	if err != nil {
		return nil, fmt.Errorf("wakeup request %s: %w", w.ID, err)
	}
	l := load(ctx)
	switch p := stored.(type) {
	case *domain.RoutinePayload:
		return routineWakeup(ctx, l, p)
	case *domain.AgentErrorPayload:
		return agentErrorWakeup(ctx, l, p)
	case *domain.SelfPayload:
		return &model.SelfWakeup{Reason: p.Reason, Payload: p.Payload}, nil
	case *domain.UserPayload:
		return &model.UserWakeup{UserID: p.UserID, Context: p.Context}, nil
	case *domain.CommentPayload:
		out := &model.CommentWakeup{}
		if out.Task, err = linked(ctx, l.tasks, xid.ID(p.TaskID)); err != nil {
			return nil, err
		}
		out.Comment, err = linked(ctx, l.comments, xid.ID(p.CommentID))
		return out, err
	case *domain.TaskPayload:
		return taskWakeup(ctx, l, p)
	case *domain.BlockersPayload:
		return blockersWakeup(ctx, l, p)
	case *domain.ApprovalPayload:
		return approvalWakeup(ctx, l, p)
	case *domain.BudgetPayload:
		out := &model.BudgetWakeup{PercentUsed: p.BudgetPct}
		out.Agent, err = linked(ctx, l.agents, xid.ID(p.AgentID))
		return out, err
	}
	return nil, fmt.Errorf("wakeup request %s: source %s has no type in the API", w.ID, w.Source)
}

func agentErrorWakeup(ctx context.Context, l *loaders, p *domain.AgentErrorPayload) (*model.AgentErrorWakeup, error) {
	out := &model.AgentErrorWakeup{Error: p.Error}
	if p.FailedSessionID != "" {
		out.FailedSessionID = &p.FailedSessionID
	}
	var err error
	if out.FailedAgent, err = linked(ctx, l.agents, xid.ID(p.FailedAgentID)); err != nil {
		return nil, err
	}
	out.FailedRun, err = linked(ctx, l.runs, xid.ID(p.RunID))
	return out, err
}

func taskWakeup(ctx context.Context, l *loaders, p *domain.TaskPayload) (*model.TaskWakeup, error) {
	out := &model.TaskWakeup{}
	if p.Basis != "" {
		out.Basis = &p.Basis
	}
	var err error
	out.Task, err = linked(ctx, l.tasks, xid.ID(p.TaskID))
	return out, err
}

func approvalWakeup(ctx context.Context, l *loaders, p *domain.ApprovalPayload) (*model.ApprovalWakeup, error) {
	out := &model.ApprovalWakeup{Status: p.Status}
	if p.DecisionNote != "" {
		out.Note = &p.DecisionNote
	}
	var err error
	out.Approval, err = linked(ctx, l.approvals, xid.ID(p.ApprovalID))
	return out, err
}

func blockersWakeup(ctx context.Context, l *loaders, p *domain.BlockersPayload) (*model.BlockersWakeup, error) {
	out := &model.BlockersWakeup{ResolvedBlockers: []*ent.Task{}}
	var err error
	if out.Task, err = linked(ctx, l.tasks, xid.ID(p.TaskID)); err != nil {
		return nil, err
	}
	keys := make([]xid.ID, len(p.ResolvedBlockerIDs))
	for i, id := range p.ResolvedBlockerIDs {
		keys[i] = xid.ID(id)
	}
	resolved, err := l.tasks.LoadAll(ctx, keys)
	for _, row := range resolved {
		if row != nil {
			out.ResolvedBlockers = append(out.ResolvedBlockers, row)
		}
	}
	return out, err
}

func routineWakeup(ctx context.Context, l *loaders, p *domain.RoutinePayload) (*model.RoutineWakeup, error) {
	out := &model.RoutineWakeup{
		Variables: map[string]any{}, Text: p.Text, MissedTicks: p.MissedTicks, MissedTruncated: p.MissedTruncated,
		ScheduledFor: instant(p.ScheduledFor), MissedSince: instant(p.MissedSince),
	}
	for name, value := range p.Variables {
		out.Variables[name] = value
	}
	var err error
	if out.Routine, err = linked(ctx, l.routines, xid.ID(p.RoutineID)); err != nil {
		return nil, err
	}
	if out.Trigger, err = trigger(ctx, xid.ID(p.TriggerID)); err != nil {
		return nil, err
	}
	out.RoutineRun, err = linked(ctx, l.fires, xid.ID(p.RoutineRunID))
	return out, err
}

// trigger loads a trigger as the type that its id names; nil when the trigger is gone.
func trigger(ctx context.Context, id xid.ID) (model.Trigger, error) {
	row, err := linked(ctx, load(ctx).triggers, id)
	if err != nil || row == nil {
		return nil, err
	}
	return model.TriggerOf(row), nil
}

// instant is null for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
