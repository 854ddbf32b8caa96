package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// ProcessGroup identifies an agent's process group, so that a leftover of a dead server can be ended later. Started is
// the kernel's start time of its leader, in clock ticks since boot. PGID 0 means none.
type ProcessGroup struct {
	Host, BootID string
	PGID         int
	Started      int64
}

// countLaunchWithoutSession counts a launch that says it ended well and never had a session (AC-OFFICE-LOOP-LIVENESS-002.8).
func (t *tx) countLaunchWithoutSession(run runRow, sessionID string) {
	if sessionID == "" && run.sessionID == nil {
		t.Count(func(c *metrics.Counters) { c.LaunchWithoutSession(run.workspaceID) })
	}
}

// SessionNotStored counts a session id that could not be stored (AC-OFFICE-LOOP-LIVENESS-002.11).
func (s *Attempts) SessionNotStored(workspaceID xid.ID) { s.counters.SessionWriteFailed(workspaceID) }

// AttemptState is what a heartbeat found about one attempt. LeaseUntil is by the database's clock.
type AttemptState struct {
	Attempt
	Lost            bool
	Busy            bool // its lease was not renewed: a transaction that may be ending the attempt has it; ask again
	CancelRequested bool
	LeaseUntil      time.Time
}

// Heartbeat lengthens the leases of the owner's live attempts, in one statement when none fails. An attempt whose lease
// is gone comes back Lost. One whose lease ran out and was not taken yet is renewed. One whose renewal fails is Busy,
// and the others are renewed. An error says that none was renewed.
func (s *Attempts) Heartbeat(ctx context.Context, attempts []Attempt, lease time.Duration) (states []AttemptState, err error) {
	problems := pgtx.Bisect(ctx, attempts, func(some []Attempt) error {
		renewed, err := s.renew(ctx, some, lease)
		states = append(states, renewed...)
		return err
	}, func(some []Attempt, err error) error {
		for _, a := range some {
			states = append(states, AttemptState{Attempt: a, Busy: true})
		}
		return fmt.Errorf("renew the lease of run %s: %w", some[0].RunID, err)
	})
	if err := errors.Join(problems...); pgtx.EndsAll(ctx, err) {
		return nil, err
	}
	s.limitedLog.Warn(s.log, "a lease could not be renewed; the run's process is ended before the lease ends, unless a later renewal succeeds", errors.Join(problems...))
	return states, nil
}

// renew lengthens leases in one statement. A renewal is the attempt's sign of life, noted where nobody is about to end the
// attempt: who ends it may hold its row and wait for the lease.
func (s *Attempts) renew(ctx context.Context, attempts []Attempt, lease time.Duration) ([]AttemptState, error) {
	runIDs, numbers, owners := make([]string, len(attempts)), make([]int64, len(attempts)), make([]string, len(attempts))
	for i, a := range attempts {
		runIDs[i], numbers[i], owners[i] = string(a.RunID), int64(a.Number), string(a.Owner)
	}
	const query = `
-- $1 runs, $2 their attempts, $3 owners, $4 seconds of the lease
WITH asked AS (SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) AS a (run_id, attempt, owner)),
there AS (
  SELECT l.run_id, l.attempt, l.owner, l.lease_until
  FROM attempt_leases l
  JOIN asked a USING (run_id, attempt, owner)),
free AS (
  -- a service that accepted an attempt has its own time; who ends one holds its lease, and is not waited for
  SELECT l.run_id
  FROM attempt_leases l
  JOIN asked a USING (run_id, attempt, owner)
  WHERE l.accepted_at IS NULL
  FOR NO KEY UPDATE OF l SKIP LOCKED),
held AS (
  UPDATE attempt_leases l SET lease_until = clock_timestamp() + make_interval(secs => $4)
  FROM free f WHERE l.run_id = f.run_id
  RETURNING l.run_id, l.attempt, l.owner, l.lease_until),
living AS (
  -- the sign of life is left out rather than waited for: who ends the attempt may hold its row and wait for the lease
  SELECT x.run_id, x.number
  FROM run_attempts x
  JOIN held h ON x.run_id = h.run_id AND x.number = h.attempt
  FOR NO KEY UPDATE OF x SKIP LOCKED),
signs AS (UPDATE run_attempts SET heartbeat_at = clock_timestamp() WHERE (run_id, number) IN (SELECT run_id, number FROM living))
SELECT a.run_id, a.attempt, a.owner, x.run_id IS NULL, x.run_id IS NOT NULL AND h.run_id IS NULL,
  r.cancel_requested_at IS NOT NULL, coalesce(h.lease_until, x.lease_until, clock_timestamp())
FROM asked a
LEFT JOIN there x USING (run_id, attempt, owner)
LEFT JOIN held h USING (run_id, attempt, owner)
LEFT JOIN runs r ON r.id = a.run_id`
	states, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (st AttemptState, err error) {
		return st, rows.Scan(&st.RunID, &st.Number, &st.Owner, &st.Lost, &st.Busy, &st.CancelRequested, &st.LeaseUntil)
	}, query, pq.Array(runIDs), pq.Array(numbers), pq.Array(owners), lease.Seconds())
	return states, err
}

// CancelRequested says whether somebody asked to cancel the run. Those that ask at once share a statement: each attempt asks
// before its launch.
func (s *Attempts) CancelRequested(ctx context.Context, runID xid.ID) (bool, error) {
	asked, found, err := s.cancels.Find(ctx, string(runID))
	if err == nil && !found {
		err = fmt.Errorf("there is no run %s", runID)
	}
	return asked, pgtx.Wrap("read the run's cancel flag", err)
}

// Bounds of one look for cancels.
const (
	cancelsMost  = 256
	cancelsLimit = 15 * time.Second
)

func (s *Attempts) readCancels(ctx context.Context, runIDs []string) (map[string]bool, error) {
	asked := make(map[string]bool, len(runIDs))
	_, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (struct{}, error) {
		var id string
		var is bool
		err := rows.Scan(&id, &is)
		asked[id] = is
		return struct{}{}, err
	}, `SELECT id, cancel_requested_at IS NOT NULL FROM runs WHERE id = ANY($1)`, pgtx.TextArray(runIDs))
	return asked, err
}
