package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/xid"
)

// DeleteAgent removes an agent for good; its history stays (SPEC S2). Its lane is STOPPED from now on. What is queued or
// unrouted ends CANCELLED (AGENT_DELETED); a live run is asked to end, and ends so when its owner obeys.
func (s *Store) DeleteAgent(ctx context.Context, workspaceID, agentID xid.ID) error {
	return wrap("delete agent", s.withAgent(ctx, workspaceID, agentID, func(t *tx, l lane) error { return t.deleteAgent(ctx, l) }))
}

func (t *tx) deleteAgent(ctx context.Context, l lane) error {
	const remove = `UPDATE agents SET deleted_at = $2, revision = revision + 1, updated_at = $2 WHERE id = $1`
	if err := execOne(ctx, t, remove, l.agentID, t.now); err != nil {
		return fmt.Errorf("remove the agent: %w", err)
	}
	if err := t.writeHold(ctx, l, domain.AgentHold{Status: domain.AgentStatusStopped, Since: &t.now}); err != nil {
		return err
	}
	cancelled, err := t.cancelQueued(ctx, l, queuedOf{reason: domain.EndReasonAgentDeleted, why: "its agent was deleted"})
	if err != nil {
		return err
	}
	asked, err := t.cancelAllLive(ctx, l)
	if err != nil {
		return err
	}
	if err := t.cancelOffered(ctx, l); err != nil {
		return err
	}
	if err := t.fixHead(ctx, l); err != nil {
		return err
	}
	return t.note(ctx, entry{workspaceID: l.workspaceID, code: domain.ActivityCodeAgentChanged, by: callerOr(ctx, "agents"),
		summary: "The agent was deleted.", subjectID: l.agentID, agentID: l.agentID,
		data: map[string]any{"deleted": true, "runsCancelled": cancelled, "runsAskedToEnd": asked}})
}

// queuedOf names what is to be ended of an agent's queue: all of it, or what a routine sent without a task; and why.
type queuedOf struct {
	routineID xid.ID // "": all
	reason    domain.EndReason
	why       string // for people
}

// cancelQueued ends queued runs of a locked lane, with their requests, and unrouted requests, in as many statements for
// one as for a thousand.
func (t *tx) cancelQueued(ctx context.Context, l lane, of queuedOf) (int, error) {
	const lock = `SELECT ` + runColumns + ` FROM runs r WHERE r.agent_id = $1 AND r.status = 'QUEUED' AND ($2 = '' OR r.routine_id = $2 AND r.task_id IS NULL)
ORDER BY r.id FOR NO KEY UPDATE`
	runs, err := collect(ctx, t, scanRun, lock, l.agentID, string(of.routineID))
	if err != nil {
		return 0, fmt.Errorf("lock the queued runs: %w", err)
	}
	runIDs := make([]xid.ID, len(runs))
	for i, run := range runs {
		runIDs[i] = run.id
	}
	const end = `
WITH r AS (
  UPDATE runs SET status = 'CANCELLED', end_reason = $6, finished_at = $2, parked_reason = NULL, parked_until = NULL,
    revision = revision + 1, event_seq = event_seq + 1
  WHERE id = ANY($1) RETURNING id, workspace_id, agent_id, task_id, causation_id, event_seq, attempt),
e AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
  SELECT workspace_id, id, event_seq, 'CANCELLED', NULLIF(attempt, 0), jsonb_build_object('reason', $6::text), $2 FROM r)` + activityInto + `
SELECT n.id, r.workspace_id, 'RUN_CANCELLED', 'The run was cancelled: ' || $7::text || '.', $4, $5, r.id, r.agent_id, r.task_id,
  jsonb_build_object('reason', $6::text), r.causation_id, $2
FROM unnest($3::text[], $1::text[]) AS n (id, run) JOIN r ON r.id = n.run`
	by := callerOr(ctx, "agents")
	if _, err := exec(ctx, t, end, ids(runIDs), t.now, ids(newIDs("act", len(runs))), by.kind, by.name, of.reason, of.why); err != nil {
		return 0, fmt.Errorf("end the queued runs: %w", err)
	}
	for _, run := range runs {
		t.countEnd(run, runEnd{status: domain.RunStatusCancelled, reason: &of.reason}, run.sessionID)
	}
	return len(runs), t.endQueuedRequests(ctx, l, runIDs, of)
}

// endQueuedRequests ends the requests of queued runs and those that were not routed yet, and the fires behind them.
func (t *tx) endQueuedRequests(ctx context.Context, l lane, runIDs []xid.ID, of queuedOf) error {
	var fires, tasks []xid.ID
	for _, which := range []string{
		`run_id = ANY($3) AND status IN ('QUEUED', 'CLAIMED', 'COALESCED') AND $5::text IS NOT NULL`,
		`$3::text[] IS NOT NULL AND status = 'QUEUED' AND run_id IS NULL AND ($5::text = '' OR routine_id = $5 AND task_id IS NULL)`,
	} {
		query := `
UPDATE wakeup_requests SET status = 'CANCELLED', end_reason = $4, finished_at = $2
WHERE agent_id = $1 AND ` + which + ` RETURNING routine_run_id, task_id`
		_, err := collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
			var fire, task xid.ID
			err = rows.Scan(&fire, &task)
			fires, tasks = append(fires, fire), append(tasks, task)
			return struct{}{}, err
		}, query, l.agentID, t.now, ids(runIDs), of.reason, string(of.routineID))
		if err != nil {
			return fmt.Errorf("end the queued requests: %w", err)
		}
	}
	end := routineRunEnd{status: domain.RoutineRunStatusCancelled, reason: &of.reason}
	if err := t.endRoutineRuns(ctx, fires, end); err != nil {
		return err
	}
	return t.endFiresOfTasks(ctx, tasks, end)
}

// cancelAllLive asks the owners of a lane's live runs to end them.
func (t *tx) cancelAllLive(ctx context.Context, l lane) (int, error) {
	const query = `
UPDATE runs SET cancel_requested_at = coalesce(cancel_requested_at, $2), cancel_note = coalesce(cancel_note, 'The agent was deleted.'), revision = revision + 1
WHERE agent_id = $1 AND status = 'CLAIMED' RETURNING id`
	live, err := collect(ctx, t, scanOne[xid.ID], query, l.agentID, t.now)
	if err != nil {
		return 0, fmt.Errorf("ask for the end of live runs: %w", err)
	}
	for _, id := range live {
		t.publish(event.Event{Kind: event.Run, WorkspaceID: l.workspaceID, ID: id})
	}
	return len(live), nil
}

// cancelOffered ends a lane's runs that wait for a worker: nobody is there to obey a flag.
func (t *tx) cancelOffered(ctx context.Context, l lane) error {
	const query = `
SELECT ` + runColumns + ` FROM runs r JOIN attempt_leases a ON a.run_id = r.id AND a.attempt = r.attempt
WHERE r.agent_id = $1 AND r.status = 'CLAIMED' AND a.owner IS NULL ORDER BY r.id FOR NO KEY UPDATE OF r`
	runs, err := collect(ctx, t, scanRun, query, l.agentID)
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
