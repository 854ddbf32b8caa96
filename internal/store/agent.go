package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// CreateAgent is an agent to make. ID is made by the caller, since the sealed values of Executor are bound to it.
// SkipIdleWakeups nil means the role's default.
type CreateAgent struct {
	ID, WorkspaceID       xid.ID
	Name                  string
	Role                  domain.AgentRole
	MaxConcurrentSessions int
	Cooldown              time.Duration
	SkipIdleWakeups       *bool
	Instructions          string
	ManagerID             xid.ID
	SessionMaxRuns        *int
	SessionMaxAge         *time.Duration
	LaunchLimit           *domain.LaunchLimit // nil: none
	Executor              *domain.ExecutorSpec
	Idempotency
}

// CreateAgent makes an agent and its lane.
func (s *Records) CreateAgent(ctx context.Context, in CreateAgent) (made Made, err error) {
	in, err = in.normalised()
	if err != nil {
		return Made{}, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, in.WorkspaceID, "createAgent", in.Idempotency, func() (Made, error) { return t.createAgent(ctx, in) })
		return err
	})
	return made, pgtx.Wrap("create agent", err)
}

func (in CreateAgent) normalised() (CreateAgent, error) {
	settings, problems := domain.AgentSettings{Name: in.Name, Instructions: in.Instructions, Sessions: in.MaxConcurrentSessions, Cooldown: in.Cooldown,
		SessionMaxRuns: in.SessionMaxRuns, SessionMaxAge: in.SessionMaxAge, LaunchLimit: in.LaunchLimit}.Check()
	in.Name = settings.Name
	if in.SkipIdleWakeups == nil {
		in.SkipIdleWakeups = pgtx.Ptr(in.Role.SkipsIdleWakeups())
	}
	if in.ID == "" {
		in.ID = xid.New("agt")
	}
	return in, domain.AsUserError(problems)
}

func (t *tx) createAgent(ctx context.Context, in CreateAgent) (Made, error) {
	if err := t.checkManager(ctx, in.WorkspaceID, in.ManagerID); err != nil {
		return Made{}, err
	}
	create := t.Agent.Create().SetID(in.ID).SetWorkspaceID(in.WorkspaceID).SetName(in.Name).SetRole(in.Role).
		SetMaxConcurrentSessions(in.MaxConcurrentSessions).SetCooldownMs(in.Cooldown.Milliseconds()).
		SetSkipIdleWakeups(*in.SkipIdleWakeups).SetInstructions(in.Instructions).SetNillableSessionMaxRuns(in.SessionMaxRuns)
	if in.ManagerID != "" {
		create.SetManagerID(in.ManagerID)
	}
	if in.SessionMaxAge != nil {
		create.SetSessionMaxAgeMs(in.SessionMaxAge.Milliseconds())
	}
	if in.LaunchLimit != nil {
		create.SetLaunchLimit(in.LaunchLimit.Count).SetLaunchLimitMs(in.LaunchLimit.Per.Milliseconds())
	}
	if in.Executor != nil {
		create.SetExecutor(in.Executor)
	}
	if err := create.Exec(ctx); err != nil {
		if pgtx.UniqueViolation(err) != "" {
			return Made{}, nameTaken("agent", in.Name)
		}
		return Made{}, fmt.Errorf("insert agent: %w", err)
	}
	const insertLane = `
INSERT INTO agent_lanes (agent_id, workspace_id, status, max_sessions, cooldown_ms)
VALUES ($1, $2, 'IDLE', $3, $4)`
	if err := pgtx.ExecOne(ctx, t, insertLane, in.ID, in.WorkspaceID, in.MaxConcurrentSessions, in.Cooldown.Milliseconds()); err != nil {
		return Made{}, fmt.Errorf("insert the agent's lane: %w", err)
	}
	if err := t.ReadClock(ctx); err != nil {
		return Made{}, err
	}
	err := t.note(ctx, entry{workspaceID: in.WorkspaceID, code: domain.ActivityCodeAgentChanged, by: callerOr(ctx, "agents"),
		summary: "The agent was made.", subjectID: in.ID, agentID: in.ID, data: map[string]any{"created": true, "name": in.Name, "role": in.Role}})
	if err != nil || in.Role != domain.AgentRoleCoordinator {
		return Made{ID: in.ID}, err
	}
	return Made{ID: in.ID}, t.installHeartbeat(ctx, in)
}

func (t *tx) checkManager(ctx context.Context, workspaceID, managerID xid.ID) error {
	if managerID == "" {
		return nil
	}
	_, err := t.Agent.Query().Where(agent.ID(managerID), agent.WorkspaceID(workspaceID), agent.DeletedAtIsNil()).OnlyID(ctx)
	if ent.IsNotFound(err) {
		err = sql.ErrNoRows
	}
	if err != nil {
		return pgtx.NotFound(err, []string{"managerId"}, "agent", managerID)
	}
	return nil
}

// installHeartbeat gives a new coordinator the routine that wakes it every five minutes (SPEC S4.11). It works in a
// savepoint, so that its failure does not stop the making of the agent. The failure is logged, and the agent shows that
// it has no scheduled wakeups. The routine is like any other: people may change, pause and delete it.
func (t *tx) installHeartbeat(ctx context.Context, in CreateAgent) error {
	err := t.savepoint(ctx, func() error {
		taken, err := pgtx.QueryOne[bool](ctx, t, `SELECT EXISTS (SELECT 1 FROM routines WHERE workspace_id = $1 AND name = $2 AND deleted_at IS NULL)`,
			in.WorkspaceID, domain.HeartbeatName(""))
		if err != nil {
			return fmt.Errorf("look for another heartbeat: %w", err)
		}
		name := domain.HeartbeatName("")
		if taken {
			name = domain.HeartbeatName(in.Name)
		}
		_, err = t.createRoutine(ctx, CreateRoutine{WorkspaceID: in.WorkspaceID, Name: name, Description: domain.HeartbeatText, AssigneeID: in.ID,
			ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap,
			CatchUpMax: domain.DefaultCatchUpMax, Variables: []domain.RoutineVariable{},
			Triggers: []TriggerSpec{{Kind: domain.TriggerKindSchedule, Cron: domain.HeartbeatCron, Enabled: true}}})
		return err
	})
	if err == nil || ctx.Err() != nil || postgres.Away(err) || pgtx.Retryable(err) {
		return err
	}
	t.onCommit(func(s *base) {
		s.log.Warn("the coordinator's heartbeat could not be installed: it has no scheduled wake-ups until somebody makes a routine for it",
			"agent_id", in.ID, "workspace_id", in.WorkspaceID, "error", err)
	})
	return nil
}
