package reads

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// traceMost bounds each list of a trace.
const traceMost = 500

// Trace is the rows of one chain, the oldest first (SPEC S10.4). RunIDs also holds runs of other chains that served a
// merged request of this one. RoutineRunID is the fire that began it; "" when no fire did. Truncated: a list was cut.
type Trace struct {
	RoutineRunID       xid.ID
	RequestIDs, RunIDs []xid.ID
	TaskIDs            []xid.ID // that the fire made, or that requests and runs of the chain are about
	Truncated          bool
}

// Trace reads a chain by keyed lookups alone; nil when no row of the workspace carries the id. An empty id is carried by
// nothing (AC-OFFICE-LOOP-LIVENESS-002.6).
func (s *Reads) Trace(ctx context.Context, workspaceID, causationID xid.ID) (*Trace, error) {
	if causationID == "" {
		return nil, nil
	}
	const query = `
-- $1 workspace, $2 causation id, $3 most rows of a list
WITH requests AS (SELECT id, run_id, task_id FROM wakeup_requests WHERE causation_id = $2 AND workspace_id = $1)
(SELECT 0 AS kind, id FROM routine_runs WHERE causation_id = $2 AND workspace_id = $1 ORDER BY id LIMIT 1)
UNION ALL (SELECT 1, id FROM requests ORDER BY id LIMIT $3)
UNION ALL (
  SELECT 2, id FROM (
    SELECT id FROM runs WHERE causation_id = $2 AND workspace_id = $1
    UNION
    SELECT run_id FROM requests WHERE run_id IS NOT NULL) r
  ORDER BY id
  LIMIT $3)
UNION ALL (
  SELECT 3, id FROM (
    SELECT task_id AS id FROM requests
    UNION
    SELECT task_id FROM runs WHERE causation_id = $2 AND workspace_id = $1
    UNION
    SELECT task_id FROM routine_runs WHERE causation_id = $2 AND workspace_id = $1) k
  WHERE id IS NOT NULL
  ORDER BY id
  LIMIT $3)`
	t := &Trace{}
	found := 0
	_, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (struct{}, error) {
		var kind int
		var id xid.ID
		err := rows.Scan(&kind, &id)
		found++
		switch kind {
		case 0:
			t.RoutineRunID = id
		case 1:
			t.RequestIDs = append(t.RequestIDs, id)
		case 2:
			t.RunIDs = append(t.RunIDs, id)
		case 3:
			t.TaskIDs = append(t.TaskIDs, id)
		}
		return struct{}{}, err
	}, query, workspaceID, causationID, traceMost+1)
	if err != nil {
		return nil, fmt.Errorf("trace a chain: %w", err)
	}
	if found == 0 {
		return nil, nil
	}
	for _, list := range []*[]xid.ID{&t.RequestIDs, &t.RunIDs, &t.TaskIDs} {
		t.Truncated = t.Truncated || len(*list) > traceMost
		*list = (*list)[:min(len(*list), traceMost)]
	}
	return t, nil
}
