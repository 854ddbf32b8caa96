package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

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
	unrouted, err := t.cancelUnrouted(ctx, l, of, pgtx.Ptr(backlogRequests))
	if err != nil {
		return err
	}
	more = more || unrouted == backlogRequests
	const left = `UPDATE agent_lanes SET clearing = $2, resend_from = NULL, resend_after = '' WHERE agent_id = $1`
	if err := pgtx.ExecOne(ctx, t, left, l.agentID, more); err != nil {
		return fmt.Errorf("note what is left of the agent's queue: %w", err)
	}
	if more {
		t.Publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	}
	return t.fixHead(ctx, l)
}

// queuedOf names what is queued and is to be ended, with the reason and the actor.
type queuedOf struct {
	reason domain.EndReason
	why    string // for people
	by     actor

	routineID xid.ID // only what this routine sent without a task; "": all
}

// cancelQueuedOf ends the queued runs of a routine in a locked lane, with their requests, and its unrouted requests. They
// are no more than an agent's backlog may hold of fires (SPEC S3.10). It returns the runs.
func (t *tx) cancelQueuedOf(ctx context.Context, l lane, of queuedOf) ([]runRow, error) {
	const lock = `
SELECT ` + runColumns + `
FROM runs r
WHERE r.agent_id = $1 AND r.status = 'QUEUED' AND r.routine_id = $2 AND r.task_id IS NULL
ORDER BY r.id
FOR NO KEY UPDATE`
	runs, err := pgtx.Collect(ctx, t, scanRun, lock, l.agentID, of.routineID)
	if err != nil {
		return nil, fmt.Errorf("lock the queued runs: %w", err)
	}
	if err := t.cancelRuns(ctx, runs, of); err != nil {
		return nil, err
	}
	_, err = t.cancelUnrouted(ctx, l, of, nil)
	return runs, err
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

// cancelUnrouted ends requests that were not routed yet, up to a limit, and the fires behind them.
func (t *tx) cancelUnrouted(ctx context.Context, l lane, of queuedOf, most *int) (int, error) {
	const query = `
-- $1 agent, $2 now, $3 why they end, $4 routine, or "" for all, $5 how many at most
UPDATE wakeup_requests SET status = 'CANCELLED', end_reason = $3, finished_at = $2 WHERE id IN (
  SELECT id
  FROM wakeup_requests
  WHERE agent_id = $1 AND ` + guard.Unrouted + ` AND ($4 = '' OR routine_id = $4 AND task_id IS NULL)
  LIMIT $5)
RETURNING id, routine_run_id, task_id`
	var fires, tasks []xid.ID
	ended, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (id xid.ID, err error) {
		var fire, task xid.ID
		err = rows.Scan(&id, &fire, &task)
		fires, tasks = append(fires, fire), append(tasks, task)
		return id, err
	}, query, l.agentID, t.Now, of.reason, string(of.routineID), most)
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
