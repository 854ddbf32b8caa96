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

// freeCheckout frees the task that an ended attempt of a run held, and no other run's lock. The requests that the lock
// made skip are sent again (SPEC S5.6, C301). The task's row is locked first, and the requests are looked for in the
// next statement, so that none is left which a claim skipped just before.
func (t *tx) freeCheckout(ctx context.Context, run runRow) error {
	if run.taskID == "" {
		return nil
	}
	const free = `
UPDATE tasks
SET checkout_agent_id = NULL, checkout_run_id = NULL, checkout_at = NULL
WHERE id = $1 AND checkout_run_id = $2`
	freed, err := pgtx.Exec(ctx, t, free, run.taskID, run.id)
	if err != nil {
		return fmt.Errorf("free the task: %w", err)
	}
	if freed == 0 {
		return nil
	}
	return t.resendHeld(ctx, run.workspaceID, run.taskID)
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
