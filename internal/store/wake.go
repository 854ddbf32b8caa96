package store

import (
	"context"
	"errors"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Wake is a person's wish that an agent be woken now (source USER).
type Wake struct {
	WorkspaceID, AgentID xid.ID
	UserID               string         // the person, as the front end knows them
	Context              map[string]any // details for the agent
	Idempotency
}

// Wake inserts the request, and routes it where nobody holds the agent's lane: else Route makes or finds its run. It is refused
// when the agent has too many queued runs (SPEC S3.10). Wakes that come at once share a transaction.
func (s *Queue) Wake(ctx context.Context, in Wake) (Made, error) {
	if in.UserID == "" {
		return Made{}, domain.RefuseField([]string{"userId"}, domain.UserErrorCodeRequired, "say who wakes the agent")
	}
	caller, _ := auth.FromContext(ctx)
	x := &waking{Wake: in, caller: caller}
	err := s.wakes.Ask(ctx, x)
	if errors.Is(err, errHeld) {
		err = errors.Join(s.wakeTogether(ctx, []*waking{x})...)
	}
	if err != nil {
		return Made{}, pgtx.Wrap("wake agent", err)
	}
	return x.made, nil
}

func (t *tx) wake(ctx context.Context, in Wake) (Made, error) {
	if err := t.checkWake(ctx, in.WorkspaceID, in.AgentID); err != nil {
		return Made{}, err
	}
	key := ""
	if in.Key != "" {
		key = "user:" + string(in.AgentID) + ":" + in.Key
	}
	causation := xid.New("cau")
	id, duplicate, err := t.insertRequest(ctx, newRequest{
		workspaceID: in.WorkspaceID, agentID: in.AgentID, causationID: causation,
		scope: domain.ScopeTaskless, source: domain.WakeupSourceUser, class: domain.WakeClassEvent, personWaiting: true,
		reason: "woken by " + in.UserID, payload: &domain.UserPayload{UserID: in.UserID, Context: in.Context}, key: key,
	})
	if err != nil || duplicate {
		return Made{ID: id, Replayed: duplicate}, err
	}
	return Made{ID: id}, t.note(ctx, entry{workspaceID: in.WorkspaceID, code: domain.ActivityCodeWakeupRequested, by: callerOr(ctx, "wakes"),
		summary: "Somebody asked that the agent be woken.", subjectID: id, agentID: in.AgentID, causationID: causation,
		data: map[string]any{"wakeupRequestId": id, "source": domain.WakeupSourceUser, "userId": in.UserID}})
}

// checkAgent refuses an agent that is not in the workspace or was deleted.
func (t *tx) checkAgent(ctx context.Context, workspaceID, agentID xid.ID, path []string) error {
	_, err := pgtx.QueryOne[bool](ctx, t, `
SELECT true FROM agents WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`, agentID, workspaceID)
	if err != nil {
		return pgtx.NotFound(err, path, "agent", agentID)
	}
	return nil
}

// checkWake refuses a person's wake when the agent is not there, or its backlog is full (SPEC S3.10).
func (t *tx) checkWake(ctx context.Context, workspaceID, agentID xid.ID) error {
	const query = `
SELECT (
  SELECT count(*)
  FROM (SELECT 1 FROM runs WHERE agent_id = $1 AND status = 'QUEUED' LIMIT $3) AS queued)
FROM agents
WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`
	queued, err := pgtx.QueryOne[int](ctx, t, query, agentID, workspaceID, domain.MaxBacklog+1)
	if err != nil {
		return pgtx.NotFound(err, []string{"agentId"}, "agent", agentID)
	}
	if domain.Backlog(queued, domain.WakeCauseWakeAgent) != domain.BacklogAccept {
		return domain.AsUserError([]domain.FieldError{domain.BacklogFull(queued)})
	}
	return nil
}

// coordinatorOf is the coordinator of an agent (SPEC S6.6): the nearest COORDINATOR up its manager chain, else the
// oldest one of the workspace that is not STOPPED. It is never the agent itself, and "" when there is no coordinator.
func (t *tx) coordinatorOf(ctx context.Context, workspaceID, agentID xid.ID) (xid.ID, error) {
	const query = `
WITH RECURSIVE chain AS (
  SELECT manager_id AS id, 1 AS depth FROM agents WHERE id = $2
  UNION ALL
  SELECT a.manager_id, c.depth + 1
  FROM chain c
  JOIN agents a ON a.id = c.id
  WHERE c.depth < 50),
candidates AS (
  SELECT a.id, c.depth, a.created_at
  FROM chain c
  JOIN agents a ON a.id = c.id
  WHERE a.role = 'COORDINATOR' AND a.deleted_at IS NULL
  UNION ALL
  SELECT a.id, 1000, a.created_at
  FROM agents a
  JOIN agent_lanes l ON l.agent_id = a.id
  WHERE a.workspace_id = $1 AND a.role = 'COORDINATOR' AND a.deleted_at IS NULL AND l.status <> 'STOPPED')
SELECT id
FROM candidates
WHERE id IS DISTINCT FROM $2
ORDER BY depth, created_at, id
LIMIT 1`
	id, err := pgtx.QueryOne[xid.ID](ctx, t, query, workspaceID, agentID)
	if pgtx.NoRows(err) {
		return "", nil
	}
	return id, pgtx.Wrap("find the coordinator", err)
}
