package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// player drives the queue at random, as one of several processes.
type player struct {
	*world
	rand   *rand.Rand
	owner  Owner
	agents []xid.ID
	live   []Claimed
	begun  map[xid.ID]bool
}

// TestRandomTransitionsKeepTheQueueSound lets eight processes do everything to the queue at once, stops them, checks
// what must hold, and then drains: every accepted request must end.
func TestRandomTransitionsKeepTheQueueSound(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const players, steps = 8, 150
	w := newWorld(t)
	w.sql(`UPDATE workspace_lanes SET max_running = 6`)
	w.sql(`UPDATE workspaces SET coalescing_window_ms = 20`)
	var agents []xid.ID
	for i := range 4 {
		agents = append(agents, w.agent(fmt.Sprint("agent", i), func(a *CreateAgent) { a.MaxConcurrentSessions = 1 + i%2; a.SkipIdleWakeups = ptr(false) }))
	}
	var wg sync.WaitGroup
	var all []*player
	for i := range players {
		p := &player{world: w, rand: rand.New(rand.NewPCG(seed, uint64(i))), agents: agents, begun: map[xid.ID]bool{},
			owner: Owner{ID: xid.New("prc"), Host: fmt.Sprint("host", i)}}
		all = append(all, p)
		wg.Go(func() {
			for range steps {
				if err := p.step(); err != nil {
					t.Errorf("seed %d: %v", seed, err)
					return
				}
			}
		})
	}
	wg.Wait()
	w.sound()
	for _, p := range all {
		p.drain()
	}
	w.sound()
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE finished_at IS NULL`); n != 0 {
		t.Errorf("seed %d: %d requests never ended", seed, n)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE delivered_at IS NULL AND end_reason IS NULL AND wake_class = 'EVENT'`); n != 0 {
		t.Errorf("seed %d: %d event requests were neither delivered nor ended with a reason", seed, n)
	}
}

// step does one random thing; what a rule refuses is no error.
func (p *player) step() error {
	ctx := p.background()
	agent := p.agents[p.rand.IntN(len(p.agents))]
	switch k := p.rand.IntN(100); {
	case k < 30:
		return p.ask(agent)
	case k < 50:
		_, err := p.Route(ctx, agent)
		return err
	case k < 70:
		claimed, err := p.Claim(ctx, p.owner, 1+p.rand.IntN(4), time.Minute)
		p.live = append(p.live, claimed...)
		return err
	case k < 95:
		return p.work()
	case k < 97:
		id, err := p.anyRun("QUEUED")
		if err != nil || id == "" {
			return err
		}
		return p.allowed(p.CancelRun(ctx, p.workspace, id, ""))
	case k < 98:
		id, err := p.anyRun("CLAIMED")
		if err != nil || id == "" {
			return err
		}
		return p.allowed(p.CancelRun(ctx, p.workspace, id, ""))
	}
	_, err := p.Repair(ctx)
	return err
}

func (p *player) ask(agent xid.ID) error {
	ctx := p.background()
	r := newRequest{workspaceID: p.workspace, agentID: agent, causationID: xid.New("cau"), scope: fmt.Sprint("task:", p.rand.IntN(3)),
		source: domain.WakeupSourceSelf, class: domain.WakeClassEvent, reason: "random", payload: &domain.SelfPayload{Reason: "random"}}
	switch p.rand.IntN(4) {
	case 0:
		r.class = domain.WakeClassPeriodic
	case 1:
		r.personWaiting = true
	}
	return p.inTx(ctx, func(t *tx) error { _, _, err := t.insertRequest(ctx, r); return err })
}

// work takes one live attempt a step further, or ends it in a random way.
func (p *player) work() error {
	if len(p.live) == 0 {
		return nil
	}
	ctx := p.background()
	i := p.rand.IntN(len(p.live))
	c := p.live[i]
	if !p.begun[c.RunID] {
		p.begun[c.RunID] = true
		launch, err := p.Start(ctx, c.Attempt)
		if launch == nil {
			p.forget(i)
		}
		return p.allowed(err)
	}
	p.forget(i)
	switch p.rand.IntN(8) {
	case 0:
		return p.allowed(p.Fail(ctx, c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "random"}))
	case 1:
		_, err := p.Abandon(ctx, c.Attempt, true)
		return err
	case 2:
		return p.allowed(p.HandBack(ctx, c.Attempt))
	case 3:
		if err := p.allowed(p.Cancelled(ctx, c.Attempt)); err != nil {
			return err
		}
		return p.wantFenced(p.Finish(ctx, c.Attempt, Success{}))
	}
	return p.allowed(p.Finish(ctx, c.Attempt, Success{}))
}

func (p *player) forget(i int) {
	delete(p.begun, p.live[i].RunID)
	p.live = append(p.live[:i], p.live[i+1:]...)
}

// allowed lets pass what a rule may answer.
func (p *player) allowed(err error) error {
	var ue *domain.UserError
	if errors.Is(err, ErrFenced) || errors.As(err, &ue) {
		return nil
	}
	return err
}

func (p *player) wantFenced(err error) error {
	if !errors.Is(err, ErrFenced) {
		return fmt.Errorf("a report after the attempt ended gave %v, want ErrFenced", err) //nolint:errorlint // it may be nil, and is what was not to happen
	}
	return nil
}

func (p *player) anyRun(status string) (xid.ID, error) {
	id, err := queryOne[xid.ID](p.background(), p.db, `SELECT id FROM runs WHERE status = $1 ORDER BY md5(id || $2) LIMIT 1`, status, fmt.Sprint(p.rand.Int()))
	if isNoRows(err) {
		return "", nil
	}
	return id, err
}

// drain finishes what is live and takes what is left, without further causes, until nothing is.
func (p *player) drain() {
	p.Helper()
	ctx := p.background()
	for _, agent := range p.agents {
		_, err := p.Route(ctx, agent)
		p.ok(err)
	}
	for range 1000 {
		for _, c := range p.live {
			if !p.begun[c.RunID] {
				_, err := p.Start(ctx, c.Attempt)
				p.ok(p.allowed(err))
			}
			p.ok(p.allowed(p.Finish(ctx, c.Attempt, Success{})))
		}
		p.live, p.begun = nil, map[xid.ID]bool{}
		p.sql(`UPDATE runs SET parked_until = clock_timestamp() - interval '1 second' WHERE status = 'QUEUED' AND parked_until IS NOT NULL`)
		for _, agent := range p.agents {
			_, err := p.Route(ctx, agent)
			p.ok(err)
		}
		claimed, err := p.Claim(ctx, p.owner, 16, time.Minute)
		p.ok(err)
		if p.live = claimed; len(claimed) == 0 {
			return
		}
	}
	p.Fatal("the queue does not drain")
}
