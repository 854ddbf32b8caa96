package store

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
)

// NextInstant is the earliest end of a parking, or of a cooldown that a due run waits for, and the database's clock. at
// is now when a run could be claimed but was not, because its lane was locked at that moment. It is zero when nothing
// waits for an instant.
func (s *Queue) NextInstant(ctx context.Context) (at, now time.Time, err error) {
	var next *time.Time
	if err := pgtx.QueryRow(ctx, s.db, []any{&next, &now}, nextInstantQuery); err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("read the next instant: %w", err)
	}
	if next != nil {
		at = *next
	}
	return at, now, nil
}

// Each part is one probe of an index, or one for each workspace that has due lanes.
const nextInstantQuery = `
WITH RECURSIVE ` + guard.WorkspacesDue + `
SELECT least(
  (SELECT parked_until FROM runs WHERE status = 'QUEUED' AND parked_until IS NOT NULL ORDER BY parked_until LIMIT 1),
  (SELECT eligible_at FROM agent_lanes WHERE ` + guard.LaneDue + ` AND ` + guard.LaneRests + ` AND eligible_at > statement_timestamp()
   ORDER BY eligible_at LIMIT 1),
  (SELECT clock_timestamp() FROM open_workspaces w CROSS JOIN LATERAL (
     SELECT 1 FROM agent_lanes WHERE workspace_id = w.workspace_id AND ` + guard.LaneDue + `
       AND eligible_at <= statement_timestamp() ORDER BY head_at, head_id LIMIT 1) l LIMIT 1),
  (SELECT clock_timestamp() FROM agent_lanes WHERE ` + guard.LaneBacklog + ` LIMIT 1)),
  clock_timestamp()`
