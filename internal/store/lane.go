package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

const laneColumns = `agent_id, workspace_id, status, max_sessions, running, cooldown_ms, eligible_at, head_at, head_id, launches_since, launches`

// lockLane takes the lock that every change of an agent's queue needs first, and reads the clock once it is held.
// Statements after it see what the former holder committed.
func (t *tx) lockLane(ctx context.Context, agentID xid.ID) (lane, error) {
	lanes, err := t.lockLanes(ctx, `SELECT `+laneColumns+` FROM agent_lanes WHERE agent_id = $1 FOR NO KEY UPDATE`, agentID)
	if err != nil {
		return lane{}, fmt.Errorf("lock lane: %w", err)
	}
	if len(lanes) == 0 {
		return lane{}, fmt.Errorf("lock lane: agent %s has none", agentID)
	}
	return lanes[0], nil
}

// lockLanes runs a locking query on lanes and sets now from the database's clock, read after the last lock: the outer
// query is evaluated row by row on what the inner one has locked.
func (t *tx) lockLanes(ctx context.Context, locking string, args ...any) ([]lane, error) {
	query := `WITH locked AS MATERIALIZED (` + locking + `) SELECT ` + laneColumns + `, clock_timestamp() FROM locked`
	return pgtx.Collect(ctx, t, func(rows *sql.Rows) (l lane, err error) {
		var cooldown int64
		err = rows.Scan(&l.agentID, &l.workspaceID, &l.status, &l.maxSessions, &l.running, &cooldown, &l.eligibleAt, &l.headAt, &l.headID, &l.launchesSince,
			&l.launches, &t.Now)
		l.cooldown = time.Duration(cooldown) * time.Millisecond
		t.Now, t.locked[l.agentID] = t.Now.UTC(), l
		return l, err
	}, query, args...)
}

// fixHead recomputes the lane's head, the oldest due run. It runs as a statement of its own, after the changes it must
// see, and tells the dispatchers when there is something to take.
func (t *tx) fixHead(ctx context.Context, l lane) error { return t.moveLane(ctx, &l, 0) }

// fixHeadsOf is fixHead for several agents, whose lanes are held.
func (t *tx) fixHeadsOf(ctx context.Context, agents []xid.ID) error {
	if len(agents) == 0 {
		return nil
	}
	heads, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (l lane, err error) {
		return l, rows.Scan(&l.agentID, &l.workspaceID, &l.headAt, &l.headID)
	}, fixHeadsQuery, pgtx.IDs(agents))
	if err == nil && len(heads) != len(agents) {
		err = fmt.Errorf("changed %d lanes, want %d", len(heads), len(agents))
	}
	if err != nil {
		return fmt.Errorf("change lanes: %w", err)
	}
	for _, l := range heads {
		t.tellHead(l)
	}
	return nil
}

var fixHeadsQuery = `
UPDATE agent_lanes l SET head_at = h.requested_at, head_id = h.id
FROM unnest($1::text[]) AS x (id) LEFT JOIN LATERAL (
  ` + guard.Head("x.id") + `) AS h ON true
WHERE l.agent_id = x.id AND l.agent_id = ANY($1)
RETURNING l.agent_id, l.workspace_id, l.head_at, l.head_id`

// moveLane is fixHead for a caller that goes on with the lane. It also changes the lane's count of live runs, and sets
// l to the lane as it is then.
func (t *tx) moveLane(ctx context.Context, l *lane, running int) error {
	l.headAt, l.headID = nil, nil
	if err := pgtx.QueryRow(ctx, t, []any{&l.running, &l.headAt, &l.headID}, changeLaneQuery, l.agentID, running); err != nil {
		return fmt.Errorf("change the lane: %w", err)
	}
	t.tellHead(*l)
	return nil
}

// tellHead tells the dispatchers that the lane has something to take.
func (t *tx) tellHead(l lane) {
	if l.headID != nil {
		t.Publish(event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	}
}

var laneHead = `
WITH head AS (
  ` + guard.Head("$1") + `)`

var changeLaneQuery = laneHead + `
UPDATE agent_lanes
SET head_at = (SELECT requested_at FROM head), head_id = (SELECT id FROM head), running = running + $2
WHERE agent_id = $1
RETURNING running, head_at, head_id`

// lockLaneOf locks the lane of a run, whose own row may be locked only after it. A run's agent never changes.
func (t *tx) lockLaneOf(ctx context.Context, runID xid.ID) (lane, error) {
	if len(t.also) > 0 {
		return t.lockLaneAnd(ctx, runID)
	}
	lanes, err := t.lockLanes(ctx, `
SELECT `+laneColumns+`
FROM agent_lanes
WHERE agent_id = (SELECT agent_id FROM runs WHERE id = $1)
FOR NO KEY UPDATE`, runID)
	if err != nil {
		return lane{}, fmt.Errorf("lock lane: %w", err)
	}
	if len(lanes) == 0 {
		return lane{}, domain.Refuse(domain.UserErrorCodeNotFound, "there is no run %s", runID)
	}
	return lanes[0], nil
}

// lockLaneAnd is lockLaneOf together with the other lanes that the transaction needs, all in the order of their agents.
func (t *tx) lockLaneAnd(ctx context.Context, runID xid.ID) (lane, error) {
	agentID, err := pgtx.QueryOne[xid.ID](ctx, t, `SELECT agent_id FROM runs WHERE id = $1`, runID)
	if err != nil {
		return lane{}, pgtx.NotFound(err, nil, "run", runID)
	}
	_, err = t.lockLanesIn(ctx, append([]string{string(agentID)}, t.also...))
	return t.locked[agentID], err
}

// lockLanesIn locks the lanes of agents in the order of their ids.
func (t *tx) lockLanesIn(ctx context.Context, agents []string) ([]lane, error) {
	if len(agents) == 0 {
		return nil, nil
	}
	lanes, err := t.lockLanes(ctx, `SELECT `+laneColumns+` FROM agent_lanes WHERE agent_id = ANY($1) ORDER BY agent_id FOR NO KEY UPDATE`, pgtx.TextArray(agents))
	if err != nil {
		return nil, fmt.Errorf("lock lanes: %w", err)
	}
	return lanes, nil
}
