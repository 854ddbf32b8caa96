package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// dueLanes finds the lanes whose heads are oldest, without locks. A full workspace in front costs the others one probe.
// The index tells resting lanes from others, which a stable clock makes possible; the lock looks again.
func (s *Queue) dueLanes(ctx context.Context, limit int, without []xid.ID) ([]xid.ID, error) {
	return pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], dueLanesQuery, limit, pgtx.IDs(without))
}

const dueLanesQuery = `WITH RECURSIVE ` + dueLanesSQL + ` SELECT agent_id FROM due ORDER BY head_at, head_id`

// dueLanesSQL is the lanes whose heads are oldest, at most $1, without $2: a part of a WITH RECURSIVE.
const dueLanesSQL = guard.WorkspacesDue + `,
due AS (
  SELECT l.agent_id, l.head_at, l.head_id
  FROM open_workspaces w
  CROSS JOIN LATERAL (
    SELECT agent_id, head_at, head_id
    FROM agent_lanes
    WHERE workspace_id = w.workspace_id AND ` + guard.LaneDue + ` AND eligible_at <= statement_timestamp()
      AND agent_id <> ALL($2)
    ORDER BY head_at, head_id
    LIMIT $1) l
  ORDER BY l.head_at, l.head_id
  LIMIT $1)`

// findDueLanes locks the lanes that an order names. Of an order without names it finds them in the same statement, and what is
// parked and over besides: the order and the result say what it found.
func (t *tx) findDueLanes(ctx context.Context, o *claimOrder, found *claimResult) (lanes []lane, err error) {
	if len(o.agents) > 0 {
		return t.lockDueLanes(ctx, o.agents, o.wait)
	}
	_, err = pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var agentID *xid.ID
		var locked bool
		var cooldown int64
		var l lane
		err := rows.Scan(&agentID, &locked, &l.workspaceID, &l.status, &l.maxSessions, &l.running, &cooldown, &l.eligibleAt, &l.headAt, &l.headID,
			&l.launchesSince, &l.launches, &found.parkedOver, &t.Now)
		if err != nil || agentID == nil {
			return struct{}{}, err
		}
		found.due, t.Now = append(found.due, *agentID), t.Now.UTC()
		if locked {
			l.agentID, l.cooldown = *agentID, time.Duration(cooldown)*time.Millisecond
			lanes, t.locked[l.agentID] = append(lanes, l), l
		}
		return struct{}{}, nil
	}, findDueQuery, o.limit, pgtx.IDs(o.passed))
	if err != nil {
		return nil, fmt.Errorf("find and lock due lanes: %w", err)
	}
	found.parkedOver = found.parkedOver && !o.promoted
	o.more = len(found.due) >= o.limit
	sortByHead(lanes)
	return lanes, nil
}

// findDueQuery has a row for each lane that is due, and one without a lane when none is. The clock is read row by row, after the
// last lock. Whether a lane is still due is looked at once it is locked by its key: beside the keys, that condition would let the
// planner read the whole index of lanes that are due.
const findDueQuery = `
-- $1 most lanes, $2 lanes to pass over
WITH RECURSIVE ` + dueLanesSQL + `,
locked AS MATERIALIZED (
  SELECT ` + laneColumns + `
  FROM agent_lanes
  WHERE agent_id = ANY(ARRAY(SELECT agent_id FROM due))
  ORDER BY agent_id FOR NO KEY UPDATE SKIP LOCKED),
still AS (SELECT * FROM locked WHERE ` + guard.LaneDue + ` AND eligible_at <= clock_timestamp())
SELECT d.agent_id, l.agent_id IS NOT NULL, coalesce(l.workspace_id, ''), coalesce(l.status::text, ''),
  coalesce(l.max_sessions, 0), coalesce(l.running, 0), coalesce(l.cooldown_ms, 0), coalesce(l.eligible_at, 'epoch'),
  l.head_at, l.head_id, l.launches_since, coalesce(l.launches, 0), p.over, clock_timestamp()
FROM (SELECT EXISTS (
    SELECT 1 FROM runs WHERE status = 'QUEUED' AND parked_until <= statement_timestamp()) AS over) p
LEFT JOIN due d ON true
LEFT JOIN still l ON l.agent_id = d.agent_id
ORDER BY d.head_at, d.head_id`

// lockDueLanes locks those of the lanes that are still due, and returns them with the oldest head first.
func (t *tx) lockDueLanes(ctx context.Context, agents []xid.ID, wait bool) ([]lane, error) {
	skip := ` SKIP LOCKED`
	if wait {
		skip = ``
	}
	lanes, err := t.lockLanes(ctx, lockDueQuery+skip, pgtx.IDs(agents))
	if err != nil {
		return nil, fmt.Errorf("lock due lanes: %w", err)
	}
	sortByHead(lanes) // which may have changed while they were waited for
	return lanes, nil
}

// sortByHead puts lanes with the oldest head first.
func sortByHead(lanes []lane) {
	slices.SortFunc(lanes, func(a, b lane) int {
		if a.headBefore(&b) {
			return -1
		}
		return 1
	})
}

// lockDueQuery locks in the order of the agents, as all who wait for several lanes do.
const lockDueQuery = `
SELECT ` + laneColumns + ` FROM agent_lanes
WHERE agent_id = ANY($1) AND ` + guard.LaneDue + ` AND eligible_at <= clock_timestamp()
ORDER BY agent_id FOR NO KEY UPDATE`
