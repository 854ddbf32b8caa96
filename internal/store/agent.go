package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/domain"
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
	Executor              *domain.ExecutorSpec
	Idempotency
}

// CreateAgent makes an agent and its lane.
func (s *Store) CreateAgent(ctx context.Context, in CreateAgent) (made Made, err error) {
	in, err = in.normalised()
	if err != nil {
		return Made{}, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.once(ctx, in.WorkspaceID, "createAgent", in.Idempotency, func() (Made, error) { return t.createAgent(ctx, in) })
		return err
	})
	return made, wrap("create agent", err)
}

func (in CreateAgent) normalised() (CreateAgent, error) {
	settings, problems := domain.AgentSettings{Name: in.Name, Instructions: in.Instructions, Sessions: in.MaxConcurrentSessions, Cooldown: in.Cooldown,
		SessionMaxRuns: in.SessionMaxRuns, SessionMaxAge: in.SessionMaxAge}.Check()
	in.Name = settings.Name
	if in.SkipIdleWakeups == nil {
		in.SkipIdleWakeups = ptr(in.Role.SkipsIdleWakeups())
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
	if in.Executor != nil {
		create.SetExecutor(in.Executor)
	}
	if err := create.Exec(ctx); err != nil {
		if uniqueViolation(err) != "" {
			return Made{}, nameTaken("agent", in.Name)
		}
		return Made{}, fmt.Errorf("insert agent: %w", err)
	}
	const insertLane = `INSERT INTO agent_lanes (agent_id, workspace_id, status, max_sessions, cooldown_ms) VALUES ($1, $2, 'IDLE', $3, $4)`
	if err := execOne(ctx, t, insertLane, in.ID, in.WorkspaceID, in.MaxConcurrentSessions, in.Cooldown.Milliseconds()); err != nil {
		return Made{}, fmt.Errorf("insert the agent's lane: %w", err)
	}
	if err := t.readClock(ctx); err != nil {
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
		return notFound(err, []string{"managerId"}, "agent", managerID)
	}
	return nil
}

// Lane is an agent's hot state as the API shows it. Status is WORKING while a run is live; AvailableAt is nil when the
// agent may be claimed now.
type Lane struct {
	AgentID        xid.ID
	Status         domain.AgentStatus
	PauseReason    *domain.AgentPauseReason
	Running        int
	AvailableAt    *time.Time
	LastFinishedAt *time.Time
}

// Lanes reads the hot state of several agents in one query.
func (s *Store) Lanes(ctx context.Context, agentIDs []xid.ID) (map[xid.ID]*Lane, error) {
	const query = `
SELECT agent_id, CASE WHEN status = 'IDLE' AND running > 0 THEN 'WORKING' ELSE status END, pause_reason, running,
  CASE WHEN eligible_at > clock_timestamp() THEN eligible_at END, last_finished_at
FROM agent_lanes WHERE agent_id = ANY($1)`
	lanes, err := collect(ctx, s.reads, func(rows *sql.Rows) (*Lane, error) {
		var l Lane
		return &l, rows.Scan(&l.AgentID, &l.Status, &l.PauseReason, &l.Running, &l.AvailableAt, &l.LastFinishedAt)
	}, query, ids(agentIDs))
	if err != nil {
		return nil, fmt.Errorf("read lanes: %w", err)
	}
	byAgent := make(map[xid.ID]*Lane, len(lanes))
	for _, l := range lanes {
		byAgent[l.AgentID] = l
	}
	return byAgent, nil
}
