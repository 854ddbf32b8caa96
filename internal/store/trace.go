package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// traceMost bounds each list of a trace.
const traceMost = 500

// Trace is the rows of one chain, the oldest first (SPEC S10.4). RunIDs also holds runs of other chains that served a
// merged request of this one. RoutineRunID is the fire that began it, "" for none. Truncated: a list was cut.
type Trace struct {
	RoutineRunID       xid.ID
	RequestIDs, RunIDs []xid.ID
	Truncated          bool
}

// Trace reads a chain by keyed lookups alone; nil when no row of the workspace carries the id. An empty id is carried by
// nothing (AC-OFFICE-LOOP-LIVENESS-002.6).
func (s *Store) Trace(ctx context.Context, workspaceID, causationID xid.ID) (*Trace, error) {
	if causationID == "" {
		return nil, nil
	}
	const query = `
WITH requests AS (SELECT id, run_id FROM wakeup_requests WHERE causation_id = $2 AND workspace_id = $1)
(SELECT 0 AS kind, id FROM routine_runs WHERE causation_id = $2 AND workspace_id = $1 ORDER BY id LIMIT 1)
UNION ALL (SELECT 1, id FROM requests ORDER BY id LIMIT $3)
UNION ALL (SELECT 2, id FROM (SELECT id FROM runs WHERE causation_id = $2 AND workspace_id = $1
                              UNION SELECT run_id FROM requests WHERE run_id IS NOT NULL) r ORDER BY id LIMIT $3)`
	t := &Trace{}
	found := 0
	_, err := collect(ctx, s.db, func(rows *sql.Rows) (struct{}, error) {
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
		}
		return struct{}{}, err
	}, query, workspaceID, causationID, traceMost+1)
	if err != nil {
		return nil, fmt.Errorf("trace a chain: %w", err)
	}
	if found == 0 {
		return nil, nil
	}
	t.Truncated = len(t.RequestIDs) > traceMost || len(t.RunIDs) > traceMost
	t.RequestIDs, t.RunIDs = t.RequestIDs[:min(len(t.RequestIDs), traceMost)], t.RunIDs[:min(len(t.RunIDs), traceMost)]
	return t, nil
}

// Counters are the counters of one workspace since the process began.
func (s *Store) Counters(workspaceID xid.ID) metrics.WorkspaceCounters {
	return s.counters.Workspace(workspaceID)
}
