package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/xid"
)

// lane is an agent's hot state, locked.
type lane struct {
	agentID, workspaceID xid.ID
	status               domain.AgentStatus
	maxSessions, running int
	cooldown             time.Duration
	eligibleAt           time.Time
	headAt               *time.Time
	headID               *string
}

const laneColumns = `agent_id, workspace_id, status, max_sessions, running, cooldown_ms, eligible_at, head_at, head_id`

func scanLane(rows *sql.Rows) (l lane, err error) {
	var cooldown int64
	err = rows.Scan(&l.agentID, &l.workspaceID, &l.status, &l.maxSessions, &l.running, &cooldown, &l.eligibleAt, &l.headAt, &l.headID)
	l.cooldown = time.Duration(cooldown) * time.Millisecond
	return l, err
}

// lockLane takes the lock that every change of an agent's queue needs first, then reads the clock. Statements after it
// see what the former holder committed.
func (t *tx) lockLane(ctx context.Context, agentID xid.ID) (lane, error) {
	if err := t.pinPlans(ctx); err != nil {
		return lane{}, err
	}
	lanes, err := collect(ctx, t, scanLane, `SELECT `+laneColumns+` FROM agent_lanes WHERE agent_id = $1 FOR NO KEY UPDATE`, agentID)
	if err != nil {
		return lane{}, fmt.Errorf("lock lane: %w", err)
	}
	if len(lanes) == 0 {
		return lane{}, fmt.Errorf("lock lane: agent %s has none", agentID)
	}
	return lanes[0], t.readClock(ctx)
}

// pinPlans keeps the planner on the queue's indexes: a queue is empty when it is analysed, and a plan made then scans
// the whole table later (queue rule 8).
func (t *tx) pinPlans(ctx context.Context) error {
	if _, err := exec(ctx, t, `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off`); err != nil {
		return fmt.Errorf("pin plans: %w", err)
	}
	return nil
}

// fixHead recomputes the oldest due run of a lane. It runs as a statement of its own, after the changes it must see, and
// tells the dispatchers when there is something to take.
func (t *tx) fixHead(ctx context.Context, l lane) error {
	const query = `
WITH head AS (
  SELECT requested_at, id FROM runs
  WHERE agent_id = $1 AND status = 'QUEUED' AND parked_reason IS NULL
  ORDER BY requested_at, id LIMIT 1)
UPDATE agent_lanes SET head_at = (SELECT requested_at FROM head), head_id = (SELECT id FROM head)
WHERE agent_id = $1
RETURNING head_id`
	head, err := queryOne[*string](ctx, t, query, l.agentID)
	if err != nil {
		return fmt.Errorf("recompute the lane's head: %w", err)
	}
	if head != nil {
		t.publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	}
	return nil
}

// agentOfRun finds the lane to lock before the run's own row may be locked.
func agentOfRun(ctx context.Context, q querier, runID xid.ID) (xid.ID, error) {
	agentID, err := queryOne[xid.ID](ctx, q, `SELECT agent_id FROM runs WHERE id = $1`, runID)
	if errors.Is(err, sql.ErrNoRows) {
		return "", domain.Refuse(domain.UserErrorCodeNotFound, "there is no run %s", runID)
	}
	if err != nil {
		return "", fmt.Errorf("find the run's agent: %w", err)
	}
	return agentID, nil
}
