package graph

import (
	"context"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// presentAgent finds an agent that the caller sees and that is not deleted. Only the columns that are named are read; none: all.
func (r *Resolver) presentAgent(ctx context.Context, id xid.ID, columns ...string) (*ent.Agent, error) {
	a, err := r.singles.agents.find(ctx, id, columns...)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, notFound("agentId", "agent")
	}
	return a, nil
}

func (r *Resolver) updateAgent(ctx context.Context, in model.UpdateAgentInput) (row *ent.Agent, removed []string, moved store.Moved, err error) {
	a, err := r.presentAgent(ctx, in.AgentID)
	if err != nil {
		return nil, nil, moved, err
	}
	executor, executorErr := changeOfExecutor(in.Executor, []string{"executor"}, a.ID, r.Sealer)
	if err := joinProblems(executorErr, checkTexts(in)); err != nil {
		return nil, nil, moved, err
	}
	removed, moved, err = r.Store.UpdateAgent(ctx, store.UpdateAgent{
		WorkspaceID: a.WorkspaceID, AgentID: a.ID, ExpectedRevision: in.ExpectedRevision, Executor: executor,
		Patch: domain.AgentPatch{
			Name: changeOf(in.Name), Instructions: changeOf(in.Instructions), Sessions: changeOf(in.MaxConcurrentSessions),
			Cooldown: changeOf(in.Cooldown), SkipIdleWakeups: changeOf(in.SkipIdleWakeups), ManagerID: changeOfID(in.ManagerID),
			SessionMaxRuns: changeOf(in.SessionMaxRuns), SessionMaxAge: changeOf(in.SessionMaxAge), LaunchLimit: changeOf(in.LaunchLimit),
		},
	})
	if err != nil {
		return nil, nil, moved, err
	}
	row, err = r.Reader.Agent.Get(ctx, a.ID)
	return row, removed, moved, err
}

func (r *Resolver) pauseAgent(ctx context.Context, in model.PauseAgentInput) (*ent.Agent, error) {
	return r.holdAgent(ctx, in.AgentID, in.Note, r.Store.PauseAgent)
}

func (r *Resolver) stopAgent(ctx context.Context, in model.StopAgentInput) (*ent.Agent, error) {
	return r.holdAgent(ctx, in.AgentID, in.Note, r.Store.StopAgent)
}

func (r *Resolver) holdAgent(ctx context.Context, id xid.ID, note *string, hold func(context.Context, store.HoldAgent) error) (*ent.Agent, error) {
	a, err := r.presentAgent(ctx, id)
	if err != nil {
		return nil, err
	}
	if !plain(valueOf(note)) {
		return nil, domain.RefuseField([]string{"note"}, domain.UserErrorCodeInvalid, "must be text without NUL (U+0000)")
	}
	return a, hold(ctx, store.HoldAgent{WorkspaceID: a.WorkspaceID, AgentID: a.ID, Note: valueOf(note)})
}

// resumeAgent lets an agent go on, routes what is sent again before it answers, and reads the first of it.
func (r *Resolver) resumeAgent(ctx context.Context, in model.ResumeAgentInput) (*model.ResumeAgentPayload, error) {
	out := &model.ResumeAgentPayload{WakeupRequests: noWakeups()}
	a, err := r.presentAgent(ctx, in.AgentID)
	if err != nil {
		return out, err
	}
	resumed, err := r.Store.ResumeAgent(ctx, a.WorkspaceID, a.ID)
	if err != nil {
		return out, err
	}
	out.Agent, out.WakeupRequestCount = a, resumed.Count
	if len(resumed.Requests) > 0 {
		r.route(ctx, a.ID)
		out.WakeupRequests, err = r.wakeups(ctx, resumed.Requests)
	}
	return out, err
}

// deleteAgent removes an agent. It returns the wakes of others that this sends again, routed, and its live runs that are asked
// to end.
func (r *Resolver) deleteAgent(ctx context.Context, in model.DeleteAgentInput) (wakes []*ent.WakeupRequest, asked []*ent.Run, err error) {
	a, err := r.presentAgent(ctx, in.AgentID)
	if err != nil {
		return noWakeups(), noRuns(), err
	}
	deleted, err := r.Store.DeleteAgent(ctx, a.WorkspaceID, a.ID)
	if err != nil {
		return noWakeups(), noRuns(), err
	}
	if wakes, err = r.routed(ctx, deleted.Resent); err != nil {
		return noWakeups(), noRuns(), err
	}
	asked, err = present(ctx, load(ctx).runs, deleted.AskedToEnd)
	return wakes, asked, err
}

// noRuns is what a mutation lists that was refused.
func noRuns() []*ent.Run { return []*ent.Run{} }
