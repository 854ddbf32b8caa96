package reads

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of the numbers of a queue.
const (
	statsCount = 10000       // most rows that are counted for one number
	statsWaits = 2000        // runs whose wait is looked at
	statsAge   = time.Second // how long numbers serve those who ask
)

// QueueStats are the numbers of a workspace's queue at an instant. No number goes beyond 10,000. Ages and waits are nil
// where there is nothing to measure; waits are of runs that ended in the last hour at their first attempt.
type QueueStats struct {
	Claimable, Held, Retrying, Claimed   int
	FinishedLastHour, FailedLastHour     int
	OldestClaimableAge, WaitP50, WaitP99 *time.Duration
	At                                   time.Time
}

// QueueStats reads a workspace's numbers, at most once a second for all who ask. A long queue costs no more than one of
// 10,000: each number is counted in an index of its own, up to a bound.
func (s *Reads) QueueStats(ctx context.Context, workspaceID xid.ID) (QueueStats, error) {
	entry := s.stats.of(workspaceID)
	entry.mu.Lock() // those who ask meanwhile are served by this read
	defer entry.mu.Unlock()
	if !entry.read.IsZero() && time.Since(entry.read) < statsAge {
		return entry.stats, nil
	}
	stats, err := s.readStats(ctx, workspaceID)
	if err != nil {
		return QueueStats{}, fmt.Errorf("read the queue's numbers: %w", err)
	}
	entry.stats, entry.read = stats, time.Now()
	return stats, nil
}

// statsQuery: $1 the workspace, $2 the bound of a count, $3 that of the waits.
const statsQuery = `
WITH workspace AS (
  SELECT running, CASE
    WHEN held_at IS NOT NULL THEN 0
    WHEN max_running IS NULL THEN $2::bigint
    ELSE greatest(max_running - running, 0) END AS places
  FROM workspace_lanes
  WHERE workspace_id = $1),
lanes AS (
  SELECT agent_id, max_sessions - running AS free FROM agent_lanes
  WHERE workspace_id = $1 AND ` + guard.LaneDue + ` AND eligible_at <= statement_timestamp()
  ORDER BY head_at, head_id LIMIT $2),
-- each count stops at $2, so that a workspace with a million runs answers as fast as one with ten
claimable AS (
  SELECT count(*) AS n, min(r.requested_at) AS oldest FROM lanes l CROSS JOIN LATERAL (
    SELECT requested_at
    FROM runs
    WHERE agent_id = l.agent_id AND ` + guard.Due + `
    ORDER BY requested_at, id
    LIMIT l.free) r),
queued AS (
  SELECT count(*) AS n
  FROM (SELECT 1 FROM runs WHERE workspace_id = $1 AND status = 'QUEUED' LIMIT $2) q),
retrying AS (
  SELECT count(*) AS n
  FROM (
    SELECT 1
    FROM runs
    WHERE workspace_id = $1 AND status = 'QUEUED' AND parked_reason IN ('BACKOFF', 'RATE_LIMIT')
    LIMIT $2) q),
ended AS (
  SELECT count(*) FILTER (WHERE status = 'FINISHED') AS finished,
    count(*) FILTER (WHERE status = 'FAILED') AS failed
  FROM (
    SELECT status
    FROM runs
    WHERE workspace_id = $1 AND finished_at > statement_timestamp() - interval '1 hour'
    ORDER BY finished_at DESC
    LIMIT $2) e),
-- only first attempts: a retry waits because it must
waits AS (
  SELECT percentile_cont(ARRAY[0.5, 0.99])
    WITHIN GROUP (ORDER BY extract(epoch FROM claimed_at - requested_at)::float8) AS seconds
  FROM (
    SELECT claimed_at, requested_at, attempt
    FROM runs
    WHERE workspace_id = $1 AND finished_at > statement_timestamp() - interval '1 hour'
    ORDER BY finished_at DESC
    LIMIT $3) w
  WHERE attempt = 1 AND claimed_at IS NOT NULL)
SELECT least(c.n, w.places), queued.n, retrying.n, w.running, ended.finished, ended.failed,
  CASE WHEN w.places > 0 THEN c.oldest END, waits.seconds[1], waits.seconds[2], statement_timestamp()
FROM workspace w, claimable c, queued, retrying, ended, waits`

func (s *Reads) readStats(ctx context.Context, workspaceID xid.ID) (q QueueStats, err error) {
	var queued int
	var oldest *time.Time
	var p50, p99 sql.NullFloat64
	err = pgtx.QueryRow(ctx, s.pool, []any{&q.Claimable, &queued, &q.Retrying, &q.Claimed, &q.FinishedLastHour, &q.FailedLastHour, &oldest, &p50, &p99, &q.At},
		statsQuery, workspaceID, statsCount, statsWaits)
	if err != nil {
		return q, err
	}
	q.Claimable = min(q.Claimable, queued)
	q.Held = queued - q.Claimable
	if oldest != nil {
		q.OldestClaimableAge = pgtx.Ptr(max(q.At.Sub(*oldest), 0))
	}
	q.WaitP50, q.WaitP99 = seconds(p50), seconds(p99)
	return q, nil
}

// seconds is a length of time, to the millisecond.
func seconds(v sql.NullFloat64) *time.Duration {
	if !v.Valid {
		return nil
	}
	return pgtx.Ptr(time.Duration(v.Float64 * float64(time.Second)).Round(time.Millisecond))
}

// statsCache keeps the newest numbers of each workspace that somebody asked for.
type statsCache struct {
	mu      sync.Mutex
	entries map[xid.ID]*statsEntry
}

type statsEntry struct {
	mu    sync.Mutex
	stats QueueStats
	read  time.Time
}

func (c *statsCache) of(workspaceID xid.ID) *statsEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[xid.ID]*statsEntry{}
	}
	if c.entries[workspaceID] == nil {
		c.entries[workspaceID] = &statsEntry{}
	}
	return c.entries[workspaceID]
}
