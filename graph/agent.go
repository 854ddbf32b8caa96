package graph

import (
	"context"
	"errors"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/ent/routinetrigger"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// lane is the hot state of an agent; one that has no lane is IDLE.
func (r *Resolver) lane(ctx context.Context, a *ent.Agent) (reads.Lane, error) {
	lane, err := load(ctx).lanes.Load(ctx, a.ID)
	if err != nil {
		return reads.Lane{}, err
	}
	if lane == nil {
		return reads.Lane{}, fmt.Errorf("agent %s has no lane", a.ID)
	}
	return *lane, nil
}

// createAgent makes an agent. Its id is made here, since the values of its executor are sealed for it.
func (r *Resolver) createAgent(ctx context.Context, in model.CreateAgentInput) (store.Made, error) {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return store.Made{}, err
	}
	id := xid.New("agt")
	executor, executorErr := newExecutor(in.Executor, []string{"executor"}, id, r.Sealer)
	once, onceErr := idempotency(in, in.IdempotencyKey)
	if err := joinProblems(executorErr, onceErr); err != nil {
		return store.Made{}, err
	}
	cooldown, sessions := domain.DefaultCooldown, domain.DefaultSessions
	if in.Cooldown != nil {
		cooldown = *in.Cooldown
	}
	if in.MaxConcurrentSessions != nil {
		sessions = *in.MaxConcurrentSessions
	}
	return r.Store.CreateAgent(ctx, store.CreateAgent{
		WorkspaceID: in.WorkspaceID, Name: in.Name, Role: in.Role, MaxConcurrentSessions: sessions, Cooldown: cooldown,
		SkipIdleWakeups: in.SkipIdleWakeups, Instructions: valueOf(in.Instructions), ManagerID: idOf(in.ManagerID),
		SessionMaxRuns: in.SessionMaxRuns, SessionMaxAge: in.SessionMaxAge, LaunchLimit: in.LaunchLimit, ID: id, Executor: executor, Idempotency: once,
	})
}

// joinProblems puts the problems of several checks into one error; an error of another kind goes before them.
func joinProblems(errs ...error) error {
	var all []domain.FieldError
	for _, err := range errs {
		if err == nil {
			continue
		}
		user, ok := errors.AsType[*domain.UserError](err)
		if !ok {
			return err
		}
		all = append(all, user.Problems...)
	}
	return domain.AsUserError(all)
}

// heartbeatOf is the routine that was installed with a coordinator (SPEC S4.11), nil for other agents.
func (r *Resolver) heartbeatOf(ctx context.Context, a *ent.Agent) (*ent.Routine, error) {
	if a.Role != domain.AgentRoleCoordinator {
		return nil, nil
	}
	return visible(r.Reader.Routine.Query().Where(routine.AssigneeID(a.ID)).Order(routine.ByID()).First(ctx))
}

// scheduledAgents says which of the agents an enabled schedule of an ACTIVE routine targets.
func (r *Resolver) scheduledAgents(ctx context.Context, ids []xid.ID) (map[xid.ID]bool, error) {
	rows, err := r.Reader.Routine.Query().Where(routine.AssigneeIDIn(ids...), routine.StatusEQ(domain.RoutineStatusActive), routine.DeletedAtIsNil(),
		routine.HasTriggersWith(routinetrigger.KindEQ(domain.TriggerKindSchedule), routinetrigger.Enabled(true))).Select(routine.FieldAssigneeID).All(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[xid.ID]bool, len(rows))
	for _, row := range rows {
		out[row.AssigneeID] = true
	}
	return out, nil
}

// wakeAgent inserts a USER wakeup, which is routed before it answers.
func (r *Resolver) wakeAgent(ctx context.Context, in model.WakeAgentInput) (store.Made, error) {
	a, err := r.presentAgent(ctx, in.AgentID, agent.FieldID, agent.FieldWorkspaceID)
	if err != nil {
		return store.Made{}, err
	}
	if err := domain.AsUserError(domain.CheckUserID(in.UserID, "userId")); err != nil {
		return store.Made{}, err
	}
	once, onceErr := idempotency(in, in.IdempotencyKey)
	if err := joinProblems(checkObject([]string{"context"}, in.Context, givenBytesMax), onceErr); err != nil {
		return store.Made{}, err
	}
	made, err := r.Store.Wake(ctx, store.Wake{WorkspaceID: a.WorkspaceID, AgentID: a.ID, UserID: in.UserID, Context: in.Context, Idempotency: once})
	if err != nil {
		return store.Made{}, err
	}
	if !made.Routed {
		r.route(ctx, a.ID)
	}
	return made, nil
}

// route routes an agent's requests right after the change that caused them, so that the answer shows what became of them
// (SPEC S3.2). The change is committed: if routing fails, the dispatcher does it later.
func (r *Resolver) route(ctx context.Context, agentID xid.ID) {
	if _, err := r.Store.Route(ctx, agentID); err != nil {
		r.Log.WarnContext(ctx, "wakeup not routed at once, the dispatcher will", "agent_id", agentID, "error", err)
	}
}
