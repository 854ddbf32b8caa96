package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// UpdateAgent is a change of an agent. Values of Executor are sealed for AgentID. ExpectedRevision nil changes whatever
// is there.
type UpdateAgent struct {
	WorkspaceID, AgentID xid.ID
	ExpectedRevision     *int
	Patch                domain.AgentPatch
	Executor             domain.Change[domain.ExecutorSpec]
}

// UpdateAgent changes an agent. Capacity and cooldown go to its lane: below the runs that are live, a capacity only keeps
// new ones from being claimed (C311); a cooldown counts from the last launch that ended, also for the rest of one that has
// begun. A change that changes nothing leaves the revision alone. It returns the paths of the secrets that the executor has no more,
// and the runs that a new executor makes due.
func (s *Records) UpdateAgent(ctx context.Context, in UpdateAgent) (removed []string, moved Moved, err error) {
	err = s.withAgent(ctx, in.WorkspaceID, in.AgentID, func(t *tx, l lane) error {
		row, err := t.Agent.Query().Where(agent.ID(in.AgentID)).Only(ctx)
		if err != nil {
			return fmt.Errorf("read the agent: %w", err)
		}
		if err := checkRevision(in.ExpectedRevision, row.Revision, "agent"); err != nil {
			return err
		}
		next, changed, problems := settingsOf(row).Apply(in.Patch, row.Role)
		if err := domain.AsUserError(problems); err != nil {
			return err
		}
		var executor bool
		if executor, removed, err = t.changeExecutor(ctx, executorOfAgent, in.AgentID, in.Executor); err != nil {
			return err
		}
		if executor {
			changed = append(changed, "executor")
		}
		if len(changed) == 0 {
			return nil
		}
		return t.updateAgent(ctx, l, in, next, changed)
	})
	if err == nil && in.Executor.Set {
		moved = s.followExecutor(ctx, entry{workspaceID: in.WorkspaceID, code: domain.ActivityCodeAgentChanged, by: callerOr(ctx, "agents"), subjectID: in.AgentID})
	}
	return removed, moved, pgtx.Wrap("update agent", err)
}

func (t *tx) updateAgent(ctx context.Context, l lane, in UpdateAgent, next domain.AgentSettings, changed []string) error {
	if err := t.checkReportsTo(ctx, in.WorkspaceID, in.AgentID, xid.ID(next.ManagerID)); err != nil {
		return err
	}
	if err := t.writeAgent(ctx, in, next); err != nil {
		return err
	}
	if err := t.writeCapacity(ctx, l, next); err != nil {
		return err
	}
	if slices.Contains(changed, "launchLimit") {
		if err := t.releaseBraked(ctx, l); err != nil {
			return err
		}
	}
	return t.note(ctx, entry{workspaceID: in.WorkspaceID, code: domain.ActivityCodeAgentChanged, by: callerOr(ctx, "agents"),
		summary: "The agent was changed.", subjectID: in.AgentID, agentID: in.AgentID, data: map[string]any{"changed": changed}})
}

// settingsOf are the settings of a stored agent.
func settingsOf(a *ent.Agent) domain.AgentSettings {
	s := domain.AgentSettings{Name: a.Name, Instructions: a.Instructions, Sessions: a.MaxConcurrentSessions,
		Cooldown: time.Duration(a.CooldownMs) * time.Millisecond, SkipIdleWakeups: a.SkipIdleWakeups, ManagerID: string(a.ManagerID),
		SessionMaxRuns: a.SessionMaxRuns}
	if a.SessionMaxAgeMs != nil {
		s.SessionMaxAge = pgtx.Ptr(time.Duration(*a.SessionMaxAgeMs) * time.Millisecond)
	}
	if a.LaunchLimit != nil {
		s.LaunchLimit = &domain.LaunchLimit{Count: *a.LaunchLimit, Per: time.Duration(a.LaunchLimitMs) * time.Millisecond}
	}
	return s
}

func (t *tx) writeAgent(ctx context.Context, in UpdateAgent, s domain.AgentSettings) error {
	u := t.Agent.UpdateOneID(in.AgentID).AddRevision(1).SetUpdatedAt(t.Now).SetName(s.Name).SetInstructions(s.Instructions).
		SetMaxConcurrentSessions(s.Sessions).SetCooldownMs(s.Cooldown.Milliseconds()).SetSkipIdleWakeups(s.SkipIdleWakeups).
		ClearManager().ClearSessionMaxRuns().SetNillableSessionMaxRuns(s.SessionMaxRuns).ClearSessionMaxAgeMs().ClearLaunchLimit()
	if s.ManagerID != "" {
		u.SetManagerID(xid.ID(s.ManagerID))
	}
	if s.SessionMaxAge != nil {
		u.SetSessionMaxAgeMs(s.SessionMaxAge.Milliseconds())
	}
	if s.LaunchLimit != nil {
		u.SetLaunchLimit(s.LaunchLimit.Count).SetLaunchLimitMs(s.LaunchLimit.Per.Milliseconds())
	}
	switch {
	case in.Executor.Set && in.Executor.Value == nil:
		u.ClearExecutor()
	case in.Executor.Set:
		u.SetExecutor(in.Executor.Value)
	}
	err := u.Exec(ctx)
	if pgtx.UniqueViolation(err) != "" {
		return nameTaken("agent", s.Name)
	}
	if err != nil {
		return fmt.Errorf("update the agent's row: %w", err)
	}
	return nil
}

// writeCapacity brings the lane in line. The head is looked at again: what was full may have room now. Only then are its runs
// aged from now on.
func (t *tx) writeCapacity(ctx context.Context, l lane, s domain.AgentSettings) error {
	if l.maxSessions == s.Sessions && l.cooldown == s.Cooldown {
		return nil
	}
	const query = `
UPDATE agent_lanes
SET max_sessions = $2, cooldown_ms = $3,
  released_at = CASE WHEN running >= max_sessions AND running < $2 THEN $4 ELSE released_at END,
  eligible_at = CASE
  WHEN cooldown_ms = $3 OR last_finished_at IS NULL THEN eligible_at
  ELSE last_finished_at + $3 * interval '1 millisecond' END
WHERE agent_id = $1`
	if err := pgtx.ExecOne(ctx, t, query, l.agentID, s.Sessions, s.Cooldown.Milliseconds(), t.Now); err != nil {
		return fmt.Errorf("write the agent's capacity: %w", err)
	}
	return t.fixHead(ctx, l)
}

// releaseBraked lets the next pass look again at what waits because of the limit of unattended launches that was changed.
func (t *tx) releaseBraked(ctx context.Context, l lane) error {
	const query = `
UPDATE runs
SET parked_until = $2, revision = revision + 1
WHERE agent_id = $1 AND status = 'QUEUED' AND parked_until > $2 AND parked_reason = 'LOOP_BREAKER'`
	n, err := pgtx.Exec(ctx, t, query, l.agentID, t.Now)
	if n > 0 {
		t.Publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	}
	return pgtx.Wrap("release the runs that the limit of launches held", err)
}

// checkReportsTo refuses a manager that is not there, and a chain of managers that comes back to the agent.
func (t *tx) checkReportsTo(ctx context.Context, workspaceID, agentID, managerID xid.ID) error {
	if managerID == "" {
		return nil
	}
	const query = `
WITH RECURSIVE chain AS (
  SELECT id, manager_id, 1 AS depth FROM agents WHERE id = $1
  UNION ALL
  SELECT a.id, a.manager_id, c.depth + 1 FROM chain c JOIN agents a ON a.id = c.manager_id WHERE c.depth < 50)
SELECT EXISTS (SELECT 1 FROM chain WHERE id = $2)`
	loops, err := pgtx.QueryOne[bool](ctx, t, query, managerID, agentID)
	if err != nil {
		return fmt.Errorf("follow the managers: %w", err)
	}
	if loops {
		return domain.RefuseField([]string{"managerId"}, domain.UserErrorCodeInvalid, "the agent would report to itself; choose a manager that does not report to it")
	}
	return t.checkManager(ctx, workspaceID, managerID)
}
