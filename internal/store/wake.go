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

// asRequest fills in the request of a wake, with its entry of the feed.
func (x *waking) asRequest(ctx context.Context) {
	q, causation := x.request, xid.New("cau")
	*q = newRequest{id: q.id, workspaceID: x.WorkspaceID, agentID: x.AgentID, causationID: causation,
		scope: domain.ScopeTaskless, source: domain.WakeupSourceUser, class: domain.WakeClassEvent, personWaiting: true,
		reason: "woken by " + x.UserID, payload: &domain.UserPayload{UserID: x.UserID, Context: x.Context}}
	if x.Key != "" {
		q.key = "user:" + string(x.AgentID) + ":" + x.Key
	}
	q.asked = &entry{workspaceID: x.WorkspaceID, code: domain.ActivityCodeWakeupRequested, by: callerOr(x.as(ctx), "wakes"),
		summary: "Somebody asked that the agent be woken.", subjectID: q.id, agentID: x.AgentID, causationID: causation,
		data: map[string]any{"wakeupRequestId": q.id, "source": domain.WakeupSourceUser, "userId": x.UserID}}
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
