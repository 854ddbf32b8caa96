package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// orphanCheckouts finds tasks whose lock is of a run that is not live, without locks.
func (s *Records) orphanCheckouts(ctx context.Context) ([]xid.ID, error) {
	return pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], orphanCheckoutsQuery)
}

const orphanCheckoutsQuery = `
SELECT t.id FROM tasks t WHERE t.checkout_run_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = t.checkout_run_id AND r.status = 'CLAIMED') LIMIT 200`

// reapCheckout frees a task whose holder is not live (C87), and says whether it did.
func (t *tx) reapCheckout(ctx context.Context, taskID xid.ID) (bool, error) {
	if _, err := t.lockTasks(ctx, taskID); err != nil {
		return false, err
	}
	if err := t.ReadClock(ctx); err != nil {
		return false, err
	}
	const free = `
UPDATE tasks t
SET checkout_agent_id = NULL, checkout_run_id = NULL, checkout_at = NULL
WHERE id = $1 AND checkout_run_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = t.checkout_run_id AND r.status = 'CLAIMED')
  RETURNING workspace_id`
	workspaceID, err := pgtx.QueryOne[xid.ID](ctx, t, free, taskID)
	if pgtx.NoRows(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("free the task: %w", err)
	}
	return true, t.resendHeld(ctx, workspaceID, taskID)
}
