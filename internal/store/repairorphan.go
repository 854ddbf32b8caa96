package store

import (
	"context"
	"database/sql"
	"sync"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// orphanStep is how many runs' rows one sweep looks at.
const orphanStep = 1000

// orphanWalk is how far the sweeps of this process have come in the rows of runs, in the order of the runs' ids.
type orphanWalk struct {
	mu    sync.Mutex
	after xid.ID
}

// orphanRunsQuery: the next runs of which there are rows, $1 the last one that was looked at, $2 how many; and whether the run is
// there. No foreign key of these tables says so (docs/decisions/0028-no-keys-of-hot-rows.md).
const orphanRunsQuery = `
WITH next AS (
  SELECT run_id
  FROM (
    (SELECT run_id FROM run_events WHERE run_id > $1 ORDER BY run_id LIMIT $2)
    UNION ALL
    (SELECT run_id FROM run_attempts WHERE run_id > $1 ORDER BY run_id LIMIT $2)
    UNION ALL
    (SELECT run_id FROM run_contents WHERE run_id > $1 ORDER BY run_id LIMIT $2)
    UNION ALL
    (SELECT run_id FROM run_log_pieces WHERE run_id > $1 ORDER BY run_id LIMIT $2)
    UNION ALL
    (SELECT run_id FROM wakeup_requests WHERE run_id > $1 ORDER BY run_id LIMIT $2)) rows
  GROUP BY run_id
  ORDER BY run_id
  LIMIT $2)
SELECT run_id, EXISTS (SELECT 1 FROM runs WHERE id = next.run_id) FROM next ORDER BY run_id`

// orphanRuns finds runs that are gone while rows of theirs are left. A sweep looks at the next few runs; one after the other
// comes round.
func (s *Records) orphanRuns(ctx context.Context) (gone []xid.ID, err error) {
	walk := &s.orphans
	walk.mu.Lock()
	defer walk.mu.Unlock()
	last := walk.after
	n := 0
	_, err = pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (struct{}, error) {
		var there bool
		err := rows.Scan(&last, &there)
		if n++; !there {
			gone = append(gone, last)
		}
		return struct{}{}, err
	}, orphanRunsQuery, string(walk.after), orphanStep)
	if err != nil {
		return nil, err
	}
	if walk.after = last; n == 0 {
		walk.after = ""
	}
	return gone, nil
}

// repairOrphan removes what is left of a run that is gone, as the retention would have, and lets its open requests wait for
// another run. A run is there before its rows are, so that none is looked at too early.
func (t *tx) repairOrphan(ctx context.Context, runID xid.ID) (Repairs, error) {
	const query = `
WITH gone AS MATERIALIZED (
  SELECT $1::text AS id
  WHERE NOT EXISTS (SELECT 1 FROM runs WHERE id = $1)),
d1 AS (DELETE FROM run_log_pieces WHERE run_id IN (SELECT id FROM gone) RETURNING 1),
d2 AS (DELETE FROM run_events WHERE run_id IN (SELECT id FROM gone) RETURNING 1),
d3 AS (DELETE FROM run_contents WHERE run_id IN (SELECT id FROM gone) RETURNING 1),
d4 AS (DELETE FROM run_attempts WHERE run_id IN (SELECT id FROM gone) RETURNING 1),
d7 AS (DELETE FROM run_working_copies WHERE run_id IN (SELECT id FROM gone) RETURNING 1),
d8 AS (DELETE FROM links WHERE run_id IN (SELECT id FROM gone) RETURNING 1),
d5 AS (DELETE FROM wakeup_requests WHERE run_id IN (SELECT id FROM gone) AND finished_at IS NOT NULL RETURNING 1),
d6 AS (
  UPDATE wakeup_requests
  SET run_id = NULL, status = 'QUEUED', claimed_at = NULL
  WHERE run_id IN (SELECT id FROM gone) AND finished_at IS NULL
  RETURNING 1)
SELECT count(*)
FROM (
  SELECT 1 FROM d1
  UNION ALL
  SELECT 1 FROM d2
  UNION ALL
  SELECT 1 FROM d3
  UNION ALL
  SELECT 1 FROM d4
  UNION ALL
  SELECT 1 FROM d5
  UNION ALL
  SELECT 1 FROM d6
  UNION ALL
  SELECT 1 FROM d7
  UNION ALL
  SELECT 1 FROM d8) rest`
	n, err := pgtx.QueryOne[int](ctx, t, query, runID)
	return Repairs{Orphans: n}, err
}
