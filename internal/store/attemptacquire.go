package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Acquire is a worker's wish for a run of a queue. Agents empty means those of any agent. Key names the call, so that it can
// be made again when its answer was lost; "" is a call that is not repeated.
type Acquire struct {
	WorkspaceID xid.ID
	Queue       string
	Agents      []xid.ID
	Key         string
	Worker      Worker
}

// Lease is a worker's hold on an attempt: whoever has the token may report, until Until unless it is renewed.
type Lease struct {
	*Launch
	Token auth.Token
	Until time.Time
	Again bool // a call with the same key took the attempt before
}

// Acquire starts the oldest run that the queue offers and gives it to the worker that asks; nil when the queue offers
// none. Runs that were parked because no worker came are offered again first. Due runs are offered, too, although this
// process may take no runs of its own just now. A call that is made again gets the run that it took before, or hears that the
// lease is over. A run that cannot be given, offered or made due is logged, and the worker gets another one.
func (s *Attempts) Acquire(ctx context.Context, in Acquire) (*Lease, error) {
	lease, err := s.reacquire(ctx, in)
	if err != nil || lease != nil {
		return lease, pgtx.Wrap("give a run to a worker again", err)
	}
	lease, err = s.takeOfferOnce(ctx, in)
	if err != nil || lease != nil {
		return lease, err
	}
	if err := s.goOn(ctx, s.unparkOffers(ctx, in.WorkspaceID, in.Queue, in.Agents)); err != nil {
		return nil, err
	}
	if err := s.goOn(ctx, s.promoteDue(ctx)); err != nil {
		return nil, err
	}
	offered, err := s.offerDue(ctx, in)
	if err := s.goOn(ctx, err); err != nil || offered == 0 {
		return nil, err
	}
	return s.takeOfferOnce(ctx, in)
}

// goOn logs errors that concern some of many, such as a lane of another workspace. It returns an error that endsAll or
// that CutShort what was asked.
func (s *Attempts) goOn(ctx context.Context, err error) error {
	if pgtx.EndsAll(ctx, err) || CutShort(err) {
		return err
	}
	s.limitedLog.Warn(s.log, unserved, err)
	return nil
}

const unserved = "some of the queue could not be served; the rest goes on, and the next pass tries again"

// errKeyTaken says that another call with the same key has just taken a run.
var errKeyTaken = errors.New("another call with this key has taken a run")

// takeOfferOnce is takeOffer for calls with one key at the same moment: they get one run.
func (s *Attempts) takeOfferOnce(ctx context.Context, in Acquire) (*Lease, error) {
	lease, err := s.takeOffer(ctx, in)
	if errors.Is(err, errKeyTaken) {
		lease, err = s.reacquire(ctx, in)
		return lease, pgtx.Wrap("give a run to a worker again", err)
	}
	if lease != nil {
		return lease, nil
	}
	return nil, s.goOn(ctx, err)
}

// holdKey lets one call with a key take a run at a time, and finds whether one has. It is the first lock of its transaction.
func (t *tx) holdKey(ctx context.Context, in Acquire) error {
	if in.Key == "" {
		return nil
	}
	if _, err := pgtx.Exec(ctx, t, `SELECT pg_advisory_xact_lock(hashtextextended($1 || ' ' || $2, 0))`, in.WorkspaceID, in.Key); err != nil {
		return fmt.Errorf("wait for calls with the same key: %w", err)
	}
	taken, err := pgtx.QueryOne[bool](ctx, t, `SELECT EXISTS (SELECT `+takenByKey+`)`, in.WorkspaceID, in.Key, in.Queue)
	if err == nil && taken {
		err = errKeyTaken
	}
	return err
}

// offerDue claims due runs of the queue, as many as one batch holds. A lane that fails does not stop the others.
func (s *Attempts) offerDue(ctx context.Context, in Acquire) (offered int, err error) {
	var failed []xid.ID
	var problems []error
	for {
		lanes, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], offerLanesQuery, in.WorkspaceID, in.Queue, pgtx.IDs(in.Agents), offerBatch, offerLanes, pgtx.IDs(failed))
		if err != nil {
			return 0, errors.Join(append(problems, &listError{"due lanes of the queue", err})...)
		}
		done := s.claimBisecting(ctx, claimOrder{agents: lanes, limit: offerBatch, settles: settlesPerPass, queue: in.Queue, wait: true, more: len(lanes) >= offerBatch})
		problems = append(problems, done.problems...)
		if done.offered > 0 || len(done.failed) == 0 || pgtx.EndsAll(ctx, errors.Join(problems...)) {
			return done.offered, errors.Join(problems...)
		}
		failed = append(failed, done.failed...)
	}
}

// A worker's call looks at so many due lanes, and offers so many runs in one transaction.
const (
	offerLanes = 1000
	offerBatch = 16
)

// workspaceHeld says in SQL that a person holds the workspace $1, so that none of its runs is given to a worker.
const workspaceHeld = `EXISTS (SELECT 1 FROM workspace_lanes WHERE workspace_id = $1 AND held_at IS NOT NULL)`

const offerLanesQuery = `
-- $1 workspace, $2 queue, $3 agents to which the worker is bound; none: all, $4 most lanes, $5 most heads
-- looked at, $6 lanes that failed
WITH due AS MATERIALIZED (
  -- MATERIALIZED: the executor of a head, which takes reading documents, is looked up for so many lanes at most
  SELECT agent_id, head_at, head_id FROM agent_lanes
  WHERE workspace_id = $1 AND NOT ` + workspaceHeld + ` AND ` + guard.LaneDue + ` AND eligible_at <= statement_timestamp()
    AND (cardinality($3::text[]) = 0 OR agent_id = ANY($3)) AND agent_id <> ALL($6)
  ORDER BY head_at, head_id LIMIT $5)
SELECT due.agent_id
FROM due
JOIN runs r ON r.id = due.head_id
WHERE ` + queueOfRun + ` = $2
ORDER BY head_at, head_id
LIMIT $4`

// takeOffer starts the oldest offered run that can be started. A run whose start fails does not stop the others.
func (s *Attempts) takeOffer(ctx context.Context, in Acquire) (*Lease, error) {
	const query = `
SELECT l.run_id, l.attempt FROM attempt_leases l JOIN runs r ON r.id = l.run_id
WHERE l.workspace_id = $1
  AND NOT ` + workspaceHeld + `
  AND l.queue = $2
  AND l.owner IS NULL
  AND (cardinality($3::text[]) = 0 OR l.agent_id = ANY($3))
  AND l.run_id <> ALL($4)
ORDER BY r.requested_at, r.id LIMIT 16`
	var failed []xid.ID
	var problems []error
	for {
		offers, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (a Attempt, err error) { return a, rows.Scan(&a.RunID, &a.Number) },
			query, in.WorkspaceID, in.Queue, pgtx.IDs(in.Agents), pgtx.IDs(failed))
		if err != nil {
			return nil, errors.Join(append(problems, &listError{"offered runs", err})...)
		}
		if len(offers) == 0 {
			return nil, errors.Join(problems...)
		}
		for _, offer := range offers {
			lease, err := s.startOffered(ctx, offer, in)
			switch {
			case lease != nil && err == nil:
				s.limitedLog.Warn(s.log, unserved, errors.Join(problems...))
				return lease, nil
			case err == nil || errors.Is(err, ErrFenced):
				continue
			}
			failed, problems = append(failed, offer.RunID), append(problems, fmt.Errorf("give run %s to a worker: %w", offer.RunID, err))
			if errors.Is(err, errKeyTaken) || pgtx.EndsAll(ctx, err) {
				return nil, errors.Join(problems...)
			}
		}
	}
}

// startOffered starts one offered run for a worker; nil when it was settled instead, ErrFenced when another worker has it.
func (s *Attempts) startOffered(ctx context.Context, offer Attempt, in Acquire) (lease *Lease, err error) {
	token, err := auth.NewLeaseToken(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a lease token: %w", err)
	}
	err = s.inTx(ctx, func(t *tx) error {
		lease = nil
		if err := t.holdKey(ctx, in); err != nil {
			return err
		}
		if _, err := t.lockLaneOf(ctx, offer.RunID); err != nil {
			return err
		}
		run, _, err := t.lockOffered(ctx, offer)
		if err != nil {
			return err
		}
		if held, err := t.held(ctx, run.workspaceID); err != nil || held {
			return err
		}
		if run.taskID != "" {
			if _, err := t.lockTasks(ctx, run.taskID); err != nil {
				return err
			}
		}
		x := &starting{Attempt: leasedTo(offer, token), run: run, queue: in.Queue}
		if err := t.startAll(ctx, []*starting{x}); err != nil || x.launch == nil {
			return err
		}
		lease = &Lease{Launch: x.launch, Token: token}
		lease.Until, err = t.lend(ctx, lease, "", in)
		return err
	})
	return lease, err
}

// held says whether a person holds the workspace. Until the transaction ends nobody begins to, and claims do not wait for it.
func (t *tx) held(ctx context.Context, workspaceID xid.ID) (held bool, err error) {
	const query = `SELECT held_at IS NOT NULL FROM workspace_lanes WHERE workspace_id = $1 FOR KEY SHARE`
	held, err = pgtx.QueryOne[bool](ctx, t, query, workspaceID)
	return held, pgtx.Wrap("look whether the workspace is held", err)
}

// leasedTo is an attempt as its worker owns it.
func leasedTo(a Attempt, token auth.Token) Attempt {
	return Attempt{RunID: a.RunID, Number: a.Number, Owner: xid.ID(token.Digest().String())}
}

// lend makes the worker the owner of the attempt, which former owned; "" is nobody: it was offered.
func (t *tx) lend(ctx context.Context, lease *Lease, former xid.ID, in Acquire) (until time.Time, err error) {
	period := lease.Executor.Pull.Lease
	until = t.Now.Add(period)
	const query = `
-- $1 owner, $2 end of the lease, $3 lease in ms, $4 key of the call, $5 run, $6 attempt, $7 owner before; "":
-- an offer, $8 now, $9 digest of the run token, $10 worker
WITH l AS (UPDATE attempt_leases SET owner = $1, lease_until = $2, lease_ms = $3, call_key = NULLIF($4, '')
  WHERE run_id = $5 AND attempt = $6 AND owner IS NOT DISTINCT FROM NULLIF($7, '') RETURNING 1)
UPDATE run_attempts
SET owner = $1, status = '` + string(domain.RunAttemptStatusLaunching) + `', heartbeat_at = $8,
  token_digest = $9, worker = $10
WHERE run_id = $5 AND number = $6 AND EXISTS (SELECT 1 FROM l)`
	caller, _ := auth.FromContext(ctx)
	err = pgtx.ExecOne(ctx, t, query, lease.Owner, until, period.Milliseconds(), in.Key, lease.RunID, lease.Number, former, t.Now, lease.RunToken.Digest().String(),
		in.Worker.id(in.WorkspaceID, caller.TokenID))
	return until, pgtx.Wrap("write the worker's lease", err)
}

// OfferToWaiters offers what is due of the queues at which workers wait. It is for a process that has no free slot and so
// claims nothing: offers need none. A lane or a queue that fails does not stop the others.
func (s *Attempts) OfferToWaiters(ctx context.Context) error {
	queues := s.waiters.list()
	if len(queues) == 0 {
		return nil
	}
	promoting := s.promoteDue(ctx)
	if pgtx.EndsAll(ctx, promoting) {
		return promoting
	}
	_, err := pgtx.Each(ctx, queues, func(q waitedQueue) error {
		_, err := s.offerDue(ctx, Acquire{WorkspaceID: q.workspaceID, Queue: q.queue})
		return err
	}, func(q waitedQueue, err error) error {
		return fmt.Errorf("offer runs of queue %s of workspace %s to waiting workers: %w", q.queue, q.workspaceID, err)
	})
	return errors.Join(promoting, err)
}
