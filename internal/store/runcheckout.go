package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// freeCheckouts frees the tasks that ended attempts of runs held, and no other run's lock. The requests that the locks
// made skip are sent again (SPEC S5.6, C301). The tasks' rows are locked first, and the requests are looked for in the
// next statement, so that none is left which a claim skipped just before.
func (t *tx) freeCheckouts(ctx context.Context, left []departure) error {
	var tasks, runs []xid.ID
	for _, d := range left {
		if d.run.taskID != "" {
			tasks, runs = append(tasks, d.run.taskID), append(runs, d.run.id)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	const free = `
UPDATE tasks k
SET checkout_agent_id = NULL, checkout_run_id = NULL, checkout_at = NULL
FROM unnest($1::text[], $2::text[]) AS n (task, run)
WHERE k.id = n.task AND k.checkout_run_id = n.run AND k.id = ANY($1)
RETURNING k.workspace_id, k.id`
	freed, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (of [2]xid.ID, err error) { return of, rows.Scan(&of[0], &of[1]) }, free, pgtx.IDs(tasks), pgtx.IDs(runs))
	if err != nil {
		return fmt.Errorf("free the tasks: %w", err)
	}
	for _, of := range freed {
		if err := t.resendHeld(ctx, of[0], of[1]); err != nil {
			return err
		}
	}
	return nil
}

// resendHeld returns the requests to the router that a task's lock made skip: the same rows, at their places in the order.
// They are of other agents, whose lanes are not held: they are written unrouted, as new ones are.
func (t *tx) resendHeld(ctx context.Context, workspaceID, taskID xid.ID) error {
	const query = `
UPDATE wakeup_requests
SET status = 'QUEUED', run_id = NULL, end_reason = NULL, resends = resends + 1, claimed_at = NULL,
  delivered_at = NULL, finished_at = NULL, scheduled_retry_at = NULL, retry_source = NULL
WHERE task_id = $1 AND status = 'SKIPPED' AND end_reason = 'CHECKOUT_HELD' RETURNING id, agent_id`
	var resent []xid.ID
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var id, agentID xid.ID
		err := rows.Scan(&id, &agentID)
		resent = append(resent, id)
		t.Publish(event.Event{Kind: event.Queue, WorkspaceID: workspaceID, ID: agentID})
		return struct{}{}, err
	}, query, taskID)
	if err != nil {
		return fmt.Errorf("send what the lock held up again: %w", err)
	}
	t.sent = append(t.sent, resent...)
	return t.noteRequests(ctx, workspaceID, resent, domain.ActivityCodeWakeupResent, system("queue"), "The task is free again; the wakeup was sent again.", "")
}
