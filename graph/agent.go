package graph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of an agent's settings.
const (
	cooldownMax      = 24 * time.Hour
	sessionMaxAgeMin = time.Minute
	sessionMaxAgeMax = 365 * 24 * time.Hour
	defaultCooldown  = 10 * time.Second
)

// lane is the hot state of an agent; one that has no lane is IDLE.
func (r *Resolver) lane(ctx context.Context, a *ent.Agent) (store.Lane, error) {
	lane, err := load(ctx).lanes.Load(ctx, a.ID)
	if err != nil {
		return store.Lane{}, err
	}
	if lane == nil {
		return store.Lane{}, fmt.Errorf("agent %s has no lane", a.ID)
	}
	return *lane, nil
}

// createAgent makes an agent. Its id is made here, since the values of its executor are sealed for it.
func (r *Resolver) createAgent(ctx context.Context, in model.CreateAgentInput) (store.Made, error) {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return store.Made{}, err
	}
	if err := r.checkManager(ctx, in); err != nil {
		return store.Made{}, err
	}
	id := xid.New("agt")
	executor, err := executorSpec(in.Executor, []string{"executor"}, id, r.Sealer)
	if err = joinProblems(checkAgent(in), err); err != nil {
		return store.Made{}, err
	}
	fingerprint, err := digest(in)
	if err != nil {
		return store.Made{}, err
	}
	cooldown, sessions := defaultCooldown, 1
	if in.Cooldown != nil {
		cooldown = *in.Cooldown
	}
	if in.MaxConcurrentSessions != nil {
		sessions = *in.MaxConcurrentSessions
	}
	return r.Store.CreateAgent(ctx, store.CreateAgent{
		WorkspaceID: in.WorkspaceID, Name: in.Name, Role: in.Role, MaxConcurrentSessions: sessions, Cooldown: cooldown,
		SkipIdleWakeups: in.SkipIdleWakeups, Instructions: valueOf(in.Instructions), ManagerID: idOf(in.ManagerID),
		SessionMaxRuns: in.SessionMaxRuns, SessionMaxAge: in.SessionMaxAge, ID: id, Executor: executor,
		Idempotency: store.Idempotency{Key: valueOf(in.IdempotencyKey), InputDigest: fingerprint},
	})
}

// checkAgent checks what needs no database.
func checkAgent(in model.CreateAgentInput) error {
	r := &report{}
	if in.Cooldown != nil {
		r.duration([]string{"cooldown"}, *in.Cooldown, 0, cooldownMax)
	}
	if in.SessionMaxAge != nil {
		r.duration([]string{"sessionMaxAge"}, *in.SessionMaxAge, sessionMaxAgeMin, sessionMaxAgeMax)
	}
	if in.SessionMaxRuns != nil && *in.SessionMaxRuns < 1 {
		r.add([]string{"sessionMaxRuns"}, domain.UserErrorCodeOutOfRange, "must be at least 1; leave it out for no rotation")
	}
	if !plain(valueOf(in.Instructions)) {
		r.add([]string{"instructions"}, domain.UserErrorCodeInvalid, "must be text without NUL")
	}
	return joinProblems(domain.AsUserError(r.problems), checkKey(in.IdempotencyKey))
}

func (r *Resolver) checkManager(ctx context.Context, in model.CreateAgentInput) error {
	if in.ManagerID == nil {
		return nil
	}
	return r.checkAgentIn(ctx, in.WorkspaceID, *in.ManagerID, "managerId")
}

// checkAgentIn refuses an agent that is not in the workspace, or deleted.
func (r *Resolver) checkAgentIn(ctx context.Context, workspaceID, id xid.ID, field string) error {
	ok, err := r.Reader.Agent.Query().Where(agent.ID(id), agent.WorkspaceID(workspaceID), agent.DeletedAtIsNil()).Exist(ctx)
	if err != nil {
		return fmt.Errorf("look for agent: %w", err)
	}
	if !ok {
		return notFound(field, "agent")
	}
	return nil
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

// wakeAgent inserts a USER wakeup and routes it before it answers.
func (r *Resolver) wakeAgent(ctx context.Context, in model.WakeAgentInput) (store.Made, error) {
	if err := checkKey(in.IdempotencyKey); err != nil {
		return store.Made{}, err
	}
	a, err := visible(r.Reader.Agent.Query().Where(agent.ID(in.AgentID), agent.DeletedAtIsNil()).Only(ctx))
	if err != nil {
		return store.Made{}, fmt.Errorf("look for agent: %w", err)
	}
	if a == nil {
		return store.Made{}, notFound("agentId", "agent")
	}
	fingerprint, err := digest(in)
	if err != nil {
		return store.Made{}, err
	}
	made, err := r.Store.Wake(ctx, store.Wake{
		WorkspaceID: a.WorkspaceID, AgentID: a.ID, UserID: in.UserID, Context: in.Context,
		Idempotency: store.Idempotency{Key: valueOf(in.IdempotencyKey), InputDigest: fingerprint},
	})
	if err != nil {
		return store.Made{}, err
	}
	r.route(ctx, a.ID)
	return made, nil
}

// route routes an agent's requests right after the change that caused them, so that the answer shows what became of them
// (SPEC S3.2). The change is committed: if routing fails, the dispatcher does it later.
func (r *Resolver) route(ctx context.Context, agentID xid.ID) {
	if _, err := r.Store.Route(ctx, agentID); err != nil {
		r.Log.WarnContext(ctx, "wakeup not routed at once, the dispatcher will", "agent_id", agentID, "error", err)
	}
}
