package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// lockRun locks a run of the workspace whose lane is held.
func (t *tx) lockRun(ctx context.Context, runID xid.ID) (runRow, error) {
	runs, err := pgtx.Collect(ctx, t, scanRun, `SELECT `+runColumns+` FROM runs r WHERE r.id = $1 FOR NO KEY UPDATE`, runID)
	if err != nil {
		return runRow{}, fmt.Errorf("lock run: %w", err)
	}
	if len(runs) == 0 {
		return runRow{}, fmt.Errorf("lock run %s: %w", runID, sql.ErrNoRows)
	}
	return runs[0], nil
}

// lockClaimed locks the run of a live attempt; ErrFenced when the attempt is not the live one any more.
func (t *tx) lockClaimed(ctx context.Context, a Attempt) (runRow, error) {
	const query = `
SELECT ` + runColumns + ` FROM runs r JOIN attempt_leases l ON l.run_id = r.id
WHERE r.id = $1 AND r.status = 'CLAIMED' AND r.attempt = $2 AND l.attempt = $2 AND l.owner = $3
FOR NO KEY UPDATE OF r`
	runs, err := pgtx.Collect(ctx, t, scanRun, query, a.RunID, a.Number, a.Owner)
	if err != nil {
		return runRow{}, fmt.Errorf("lock run: %w", err)
	}
	if len(runs) == 0 {
		return runRow{}, ErrFenced
	}
	return runs[0], nil
}

// withLive runs f on a live attempt: its agent's lane held and its run locked, in this order.
func (s *Queue) withLive(ctx context.Context, a Attempt, f func(*tx, runRow) error) error {
	return s.inTx(ctx, func(t *tx) error {
		if _, err := t.lockLaneOf(ctx, a.RunID); err != nil {
			return err
		}
		run, err := t.lockClaimed(ctx, a)
		if err != nil {
			return err
		}
		return f(t, run)
	})
}

// runEvent appends a step to the life of a run, numbered under the run's row lock, and tells the run's watchers.
func (t *tx) runEvent(ctx context.Context, run runRow, kind domain.RunEventKind, attempt int, data any) error {
	encoded, err := encodeData(data)
	if err != nil {
		return err
	}
	const query = `
-- $1 run, $2 kind, $3 attempt, or 0, $4 details, $5 now
WITH r AS (UPDATE runs SET event_seq = event_seq + 1 WHERE id = $1 RETURNING id, workspace_id, event_seq)
INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
SELECT workspace_id, id, event_seq, $2, NULLIF($3::int, 0), $4, $5 FROM r`
	if err := pgtx.ExecOne(ctx, t, query, run.id, kind, attempt, encoded, t.Now); err != nil {
		return fmt.Errorf("append run event %s: %w", kind, err)
	}
	t.Publish(event.Event{Kind: event.Run, WorkspaceID: run.workspaceID, ID: run.id})
	return nil
}

func encodeData(data any) ([]byte, error) {
	if data == nil {
		return []byte("{}"), nil
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode event data: %w", err)
	}
	return encoded, nil
}
