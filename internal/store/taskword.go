package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// noteWord notes that somebody said where a locked task stands, and during which run: the one that holds the task and
// has started. The holder's start and its end lock the task as well, so that there is no doubt which came first. A word
// that came while no run was at work stands in the prompt of the next run, which answers it. So it replaces an earlier
// word.
func (t *tx) noteWord(ctx context.Context, taskID xid.ID) error {
	const query = `
UPDATE tasks
SET word_run_id = (
  SELECT id
  FROM runs
  WHERE id = checkout_run_id AND status = 'CLAIMED' AND started_at IS NOT NULL)
WHERE id = $1`
	if err := pgtx.ExecOne(ctx, t, query, taskID); err != nil {
		return fmt.Errorf("note who was at work when the task was spoken of: %w", err)
	}
	return nil
}
