package reads

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Lane is an agent's hot state as the API shows it. Status is WORKING while a run is live; AvailableAt is nil when the
// agent may be claimed now.
type Lane struct {
	AgentID        xid.ID
	Status         domain.AgentStatus
	PauseReason    *domain.AgentPauseReason
	Running        int
	AvailableAt    *time.Time
	LastFinishedAt *time.Time
	Window         domain.LaunchWindow // of unattended launches, now
}

// Lanes reads the hot state of several agents in one query.
func (s *Reads) Lanes(ctx context.Context, agentIDs []xid.ID) (map[xid.ID]*Lane, error) {
	const query = `
SELECT l.agent_id, CASE WHEN status = 'IDLE' AND running > 0 THEN 'WORKING' ELSE status END, pause_reason,
  running,
  CASE WHEN eligible_at > clock_timestamp() THEN eligible_at END, last_finished_at,
  coalesce(a.launch_limit, 0), a.launch_limit_ms, l.launches_since, l.launches, clock_timestamp()
FROM agent_lanes l
JOIN agents a ON a.id = l.agent_id
WHERE l.agent_id = ANY($1)`
	lanes, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (*Lane, error) {
		var l Lane
		var limit domain.LaunchLimit
		var ms int64
		var since *time.Time
		var now time.Time
		err := rows.Scan(&l.AgentID, &l.Status, &l.PauseReason, &l.Running, &l.AvailableAt, &l.LastFinishedAt, &limit.Count, &ms, &since, &l.Window.Launches, &now)
		limit.Per = time.Duration(ms) * time.Millisecond
		l.Window.Limit, l.Window.Since = limit.OrNone(), pgtx.OrZero(since)
		l.Window = l.Window.At(now)
		return &l, err
	}, query, pgtx.IDs(agentIDs))
	if err != nil {
		return nil, fmt.Errorf("read lanes: %w", err)
	}
	byAgent := make(map[xid.ID]*Lane, len(lanes))
	for _, l := range lanes {
		byAgent[l.AgentID] = l
	}
	return byAgent, nil
}
