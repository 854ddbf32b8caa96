package store

import (
	"context"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Process is what a server's process says of itself. ID is the owner of the attempts that it claims.
type Process struct {
	ID      xid.ID
	Host    string
	PID     int
	Version string
	Standby bool // it starts no run
	Slots   int  // runs that it executes at once
}

// ProcessRuns notes that a process serves this database, by the database's clock. It forgets processes and workers that were not
// seen for a month.
func (s *Records) ProcessRuns(ctx context.Context, p Process) error {
	const query = `
-- $1 id, $2 host, $3 number on that host, $4 version, $5 on standby, $6 runs at once
WITH old AS (DELETE FROM processes WHERE seen_at < clock_timestamp() - interval '30 days' AND id <> $1),
gone AS (DELETE FROM workers WHERE seen_at < clock_timestamp() - interval '30 days')
INSERT INTO processes (id, host, pid, version, standby, slots, started_at, seen_at)
VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp(), clock_timestamp())
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, ended_at = NULL`
	_, err := pgtx.Exec(ctx, s.db, query, p.ID, p.Host, p.PID, p.Version, p.Standby, p.Slots)
	return pgtx.Wrap("note that this process runs", err)
}

// ProcessEnds notes that a process has ended, so that nobody waits for it.
func (s *Records) ProcessEnds(ctx context.Context, id xid.ID) error {
	_, err := pgtx.Exec(ctx, s.db, `UPDATE processes SET ended_at = clock_timestamp() WHERE id = $1`, id)
	return pgtx.Wrap("note that this process ends", err)
}
