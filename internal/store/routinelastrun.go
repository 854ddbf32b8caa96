package store

import (
	"context"
	"time"

	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/pgtx"
)

// touchLastRun moves last_run_at of routines forward, never back, in a savepoint: its failure never fails the fires, and is
// counted (AC-OFFICE-LOOP-LIVENESS-001). What fails for several is tried for each.
func (t *tx) touchLastRun(ctx context.Context, at time.Time, routines ...*routineRow) error {
	if len(routines) == 0 {
		return nil
	}
	err := t.savepoint(ctx, func() error {
		const query = `
UPDATE routines
SET last_run_at = $2, updated_at = $3
WHERE id = ANY($1) AND (last_run_at IS NULL OR last_run_at < $2)`
		_, err := pgtx.Exec(ctx, t, query, pgtx.IDs(routineIDs(routines)), at, t.Now)
		return err
	})
	if err == nil || ctx.Err() != nil || postgres.Away(err) || pgtx.Retryable(err) {
		return err
	}
	if len(routines) > 1 {
		for _, r := range routines {
			if err := t.touchLastRun(ctx, at, r); err != nil {
				return err
			}
		}
		return nil
	}
	r := routines[0]
	t.onCommit(func(s *base) {
		s.counters.LastRunAtWriteFailed(r.workspaceID)
		s.log.Error("last_run_at could not be written", "routine_id", r.id, "workspace_id", r.workspaceID, "error", err)
	})
	return nil
}
