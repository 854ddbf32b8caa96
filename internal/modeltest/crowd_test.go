package modeltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// TestSequencesAtOnceKeepTheLaws lets eight sequences meet in one workspace, each as a process of its own on a
// connection of its own, and checks what must hold when they stop, and when all that they began has been done. What may
// hold at no instant at all, the database watches.
func TestSequencesAtOnceKeepTheLaws(t *testing.T) {
	t.Parallel()
	first := seed(t)
	p := newProgram(t, connections)
	for i := uint64(0); i < uint64(sequencesAtOnce()) && !t.Failed(); i += connections {
		c := &crowd{seed: first + i}
		if err := c.run(t.Context(), p); err != nil {
			t.Errorf("%s=%d (and the %d after it): %v", seedVariable, c.seed, connections-1, err)
		}
	}
	var deadlocks int
	if err := p.db.QueryRowContext(t.Context(), `SELECT pg_stat_force_next_flush(), deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(new(any), &deadlocks); err != nil {
		t.Fatal(err)
	}
	if deadlocks > 0 { // the lock order has none; those that happen all the same are repeated, and reach no caller
		t.Errorf("%d deadlocks", deadlocks)
	}
}

// crowd is some sequences in one place.
type crowd struct {
	*place
	seed uint64
}

func (c *crowd) run(ctx context.Context, p *program) (err error) {
	s := randomSettings(rand.New(rand.NewPCG(c.seed, 1)))
	s.letPull(rand.New(rand.NewPCG(c.seed, 0)))
	if c.place, err = newPlace(ctx, p, s); err != nil {
		return err
	}
	var players [connections]*player
	var problems [connections]error
	var wg sync.WaitGroup
	for i := range players {
		players[i] = &player{place: c.place, rand: rand.New(rand.NewPCG(c.seed, uint64(2+i))), started: map[xid.ID]bool{},
			owner: store.Owner{ID: xid.New("prc"), Host: fmt.Sprint("host", i), BootID: "boot", PID: 1, Started: 1}}
		wg.Go(func() { problems[i] = players[i].play(ctx) })
	}
	wg.Wait()
	if err := errors.Join(problems[:]...); err != nil {
		return err
	}
	if err := c.lawful(ctx, laws); err != nil {
		return fmt.Errorf("%+v, as they stop: %w", s, err)
	}
	if err := c.drain(ctx, players[:]); err != nil {
		return err
	}
	return errors.Join(c.lawful(ctx, laws), c.lawful(ctx, ends))
}

func (w *place) lawful(ctx context.Context, laws map[string]string) error {
	broken, err := w.breaches(ctx, laws)
	if err == nil && len(broken) > 0 {
		err = errors.New(strings.Join(broken, "; "))
	}
	return err
}

// drain ends every bound and does what is left.
func (c *crowd) drain(ctx context.Context, players []*player) error {
	if err := c.setCeiling(ctx, 0); err != nil {
		return err
	}
	for i := range c.agents {
		if err := c.setPaused(ctx, i, false); err != nil {
			return err
		}
	}
	for range 200 {
		for _, p := range players {
			if err := p.finishAll(ctx); err != nil {
				return err
			}
		}
		_, err := c.Route(ctx, c.agents...)
		if err := errors.Join(err, c.coolAll(ctx), c.passAll(ctx)); err != nil {
			return err
		}
		claimed, err := c.Claim(ctx, players[0].owner, 16, lease)
		if err != nil {
			return err
		}
		took, err := players[0].takeOffers(ctx)
		if err != nil {
			return err
		}
		if players[0].live = claimed; len(claimed) == 0 && !took {
			return nil
		}
	}
	return errors.New("it does not come to an end")
}

// player is one process.
type player struct {
	*place
	rand    *rand.Rand
	owner   store.Owner
	live    []store.Claimed // as far as it knows
	started map[xid.ID]bool
	hands
}

func (p *player) play(ctx context.Context) error {
	for range steps {
		if err := p.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// step does one random thing to whatever is there.
func (p *player) step(ctx context.Context) error {
	if p.rand.IntN(8) == 0 {
		return p.asWorker(ctx)
	}
	agent, routine := p.rand.IntN(len(p.agents)), p.rand.IntN(len(p.routines))
	switch k := p.rand.IntN(100); {
	case k < 20:
		event := p.rand.IntN(4) > 0
		return p.ask(ctx, request{agent: agent, scope: scopes[p.rand.IntN(len(scopes))], event: event, person: event && p.rand.IntN(4) == 0})
	case k < 24:
		return p.wake(ctx, agent, fmt.Sprint(p.rand.IntN(8))) // players' keys meet
	case k < 28:
		return p.fireByHand(ctx, routine, variants[p.rand.IntN(len(variants))])
	case k < 31:
		return p.fireByClock(ctx, routine)
	case k < 47:
		_, err := p.Route(ctx, p.agents[agent])
		return err
	case k < 61:
		claimed, err := p.Claim(ctx, p.owner, 1+p.rand.IntN(4), lease)
		p.live = append(p.live, claimed...)
		for _, c := range claimed {
			p.started[c.RunID] = c.Launch != nil
		}
		return err
	case k < 84:
		return p.work(ctx)
	case k < 88:
		return p.onRun(ctx, `status IN ('QUEUED', 'CLAIMED')`, func(run xid.ID) error {
			_, err := p.CancelRun(ctx, p.workspace, run, "")
			return allowed(err)
		})
	case k < 93:
		return p.onRun(ctx, `parked_until IS NOT NULL`, func(run xid.ID) error { return p.pass(ctx, run) })
	case k < 95:
		return p.cool(ctx, agent)
	case k < 96:
		return p.setCapacity(ctx, agent, 1+p.rand.IntN(3))
	case k < 97:
		return p.setCeiling(ctx, p.rand.IntN(4))
	case k < 99:
		return p.setPaused(ctx, agent, p.rand.IntN(3) == 0)
	}
	done, err := p.Repair(ctx)
	if err == nil && done != (store.Repairs{}) {
		err = fmt.Errorf("there was something to repair: %+v", done)
	}
	return err
}

// onRun does something to a random run that is so.
func (p *player) onRun(ctx context.Context, so string, do func(xid.ID) error) error {
	var runs []xid.ID
	rows, err := p.db.QueryContext(ctx, `SELECT id FROM runs WHERE workspace_id = $1 AND `+so+` ORDER BY id`, p.workspace)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id xid.ID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		runs = append(runs, id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	run, ok := pick(p.rand, runs)
	if !ok {
		return nil
	}
	return do(run)
}

// work takes an attempt a step further, or ends it, or loses it; now and then it then reports once more, too late.
func (p *player) work(ctx context.Context) error {
	if len(p.live) == 0 {
		return nil
	}
	if p.rand.IntN(5) == 0 {
		return p.finishAtOnce(ctx)
	}
	i := p.rand.IntN(len(p.live))
	c := p.live[i]
	if !p.started[c.RunID] && p.rand.IntN(8) > 0 {
		p.started[c.RunID] = true
		launch, err := p.Start(ctx, c.Attempt)
		if launch == nil {
			p.forget(i)
		}
		return err
	}
	started := p.started[c.RunID]
	p.forget(i)
	if err := p.end(ctx, c.Attempt, started); err != nil || p.rand.IntN(4) > 0 {
		return err
	}
	if err := p.Finish(ctx, c.Attempt, store.Success{}); !errors.Is(err, store.ErrFenced) {
		return fmt.Errorf("a report after the attempt's end gave %v, want ErrFenced", err) //nolint:errorlint // it may be nil
	}
	return nil
}

// finishAtOnce lets all attempts that have started end at the same moment, each said twice: one report of the two counts.
func (p *player) finishAtOnce(ctx context.Context) error {
	var wg sync.WaitGroup
	var lock sync.Mutex
	var problems []error
	fenced := map[xid.ID]int{}
	for i := len(p.live) - 1; i >= 0; i-- {
		c := p.live[i]
		if !p.started[c.RunID] {
			continue
		}
		p.forget(i)
		for range 2 {
			wg.Go(func() {
				err := p.Finish(ctx, c.Attempt, store.Success{})
				lock.Lock()
				defer lock.Unlock()
				if fenced[c.RunID] += 0; errors.Is(err, store.ErrFenced) {
					fenced[c.RunID]++
				} else if err != nil {
					problems = append(problems, err)
				}
			})
		}
	}
	wg.Wait()
	for run, n := range fenced {
		if n != 1 {
			problems = append(problems, fmt.Errorf("of two reports on %s, %d were fenced, want 1", run, n))
		}
	}
	return errors.Join(problems...)
}

func (p *player) end(ctx context.Context, a store.Attempt, started bool) error {
	k := p.rand.IntN(8)
	if !started {
		k %= 4
	}
	switch k {
	case 0:
		return p.Fail(ctx, a, store.Failure{Code: domain.RunErrorCodeCrash, Message: "random", Permanent: p.rand.IntN(4) == 0})
	case 1:
		taken, err := p.Abandon(ctx, a, true)
		if err == nil && !taken {
			err = errors.New("a live attempt could not be abandoned")
		}
		return err
	case 2:
		return p.HandBack(ctx, a, store.Unfinished{})
	case 3:
		return p.Cancelled(ctx, a, store.Unfinished{})
	}
	return p.Finish(ctx, a, store.Success{})
}

func (p *player) forget(i int) {
	delete(p.started, p.live[i].RunID)
	p.live = append(p.live[:i], p.live[i+1:]...)
}

func (p *player) finishAll(ctx context.Context) error {
	if err := p.finishHeld(ctx); err != nil {
		return err
	}
	for len(p.live) > 0 {
		c, launched := p.live[0], p.started[p.live[0].RunID]
		p.forget(0)
		if !launched {
			launch, err := p.Start(ctx, c.Attempt)
			if err != nil {
				return err
			}
			launched = launch != nil
		}
		if launched {
			if err := p.Finish(ctx, c.Attempt, store.Success{}); err != nil {
				return err
			}
		}
	}
	return nil
}
