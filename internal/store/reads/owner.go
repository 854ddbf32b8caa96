package reads

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Owner is who has an attempt, or had it: a process of a server, or a worker.
type Owner struct {
	ID      xid.ID
	Worker  bool
	Name    string
	Host    string
	Version string // of what it told last; "" when it is not known any more
}

// NumberedOwner is an owner with the number of its attempt.
type NumberedOwner struct {
	Owner
	Number int
}

// AttemptOwners reads who has the newest attempts of runs. An attempt that nobody has taken yet is not among them.
func (s *Reads) AttemptOwners(ctx context.Context, runs []xid.ID) (map[xid.ID][]NumberedOwner, error) {
	const query = `
-- $1 runs
SELECT a.run_id, a.number, coalesce(a.worker, a.owner), a.worker IS NOT NULL,
  coalesce(w.name, p.host || ':' || p.pid, a.worker, a.owner), coalesce(w.host, p.host, ''), coalesce(w.version, p.version, '')
FROM run_attempts a
LEFT JOIN processes p ON a.worker IS NULL AND p.id = a.owner
LEFT JOIN LATERAL (
  SELECT name, host, version FROM workers WHERE id = a.worker ORDER BY seen_at DESC LIMIT 1) w ON true
WHERE a.run_id = ANY($1)
  AND a.status <> 'OFFERED'
  AND (a.worker IS NOT NULL OR a.owner LIKE 'prc\_%')
  AND a.number > (SELECT attempt FROM runs WHERE id = a.run_id) - 100`
	type row struct {
		run xid.ID
		NumberedOwner
	}
	found, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (x row, err error) {
		return x, rows.Scan(&x.run, &x.Number, &x.ID, &x.Worker, &x.Name, &x.Host, &x.Version)
	}, query, pgtx.IDs(runs))
	if err != nil {
		return nil, fmt.Errorf("read owners of attempts: %w", err)
	}
	out := map[xid.ID][]NumberedOwner{}
	for _, x := range found {
		out[x.run] = append(out[x.run], x.NumberedOwner)
	}
	return out, nil
}

// ServerProcess is a process that serves this database, with its live runs of one workspace, oldest first.
type ServerProcess struct {
	ID         xid.ID
	Name       string
	Host       string
	Version    string
	Standby    bool
	Slots      int
	StartedAt  time.Time
	LastSeenAt time.Time
	RunIDs     []xid.ID
}

// executorsShown bounds the processes and the workers that are listed, and the live runs of each.
const executorsShown = 100

// liveOf is the live runs of each owner of a workspace, $1, as SQL: the oldest $2 of each.
const liveOf = `
SELECT owner, array_agg(run_id ORDER BY n) AS runs, max(heartbeat_at) AS heartbeat_at
FROM (
  SELECT coalesce(a.worker, l.owner) AS owner, l.run_id, a.heartbeat_at,
    row_number() OVER (PARTITION BY coalesce(a.worker, l.owner) ORDER BY a.started_at, l.run_id) AS n
  FROM attempt_leases l
  JOIN run_attempts a ON a.run_id = l.run_id AND a.number = l.attempt
  WHERE l.workspace_id = $1 AND l.owner IS NOT NULL) live
WHERE n <= $2
GROUP BY owner`

// Processes reads the processes that gave a sign of life within the last hour and have not ended since, newest sign first.
func (s *Reads) Processes(ctx context.Context, workspaceID xid.ID) ([]*ServerProcess, error) {
	const query = `
WITH live AS (` + liveOf + `)
SELECT p.id, p.host || ':' || p.pid, p.host, p.version, p.standby, p.slots, p.started_at, p.seen_at, coalesce(live.runs, '{}')
FROM processes p
LEFT JOIN live ON live.owner = p.id
WHERE p.ended_at IS NULL AND p.seen_at > clock_timestamp() - interval '1 hour'
ORDER BY p.seen_at DESC, p.id
LIMIT $2`
	list, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (*ServerProcess, error) {
		var x ServerProcess
		var runs []string
		err := rows.Scan(&x.ID, &x.Name, &x.Host, &x.Version, &x.Standby, &x.Slots, &x.StartedAt, &x.LastSeenAt, pq.Array(&runs))
		x.RunIDs = idsOf(runs)
		return &x, err
	}, query, workspaceID, executorsShown)
	return list, pgtx.Wrap("read processes", err)
}

// Worker is a worker that takes runs from a workspace's queues, with its live runs, oldest first.
type Worker struct {
	ID         xid.ID
	Name       string
	Host       string
	Version    string
	Queues     []string
	LastSeenAt time.Time
	RunIDs     []xid.ID
}

// QueueWorkers reads the workers that asked for runs within the last hour or have live runs, newest sign first.
func (s *Reads) QueueWorkers(ctx context.Context, workspaceID xid.ID) ([]*Worker, error) {
	const query = `
WITH live AS (` + liveOf + `),
known AS (
  SELECT id, max(name) AS name, max(host) AS host, (array_agg(version ORDER BY seen_at DESC))[1] AS version,
    array_agg(queue ORDER BY queue) FILTER (WHERE seen_at > clock_timestamp() - interval '1 hour') AS queues,
    max(seen_at) AS seen_at
  FROM workers WHERE workspace_id = $1 GROUP BY id)
SELECT k.id, k.name, k.host, k.version, coalesce(k.queues, '{}'),
  greatest(k.seen_at, live.heartbeat_at), coalesce(live.runs, '{}')
FROM known k
LEFT JOIN live ON live.owner = k.id
WHERE live.owner IS NOT NULL OR k.seen_at > clock_timestamp() - interval '1 hour'
ORDER BY 6 DESC, k.id
LIMIT $2`
	list, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (*Worker, error) {
		var x Worker
		var runs []string
		err := rows.Scan(&x.ID, &x.Name, &x.Host, &x.Version, pq.Array(&x.Queues), &x.LastSeenAt, pq.Array(&runs))
		x.RunIDs = idsOf(runs)
		return &x, err
	}, query, workspaceID, executorsShown)
	return list, pgtx.Wrap("read workers", err)
}

func idsOf(texts []string) []xid.ID {
	out := make([]xid.ID, len(texts))
	for i, text := range texts {
		out[i] = xid.ID(text)
	}
	return out
}
