package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// DeleteAgent removes an agent for good; its history stays (SPEC S2). Its lane is STOPPED from now on. What is queued
// or unrouted ends CANCELLED (AGENT_DELETED) and is never launched. The first of it ends at once, the rest step by step
// (SettleBacklog). A live run is asked to end, and ends so when its owner obeys. It returns the requests of others that
// are sent again since its runs let go of tasks.
func (s *Records) DeleteAgent(ctx context.Context, workspaceID, agentID xid.ID) (resent []xid.ID, err error) {
	err = s.withAgent(ctx, workspaceID, agentID, func(t *tx, l lane) error {
		err := t.deleteAgent(ctx, l)
		resent = t.sent
		return err
	})
	return resent, pgtx.Wrap("delete agent", err)
}

func (t *tx) deleteAgent(ctx context.Context, l lane) error {
	const remove = `UPDATE agents SET deleted_at = $2, revision = revision + 1, updated_at = $2 WHERE id = $1`
	if err := pgtx.ExecOne(ctx, t, remove, l.agentID, t.Now); err != nil {
		return fmt.Errorf("remove the agent: %w", err)
	}
	if err := t.writeHold(ctx, l, domain.AgentHold{Status: domain.AgentStatusStopped, Since: &t.Now}); err != nil {
		return err
	}
	queued, err := pgtx.QueryOne[int](ctx, t, `SELECT count(*) FROM runs WHERE agent_id = $1 AND status = 'QUEUED'`, l.agentID)
	if err != nil {
		return fmt.Errorf("count the agent's queued runs: %w", err)
	}
	if err := t.clearDeleted(ctx, l, callerOr(ctx, "agents")); err != nil {
		return err
	}
	asked, err := t.cancelAllLive(ctx, l)
	if err != nil {
		return err
	}
	if err := t.cancelOffered(ctx, l); err != nil {
		return err
	}
	return t.note(ctx, entry{workspaceID: l.workspaceID, code: domain.ActivityCodeAgentChanged, by: callerOr(ctx, "agents"),
		summary: "The agent was deleted.", subjectID: l.agentID, agentID: l.agentID,
		data: map[string]any{"deleted": true, "runsCancelled": queued, "runsAskedToEnd": asked}})
}

// cancelAllLive asks the owners of a lane's live runs to end them.
func (t *tx) cancelAllLive(ctx context.Context, l lane) (int, error) {
	const query = `
UPDATE runs
SET cancel_requested_at = coalesce(cancel_requested_at, $2),
  cancel_note = coalesce(cancel_note, 'The agent was deleted.'), revision = revision + 1
WHERE agent_id = $1 AND status = 'CLAIMED' RETURNING id`
	live, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, l.agentID, t.Now)
	if err != nil {
		return 0, fmt.Errorf("ask for the end of live runs: %w", err)
	}
	if err := t.askToEnd(ctx, live); err != nil {
		return 0, err
	}
	for _, id := range live {
		t.Publish(event.Event{Kind: event.Run, WorkspaceID: l.workspaceID, ID: id})
	}
	return len(live), nil
}

// cancelOffered ends a lane's runs that wait for a worker: nobody is there to obey a flag.
func (t *tx) cancelOffered(ctx context.Context, l lane) error {
	const query = `
SELECT ` + runColumns + ` FROM runs r JOIN attempt_leases a ON a.run_id = r.id AND a.attempt = r.attempt
WHERE r.agent_id = $1 AND r.status = 'CLAIMED' AND a.owner IS NULL ORDER BY r.id FOR NO KEY UPDATE OF r`
	runs, err := pgtx.Collect(ctx, t, scanRun, query, l.agentID)
	if err != nil {
		return fmt.Errorf("lock runs that wait for a worker: %w", err)
	}
	for _, run := range runs {
		if err := t.cancelLive(ctx, l, run); err != nil {
			return err
		}
	}
	return nil
}
