package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// reacquire gives the run that a call with this key has taken already, when its answer seems lost: the attempt has
// shown no sign of life. Its tokens are new, so that a holder of the former ones is fenced. It is nil when there is no
// such run, and a user error when the lease of that run is over: a second launch is not what the call asked for.
func (s *Attempts) reacquire(ctx context.Context, in Acquire) (lease *Lease, err error) {
	if in.Key == "" {
		return nil, nil
	}
	for range reacquireTries {
		if lease, err = s.tryReacquire(ctx, in); !errors.Is(err, ErrFenced) {
			return lease, err
		}
	}
	return nil, nil
}

// reacquireTries is how often a run is looked for that other calls with the same key take at the same moment.
const reacquireTries = 10

// takenByKey are the attempts that a call took whose answer may be lost: $1 is the workspace, $2 the key, $3 the queue.
const takenByKey = `
FROM attempt_leases l JOIN run_attempts x ON x.run_id = l.run_id AND x.number = l.attempt
WHERE l.workspace_id = $1
  AND l.call_key = $2
  AND l.queue = $3
  AND l.owner IS NOT NULL
  AND l.log_bytes = 0
  AND x.status = '` + string(domain.RunAttemptStatusLaunching) + `'`

func (s *Attempts) tryReacquire(ctx context.Context, in Acquire) (*Lease, error) {
	taken, over, err := s.takenBy(ctx, in)
	if over != "" && err == nil {
		err = leaseOver(over)
	}
	if err != nil || taken == nil {
		return nil, err
	}
	token, err := auth.NewLeaseToken(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a lease token: %w", err)
	}
	var lease *Lease
	err = s.withLive(ctx, *taken, func(t *tx, run runRow) (err error) {
		lease, err = t.reacquire(ctx, run, *taken, in, token)
		return err
	})
	return lease, err
}

// takenBy finds the attempt that a call with this key took and of which nothing was heard since; over is the run instead when
// the lease of that attempt is over, whether or not the sweep has been there.
func (s *Attempts) takenBy(ctx context.Context, in Acquire) (taken *Attempt, over xid.ID, err error) {
	const query = `
-- $1 workspace, $2 key, $3 queue, $4 owner of the keys of lost calls, $5 their mutation, $6 for how many seconds they are kept
SELECT l.run_id, l.attempt, l.owner, l.lease_until <= clock_timestamp() ` + takenByKey + `
UNION ALL
SELECT result_id, 0, '', true
FROM mutation_keys
WHERE owner = $4
  AND mutation = $5
  AND key = $2
  AND created_at >= clock_timestamp() - make_interval(secs => $6)
ORDER BY 4, 1
LIMIT 1`
	_, err = pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (struct{}, error) {
		var a Attempt
		var isOver bool
		err := rows.Scan(&a.RunID, &a.Number, &a.Owner, &isOver)
		if taken = &a; isOver {
			taken, over = nil, a.RunID
		}
		return struct{}{}, err
	}, query, in.WorkspaceID, in.Key, in.Queue, lostCalls(in.WorkspaceID, in.Queue), acquireMutation, domain.MutationKeyLives.Seconds())
	return taken, over, err
}

// acquireMutation is the mutation whose keys are remembered once the lease that they took is lost; lostCalls is the owner of
// these keys, since the calls of each queue have keys of their own.
const acquireMutation = "acquireRun"

func lostCalls(workspaceID xid.ID, queue string) xid.ID { return workspaceID + "/" + xid.ID(queue) }

// leaseOver refuses a call that is made again too late.
func leaseOver(run xid.ID) error {
	return domain.RefuseField([]string{"idempotencyKey"}, domain.UserErrorCodeStaleLease, "a call with this key took run %s, and that lease is over, "+
		"because no report came before its end: the run is tried again by itself. If the run's agent was started, end it; then make the next call with a new key", run)
}

// rememberLostCall keeps the key of the call that took a lease which is lost before anything was heard of it: who makes the call
// again is to hear so, and to launch nothing. The lease is still there.
func (t *tx) rememberLostCall(ctx context.Context, run runRow) error {
	const keep = `
-- $1 run, $2 attempt, $3 id of the key, $4 mutation
INSERT INTO mutation_keys (id, owner, mutation, key, input_digest, result_id)
SELECT $3, workspace_id || '/' || queue, $4, call_key, '', run_id
FROM attempt_leases
WHERE run_id = $1
  AND attempt = $2
  AND call_key IS NOT NULL
  AND queue IS NOT NULL
ON CONFLICT (owner, mutation, key) DO UPDATE SET result_id = excluded.result_id, created_at = clock_timestamp()`
	_, err := pgtx.Exec(ctx, t, keep, run.id, run.attempt, xid.New("mky"), acquireMutation)
	return pgtx.Wrap("remember the call whose lease is lost", err)
}

// reacquire lends a started attempt once more; nil when it must not be launched any more, and was ended instead.
func (t *tx) reacquire(ctx context.Context, run runRow, taken Attempt, in Acquire, token auth.Token) (*Lease, error) {
	if run.cancelRequestedAt != nil {
		return nil, t.cancelLive(ctx, run)
	}
	ag, err := t.Agent.Query().Where(agent.ID(run.agentID)).WithWorkspace().Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the agent: %w", err)
	}
	spec, holder, err := t.resolveExecutor(ctx, run, ag)
	if err != nil {
		return nil, err
	}
	if spec == nil || spec.Queue() != in.Queue {
		return nil, t.giveBack(ctx, run, domain.RunAttemptStatusInterrupted, false)
	}
	x := &starting{Attempt: leasedTo(taken, token), run: run, spec: spec, holder: holder}
	if err := t.readRequests(ctx, []*starting{x}); err != nil {
		return nil, err
	}
	const contents = `SELECT assembled_prompt, full_prompt FROM run_contents WHERE run_id = $1`
	if err := pgtx.QueryRow(ctx, t, []any{&x.prompt.Text, &x.full}, contents, run.id); err != nil {
		return nil, fmt.Errorf("read the run's prompt: %w", err)
	}
	if x.full != "" {
		c, err := t.conversation(ctx, run)
		if err != nil {
			return nil, err
		}
		x.resume = c.ExternalID
	}
	if x.token, err = auth.NewRunToken(rand.Reader); err != nil {
		return nil, fmt.Errorf("make a run token: %w", err)
	}
	if err := t.keepSecrets(ctx, run, spec.Sealed(holder)); err != nil {
		return nil, err
	}
	lease := &Lease{Launch: x.launchOf(), Token: token, Again: true}
	lease.Until, err = t.lend(ctx, lease, taken.Owner, in)
	return lease, err
}
