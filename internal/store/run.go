package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// runRow is a run as the queue's transitions need it.
type runRow struct {
	id, workspaceID, agentID, taskID, routineID, causationID xid.ID
	scope                                                    string
	source                                                   domain.WakeupSource
	class                                                    domain.WakeClass
	status                                                   domain.RunStatus
	parkedReason                                             *domain.ParkedReason
	parkedUntil                                              *time.Time
	attempt, abandonments, retryCount, guardErrors, hops     int
	sessionID                                                *string
	requestedAt                                              time.Time
	startedAt, cancelRequestedAt                             *time.Time

	queue   string    // whose workers are to execute it; the claim alone fills it in
	refused []outcome // what its attempt's result asked for in vain; takeIn alone fills it in
	unread  string    // what its attempt said of its use and nobody can read; spend alone fills it in, and
	charged string    // what it is charged with instead of such a cost, "" for nothing
}

const runColumns = `r.id, r.workspace_id, r.agent_id, r.task_id, r.routine_id, r.causation_id, r.scope, r.source, r.wake_class, r.status,
  r.parked_reason, r.parked_until, r.attempt, r.abandonments, r.retry_count, r.guard_errors, r.hops, r.session_id, r.requested_at,
  r.started_at, r.cancel_requested_at`

func scanRun(rows *sql.Rows) (runRow, error) { return scanRunAnd(rows) }

// scanRunAnd reads a run and the columns that follow it.
func scanRunAnd(rows *sql.Rows, more ...any) (r runRow, err error) {
	err = rows.Scan(append([]any{&r.id, &r.workspaceID, &r.agentID, &r.taskID, &r.routineID, &r.causationID, &r.scope, &r.source, &r.class, &r.status,
		&r.parkedReason, &r.parkedUntil, &r.attempt, &r.abandonments, &r.retryCount, &r.guardErrors, &r.hops, &r.sessionID, &r.requestedAt,
		&r.startedAt, &r.cancelRequestedAt}, more...)...)
	return r, err
}

// launched says whether the run's current attempt got past its start, so that an agent may have been at work.
func (r runRow) launched() bool { return r.status == domain.RunStatusClaimed && r.startedAt != nil }

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
func (s *Queue) withLive(ctx context.Context, a Attempt, f func(*tx, lane, runRow) error) error {
	return s.inTx(ctx, func(t *tx) error {
		l, err := t.lockLaneOf(ctx, a.RunID)
		if err != nil {
			return err
		}
		run, err := t.lockClaimed(ctx, a)
		if err != nil {
			return err
		}
		return f(t, l, run)
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

// outcome is what became of one action of a result, as the run's last event tells it.
type outcome struct {
	Type    domain.ActionType `json:"type,omitempty"`
	Done    bool              `json:"done"`
	ID      xid.ID            `json:"id,omitempty"`      // of what it made or changed
	Problem string            `json:"problem,omitempty"` // why it was not done
}
