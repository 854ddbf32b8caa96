package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// DeleteAgent removes an agent for good; its history stays (SPEC S2). Its lane is STOPPED from now on. What is queued
// or unrouted ends CANCELLED (AGENT_DELETED) and is never launched. The first of it ends at once, the rest step by step
// (SettleBacklog). A live run is asked to end, and ends so when its owner obeys.
func (s *Records) DeleteAgent(ctx context.Context, workspaceID, agentID xid.ID) (deleted AgentDeleted, err error) {
	err = s.withAgent(ctx, workspaceID, agentID, func(t *tx, l lane) error {
		asked, err := t.deleteAgent(ctx, l)
		deleted = AgentDeleted{Resent: t.sent, AskedToEnd: firstListed(asked)}
		return err
	})
	return deleted, pgtx.Wrap("delete agent", err)
}

// AgentDeleted is what the removal of an agent causes: the requests of others that are sent again since its runs let go of
// tasks, and the first of its live runs that are asked to end, oldest first.
type AgentDeleted struct{ Resent, AskedToEnd []xid.ID }

// deleteAgent returns the live runs that it asks to end, oldest first.
func (t *tx) deleteAgent(ctx context.Context, l lane) (asked []xid.ID, err error) {
	const remove = `UPDATE agents SET deleted_at = $2, revision = revision + 1, updated_at = $2 WHERE id = $1`
	if err := pgtx.ExecOne(ctx, t, remove, l.agentID, t.Now); err != nil {
		return nil, fmt.Errorf("remove the agent: %w", err)
	}
	if err := t.writeHold(ctx, l, domain.AgentHold{Status: domain.AgentStatusStopped, Since: &t.Now}); err != nil {
		return nil, err
	}
	queued, first, err := t.queuedRunsOf(ctx, l.agentID)
	if err != nil {
		return nil, err
	}
	if err := t.clearDeleted(ctx, l, callerOr(ctx, "agents")); err != nil {
		return nil, err
	}
	if asked, err = t.cancelAllLive(ctx, l); err != nil {
		return nil, err
	}
	if err := t.cancelOffered(ctx, l); err != nil {
		return nil, err
	}
	return asked, t.note(ctx, entry{workspaceID: l.workspaceID, code: domain.ActivityCodeAgentChanged, by: callerOr(ctx, "agents"),
		summary: "The agent was deleted.", subjectID: l.agentID, agentID: l.agentID,
		data: map[string]any{"deleted": true, "runsCancelled": queued, "cancelledRunIds": first, "runsAskedToEnd": len(asked), "askedToEndRunIds": firstListed(asked)}})
}

// queuedRunsOf counts an agent's queued runs, and names some of them, the oldest first.
func (t *tx) queuedRunsOf(ctx context.Context, agentID xid.ID) (n int, some []xid.ID, err error) {
	const query = `SELECT id, count(*) OVER () FROM runs WHERE agent_id = $1 AND status = 'QUEUED' LIMIT $2`
	some, err = pgtx.Collect(ctx, t, func(rows *sql.Rows) (id xid.ID, err error) { return id, rows.Scan(&id, &n) }, query, agentID, listed)
	if err != nil {
		return 0, nil, fmt.Errorf("count the agent's queued runs: %w", err)
	}
	slices.Sort(some)
	return n, append([]xid.ID{}, some...), nil
}

// cancelAllLive asks the owners of a lane's live runs to end them, and returns these, oldest first.
func (t *tx) cancelAllLive(ctx context.Context, l lane) ([]xid.ID, error) {
	const query = `
UPDATE runs
SET cancel_requested_at = coalesce(cancel_requested_at, $2),
  cancel_note = coalesce(cancel_note, 'The agent was deleted.'), revision = revision + 1
WHERE agent_id = $1 AND status = 'CLAIMED' RETURNING id`
	live, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, l.agentID, t.Now)
	if err != nil {
		return nil, fmt.Errorf("ask for the end of live runs: %w", err)
	}
	slices.Sort(live)
	if err := t.askToEnd(ctx, live); err != nil {
		return nil, err
	}
	for _, id := range live {
		t.publishCancel(l.workspaceID, id)
	}
	return append([]xid.ID{}, live...), nil
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
		if err := t.cancelLive(ctx, run); err != nil {
			return err
		}
	}
	return t.leaveAll(ctx)
}
