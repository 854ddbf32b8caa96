package modeltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// letPull makes some agents of a place those whose runs workers execute.
func (s settings) letPull(r *rand.Rand) {
	for i := range s.agents {
		s.agents[i].pulls = !s.agents[i].noExecutor && r.IntN(3) == 0
	}
}

// hands are the runs that a player holds as a worker, and the call that it may make again.
type hands struct {
	held  []store.Attempt
	calls int
}

// asWorker does one thing that a worker does: it takes a run, shows a sign of life, or reports an end.
func (p *player) asWorker(ctx context.Context) error {
	if k := p.rand.IntN(10); k < 4 || len(p.held) == 0 {
		return p.acquire(ctx)
	} else if k == 4 {
		return p.letOffersGo(ctx)
	}
	i := p.rand.IntN(len(p.held))
	a := p.held[i]
	switch p.rand.IntN(3) {
	case 0:
		if _, err := p.Renew(ctx, a); err != nil {
			return fmt.Errorf("a worker's sign of life: %w", err)
		}
		return p.Progress(ctx, a, map[string]any{"done": 1})
	case 1:
		return p.RecordSession(ctx, a, "session")
	}
	p.held = append(p.held[:i], p.held[i+1:]...)
	if err := p.endAsWorker(ctx, a); err != nil || p.rand.IntN(3) > 0 {
		return err
	}
	if err := p.Fail(ctx, a, store.Failure{Code: domain.RunErrorCodeOther, Message: "late"}); !errors.Is(err, store.ErrFenced) {
		return fmt.Errorf("a worker's report after the end gave %v, want ErrFenced", err) //nolint:errorlint // it may be nil
	}
	return nil
}

// acquire takes a run, and now and then asks again as if the answer had been lost: the same attempt must come, and whoever
// had the former answer must be fenced.
func (p *player) acquire(ctx context.Context) error {
	p.calls++
	in := store.Acquire{WorkspaceID: p.workspace, Queue: queue, Key: fmt.Sprint(p.owner.ID, p.calls)}
	lease, err := p.Acquire(ctx, in)
	if err != nil || lease == nil {
		return err
	}
	former := lease.Attempt
	if p.rand.IntN(4) == 0 {
		if lease, err = p.Acquire(ctx, in); err != nil {
			return err
		}
		if _, err := p.Renew(ctx, former); !errors.Is(err, store.ErrFenced) {
			return fmt.Errorf("the answer that was lost still stands: %w", err)
		}
		if lease == nil { // cancelled meanwhile, or not to be had any more
			return nil
		}
	}
	a, err := p.LeasedAttempt(ctx, lease.RunID, lease.Number, lease.Token.Digest().String())
	if err != nil || a != lease.Attempt {
		return fmt.Errorf("the lease of %v is not known: %v, %w", lease.Attempt, a, err)
	}
	p.held = append(p.held, a)
	return nil
}

// letOffersGo lets the time of an offer run out that no worker has taken.
func (p *player) letOffersGo(ctx context.Context) error {
	return p.onRun(ctx, `id IN (SELECT run_id FROM attempt_leases WHERE owner IS NULL)`, func(run xid.ID) error {
		var number int
		const late = `UPDATE attempt_leases SET lease_until = clock_timestamp() - interval '1 second' WHERE run_id = $1 AND owner IS NULL`
		if err := p.sql(ctx, late, run); err != nil {
			return err
		}
		if err := p.db.QueryRowContext(ctx, `SELECT attempt FROM runs WHERE id = $1`, run).Scan(&number); err != nil {
			return err
		}
		_, err := p.Withdraw(ctx, store.Attempt{RunID: run, Number: number})
		return err
	})
}

func (p *player) endAsWorker(ctx context.Context, a store.Attempt) error {
	switch p.rand.IntN(6) {
	case 0:
		return p.Fail(ctx, a, store.Failure{Code: domain.RunErrorCodeCrash, Message: "random", Permanent: p.rand.IntN(4) == 0})
	case 1:
		return p.HandBack(ctx, a, store.Unfinished{})
	case 2:
		taken, err := p.Abandon(ctx, a, true)
		if err == nil && !taken {
			err = errors.New("a worker's attempt could not be abandoned")
		}
		return err
	}
	return p.Finish(ctx, a, store.Success{})
}

// finishHeld ends well what the player holds as a worker.
func (p *player) finishHeld(ctx context.Context) error {
	for _, a := range p.held {
		if err := p.Finish(ctx, a, store.Success{}); err != nil {
			return fmt.Errorf("end a worker's run: %w", err)
		}
	}
	p.held = nil
	return nil
}

// takeOffers takes all that is offered, and says whether there was anything.
func (p *player) takeOffers(ctx context.Context) (took bool, err error) {
	for {
		before := len(p.held)
		if err := p.acquire(ctx); err != nil {
			return took, err
		}
		if len(p.held) == before {
			return took, nil
		}
		took = true
	}
}
