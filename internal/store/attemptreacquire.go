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
)

// reacquire gives the run that a call with this key has taken already, when its answer seems lost: the attempt has
// shown no sign of life. Its tokens are new, so that a holder of the former ones is fenced. It is nil when there is no
// such run.
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
	const query = `SELECT l.run_id, l.attempt, l.owner ` + takenByKey + ` ORDER BY l.run_id LIMIT 1`
	taken, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (a Attempt, err error) { return a, rows.Scan(&a.RunID, &a.Number, &a.Owner) },
		query, in.WorkspaceID, in.Key, in.Queue)
	if err != nil || len(taken) == 0 {
		return nil, err
	}
	token, err := auth.NewLeaseToken(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a lease token: %w", err)
	}
	var lease *Lease
	err = s.withLive(ctx, taken[0], func(t *tx, l lane, run runRow) (err error) {
		lease, err = t.reacquire(ctx, l, run, taken[0], in, token)
		return err
	})
	return lease, err
}

// reacquire lends a started attempt once more; nil when it must not be launched any more, and was ended instead.
func (t *tx) reacquire(ctx context.Context, l lane, run runRow, taken Attempt, in Acquire, token auth.Token) (*Lease, error) {
	if run.cancelRequestedAt != nil {
		return nil, t.cancelLive(ctx, l, run)
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
		return nil, t.giveBack(ctx, l, run, domain.RunAttemptStatusInterrupted, false)
	}
	s := started{kind: spec.Kind()}
	if s.requests, err = t.promptRequests(ctx, run.id); err != nil {
		return nil, err
	}
	const contents = `SELECT assembled_prompt, full_prompt FROM run_contents WHERE run_id = $1`
	if err := pgtx.QueryRow(ctx, t, []any{&s.prompt.Text, &s.full}, contents, run.id); err != nil {
		return nil, fmt.Errorf("read the run's prompt: %w", err)
	}
	if s.full != "" {
		c, err := t.conversation(ctx, run)
		if err != nil {
			return nil, err
		}
		s.resume = c.ExternalID
	}
	if s.token, err = auth.NewRunToken(rand.Reader); err != nil {
		return nil, fmt.Errorf("make a run token: %w", err)
	}
	if err := t.keepSecrets(ctx, run, spec.Sealed(holder)); err != nil {
		return nil, err
	}
	lease := &Lease{Launch: launchOf(leasedTo(taken, token), run, *spec, holder, s), Token: token, Again: true}
	lease.Until, err = t.lend(ctx, lease, taken.Owner, in.Key)
	return lease, err
}
