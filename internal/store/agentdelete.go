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
// unrouted ends CANCELLED (AGENT_DELETED), the first of it at once and the rest step by step (SettleBacklog), none of it is
// launched; a live run is asked to end, and ends so when its owner obeys. It returns the requests of others that are sent
// again since its runs let go of tasks.
func (s *Store) DeleteAgent(ctx context.Context, workspaceID, agentID xid.ID) (resent []xid.ID, err error) {
	err = s.withAgent(ctx, workspaceID, agentID, func(t *tx, l lane) error {
		err := t.deleteAgent(ctx, l)
		resent = t.sent
		return err
	})
	return resent, wrap("delete agent", err)
}

func (t *tx) deleteAgent(ctx context.Context, l lane) error {
	const remove = `UPDATE agents SET deleted_at = $2, revision = revision + 1, updated_at = $2 WHERE id = $1`
	if err := execOne(ctx, t, remove, l.agentID, t.now); err != nil {
		return fmt.Errorf("remove the agent: %w", err)
	}
	if err := t.writeHold(ctx, l, domain.AgentHold{Status: domain.AgentStatusStopped, Since: &t.now}); err != nil {
		return err
	}
	queued, err := queryOne[int](ctx, t, `SELECT count(*) FROM runs WHERE agent_id = $1 AND status = 'QUEUED'`, l.agentID)
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

// clearDeleted ends as much of a deleted agent's queue as one step may, and remembers on the lane whether there is more.
// What its hold had dropped stays ended.
func (t *tx) clearDeleted(ctx context.Context, l lane, by actor) error {
	runs, more, err := t.someQueued(ctx, l, `true`, ``)
	if err != nil {
		return err
	}
	of := queuedOf{reason: domain.EndReasonAgentDeleted, why: "its agent was deleted", by: by}
	if err := t.cancelRuns(ctx, runs, of); err != nil {
		return err
	}
	unrouted, err := t.cancelUnrouted(ctx, l, of, ptr(backlogRequests))
	if err != nil {
		return err
	}
	more = more || unrouted == backlogRequests
	const left = `UPDATE agent_lanes SET clearing = $2, resend_from = NULL, resend_after = '' WHERE agent_id = $1`
	if err := execOne(ctx, t, left, l.agentID, more); err != nil {
		return fmt.Errorf("note what is left of the agent's queue: %w", err)
	}
	if more {
		t.publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	}
	return t.fixHead(ctx, l)
}

// queuedOf says why something queued is to be ended, and who does it.
type queuedOf struct {
	reason domain.EndReason
	why    string // for people
	by     actor

	routineID xid.ID // only what this routine sent without a task; "": all
}

// cancelQueuedOf ends the queued runs of a routine in a locked lane, with their requests, and its unrouted requests. They
// are no more than an agent's backlog may hold of fires (SPEC S3.10).
func (t *tx) cancelQueuedOf(ctx context.Context, l lane, of queuedOf) (int, error) {
	const lock = `SELECT ` + runColumns + ` FROM runs r WHERE r.agent_id = $1 AND r.status = 'QUEUED' AND r.routine_id = $2 AND r.task_id IS NULL ORDER BY r.id FOR NO KEY UPDATE`
	runs, err := collect(ctx, t, scanRun, lock, l.agentID, of.routineID)
	if err != nil {
		return 0, fmt.Errorf("lock the queued runs: %w", err)
	}
	if err := t.cancelRuns(ctx, runs, of); err != nil {
		return 0, err
	}
	_, err = t.cancelUnrouted(ctx, l, of, nil)
	return len(runs), err
}

// cancelRuns ends queued runs of one lane, with their requests and the fires behind them, in as many statements for one as
// for a thousand.
func (t *tx) cancelRuns(ctx context.Context, runs []runRow, of queuedOf) error {
	end := domain.Settlement{Run: domain.RunStatusCancelled, Request: domain.WakeupStatusCancelled, Reason: of.reason}
	told := entry{code: domain.ActivityCodeRunCancelled, by: of.by, summary: "The run was cancelled: " + of.why + ".", data: map[string]any{"reason": of.reason}}
	if err := t.endUnlaunched(ctx, runs, end, told); err != nil {
		return err
	}
	_, err := t.endRequestsOf(ctx, runs, end)
	return err
}

// cancelUnrouted ends requests that were not routed yet, at most so many, and the fires behind them.
func (t *tx) cancelUnrouted(ctx context.Context, l lane, of queuedOf, most *int) (int, error) {
	const query = `
UPDATE wakeup_requests SET status = 'CANCELLED', end_reason = $3, finished_at = $2 WHERE id IN (
  SELECT id FROM wakeup_requests WHERE agent_id = $1 AND status = 'QUEUED' AND run_id IS NULL AND ($4 = '' OR routine_id = $4 AND task_id IS NULL) LIMIT $5)
RETURNING id, routine_run_id, task_id`
	var fires, tasks []xid.ID
	ended, err := collect(ctx, t, func(rows *sql.Rows) (id xid.ID, err error) {
		var fire, task xid.ID
		err = rows.Scan(&id, &fire, &task)
		fires, tasks = append(fires, fire), append(tasks, task)
		return id, err
	}, query, l.agentID, t.now, of.reason, string(of.routineID), most)
	if err != nil {
		return 0, fmt.Errorf("end unrouted requests: %w", err)
	}
	end := routineRunEnd{status: domain.RoutineRunStatusCancelled, reason: &of.reason}
	if err := t.endFires(ctx, fires, tasks, end); err != nil {
		return 0, err
	}
	summary := "The wakeup was cancelled: " + of.why + "."
	return len(ended), t.noteRequests(ctx, l.workspaceID, ended, domain.ActivityCodeWakeupStaleCancelled, of.by, summary, of.reason)
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
	if err := t.askToEnd(ctx, live); err != nil {
		return 0, err
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
