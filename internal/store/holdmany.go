package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// AgentIn names an agent, and the workspace that it is expected in.
type AgentIn struct{ WorkspaceID, AgentID xid.ID }

// PauseAgents holds agents for a person, all in one transaction and in as many statements as for one. Those that a person paused
// before, and those that are stopped, stay as they are. It returns those that it paused.
func (s *Queue) PauseAgents(ctx context.Context, agents []AgentIn, note string) ([]xid.ID, error) {
	if err := checkNote(note); err != nil {
		return nil, err
	}
	changed, err := s.changeHolds(ctx, agents, func(t *tx, h domain.AgentHold) domain.AgentHold {
		if h.Status == domain.AgentStatusStopped { // it launches nothing already
			return h
		}
		next, _ := h.Pause(domain.AgentPauseReasonUser, t.Now)
		return next
	}, func(_ lane, _, next domain.AgentHold) entry {
		return entry{code: domain.ActivityCodeAgentPaused, summary: "The agent was paused.",
			data: withNote(map[string]any{"status": next.Status, "pauseReason": *next.PauseReason}, note)}
	})
	return changed, pgtx.Wrap("pause agents", err)
}

// ResumeAgents lets held agents go on, all in one transaction and in as many statements as for one. What their holds dropped is sent
// again step by step (SettleBacklog). It returns those that were held.
func (s *Queue) ResumeAgents(ctx context.Context, agents []AgentIn) ([]xid.ID, error) {
	changed, err := s.changeHolds(ctx, agents, func(_ *tx, h domain.AgentHold) domain.AgentHold {
		if !h.Held() {
			return h
		}
		return h.Resume()
	}, func(_ lane, was, _ domain.AgentHold) entry {
		return entry{code: domain.ActivityCodeAgentResumed, summary: "The agent was resumed.", data: withWas(map[string]any{}, was)}
	})
	return changed, pgtx.Wrap("resume agents", err)
}

// changeHolds changes whether agents are held, and tells it in the feed. It returns those that changed, in the order asked.
func (s *Queue) changeHolds(ctx context.Context, agents []AgentIn, decide func(*tx, domain.AgentHold) domain.AgentHold, told func(l lane, was, next domain.AgentHold) entry) (changed []xid.ID, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		changed = nil
		lanes, err := t.lockAgents(ctx, agents)
		if err != nil {
			return err
		}
		holds, err := t.readHolds(ctx, agents)
		if err != nil {
			return err
		}
		next := map[xid.ID]domain.AgentHold{}
		var entries []entry
		for _, a := range agents {
			was, l := holds[a.AgentID], lanes[a.AgentID]
			hold := decide(t, was)
			if hold.Same(was) {
				continue
			}
			e := told(l, was, hold)
			e.workspaceID, e.by, e.subjectID, e.agentID = l.workspaceID, callerOr(ctx, "agents"), l.agentID, l.agentID
			next[a.AgentID], entries, changed = hold, append(entries, e), append(changed, a.AgentID)
			t.Publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
		}
		return t.writeHolds(ctx, changed, next, entries)
	})
	return changed, err
}

// lockAgents locks the lanes of agents, and refuses the call when one is not there, or was deleted.
func (t *tx) lockAgents(ctx context.Context, agents []AgentIn) (laneSet, error) {
	ids := make([]string, len(agents))
	for i, a := range agents {
		ids[i] = string(a.AgentID)
	}
	list, err := t.lockLanesIn(ctx, ids)
	if err != nil {
		return nil, err
	}
	const query = `SELECT id FROM agents WHERE id = ANY($1) AND deleted_at IS NULL`
	there, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, pgtx.TextArray(ids))
	if err != nil {
		return nil, fmt.Errorf("look for agents: %w", err)
	}
	lanes := laneSet{}
	for _, l := range list {
		lanes[l.agentID] = l
	}
	var problems []domain.FieldError
	for i, a := range agents {
		if lanes[a.AgentID].workspaceID != a.WorkspaceID || !slices.Contains(there, a.AgentID) {
			problems = append(problems, domain.FieldError{Field: []string{"agentIds", fmt.Sprint(i)}, Code: domain.UserErrorCodeNotFound,
				Message: fmt.Sprintf("there is no agent %s", a.AgentID)})
		}
	}
	return lanes, domain.AsUserError(problems)
}

func (t *tx) readHolds(ctx context.Context, agents []AgentIn) (map[xid.ID]domain.AgentHold, error) {
	ids := make([]xid.ID, len(agents))
	for i, a := range agents {
		ids[i] = a.AgentID
	}
	holds := map[xid.ID]domain.AgentHold{}
	const query = `SELECT agent_id, status, pause_reason, paused_at FROM agent_lanes WHERE agent_id = ANY($1)`
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (h domain.AgentHold, err error) {
		var id xid.ID
		err = rows.Scan(&id, &h.Status, &h.PauseReason, &h.Since)
		holds[id] = h
		return h, err
	}, query, pgtx.IDs(ids))
	return holds, pgtx.Wrap("read which agents are held", err)
}

// writeHolds writes holds that changed. A lane that is held no more notes since when its requests are to be sent again, unless an
// earlier resume was not through.
func (t *tx) writeHolds(ctx context.Context, changed []xid.ID, holds map[xid.ID]domain.AgentHold, entries []entry) error {
	if len(changed) == 0 {
		return nil
	}
	statuses, reasons, since := make([]string, len(changed)), make([]string, len(changed)), make([]string, len(changed))
	for i, id := range changed {
		h := holds[id]
		statuses[i], reasons[i], since[i] = string(h.Status), string(pgtx.OrZero(h.PauseReason)), instant(h.Since)
	}
	encoded, err := t.encodeEntries(entries)
	if err != nil {
		return err
	}
	query := `
-- $1 agents, $2 their states, $3 why they are paused, or "", $4 since when, or "", $5 entries as JSON, $6 now
WITH told AS (` + entriesInto("$5", "$6") + ` RETURNING 1)
UPDATE agent_lanes l
SET status = n.status::agent_status, pause_reason = NULLIF(n.reason, '')::agent_pause_reason,
  paused_at = NULLIF(n.since, '')::timestamptz,
  resend_from = CASE WHEN n.status = 'IDLE' THEN coalesce(l.resend_from, l.paused_at) ELSE l.resend_from END
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS n (agent, status, reason, since)
WHERE l.agent_id = n.agent AND l.agent_id = ANY($1) AND (SELECT count(*) FROM told) >= 0
RETURNING l.agent_id`
	written, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, pgtx.IDs(changed), pgtx.TextArray(statuses), pgtx.TextArray(reasons), pgtx.TextArray(since), encoded, t.Now)
	if err == nil && len(written) != len(changed) {
		err = fmt.Errorf("changed %d of %d", len(written), len(changed))
	}
	if err != nil {
		return fmt.Errorf("write which agents are held: %w", err)
	}
	return t.fixHeadsOf(ctx, changed)
}
