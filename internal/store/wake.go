package store

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Wake is a person's wish that an agent be woken now (source USER).
type Wake struct {
	WorkspaceID, AgentID xid.ID
	UserID               string         // the person, as the front end knows them
	Context              map[string]any // details for the agent
	Idempotency
}

// Wake inserts the request, unrouted; Route makes or finds its run. It is refused when the agent has too many queued
// runs (SPEC S3.10).
func (s *Store) Wake(ctx context.Context, in Wake) (made Made, err error) {
	if in.UserID == "" {
		return Made{}, domain.RefuseField([]string{"userId"}, domain.UserErrorCodeRequired, "say who wakes the agent")
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.once(ctx, in.WorkspaceID, "wakeAgent", in.Idempotency, func() (Made, error) { return t.wake(ctx, in) })
		return err
	})
	return made, wrap("wake agent", err)
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
	_, err := queryOne[bool](ctx, t, `SELECT true FROM agents WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`, agentID, workspaceID)
	if err != nil {
		return notFound(err, path, "agent", agentID)
	}
	return nil
}

// checkWake refuses a person's wake when the agent is not there, or its backlog is full (SPEC S3.10).
func (t *tx) checkWake(ctx context.Context, workspaceID, agentID xid.ID) error {
	const query = `
SELECT (SELECT count(*) FROM (SELECT 1 FROM runs WHERE agent_id = $1 AND status = 'QUEUED' LIMIT $3) AS queued)
FROM agents WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`
	queued, err := queryOne[int](ctx, t, query, agentID, workspaceID, domain.MaxBacklog+1)
	if err != nil {
		return notFound(err, []string{"agentId"}, "agent", agentID)
	}
	if domain.Backlog(queued, domain.WakeCauseWakeAgent) != domain.BacklogAccept {
		return domain.AsUserError([]domain.FieldError{domain.BacklogFull(queued)})
	}
	return nil
}
