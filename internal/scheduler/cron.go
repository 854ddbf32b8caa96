package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

const (
	// triggerPage is how many due triggers are listed at a time.
	triggerPage = 100
	// tickers is how many agents' triggers are fired, and how many agents routed, at a time: commits, not the rules, take the time of a full tick.
	tickers = 4
	// afterMinute lets the tick come just after the minute rather than just before.
	afterMinute = 2 * time.Millisecond
)

// cronTick fires due triggers (SPEC S4.3).
type cronTick struct {
	store    triggers
	counters *metrics.Counters
	dispatch func()           // makes the dispatcher look
	after    store.DueTrigger // where a tick that took too long left off; zero: at the first
}

// runOnce arms triggers that have no next slot, fires every due one and routes what came of it. Slots fall on whole
// minutes, so the next tick comes at the next minute of the database's clock, or at the beat if that is nearer: a clock
// that was stepped is followed within a beat.
func (c *cronTick) runOnce(ctx context.Context, enough <-chan struct{}) (time.Duration, error) {
	_, arming := c.store.ArmTriggers(ctx)
	if arming != nil {
		arming = fmt.Errorf("arm triggers: %w", arming)
	}
	agents, firing := c.fire(ctx, enough)
	routing := c.route(ctx, enough, agents)
	if c.after != (store.DueTrigger{}) {
		return soonest, errors.Join(arming, firing, routing) // there is more to do
	}
	again, err := c.untilMinute(ctx)
	return again, errors.Join(arming, firing, routing, err)
}

// fire walks the due triggers in order, past failures, and gathers the agents to route. A trigger that failed is still
// due, and tried again by the next tick.
func (c *cronTick) fire(ctx context.Context, enough <-chan struct{}) (agents []xid.ID, err error) {
	var problems failures
	after := c.after
	c.after = store.DueTrigger{}
	for {
		due, err := c.store.DueTriggers(ctx, after, triggerPage)
		if err != nil {
			problems.add(fmt.Errorf("list due triggers: %w", err))
			return agents, problems.err()
		}
		p := c.firePage(ctx, enough, due)
		agents = append(agents, p.agents...)
		for _, err := range p.failed {
			problems.add(err)
		}
		if p.cut {
			c.after = after // those of the page that fired are not due any more
			return agents, problems.err()
		}
		if len(due) < triggerPage {
			c.counters.CronTick(time.Now())
			return agents, problems.err()
		}
		after = due[len(due)-1]
	}
}

// page is what came of firing one page of due triggers. Cut says that it was not fired to its end.
type page struct {
	mu     sync.Mutex
	agents []xid.ID
	failed []error
	cut    bool
}

func (p *page) add(woken []xid.ID, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agents = append(p.agents, woken...)
	if err != nil {
		p.failed = append(p.failed, err)
	}
}

// firePage fires due triggers, those of one agent in order, one after the other, and several agents at a time: triggers of
// one agent wait for its lane anyway.
func (c *cronTick) firePage(ctx context.Context, enough <-chan struct{}, due []store.DueTrigger) *page {
	var order []xid.ID
	of := map[xid.ID][]store.DueTrigger{}
	for _, trigger := range due {
		if of[trigger.AgentID] == nil {
			order = append(order, trigger.AgentID)
		}
		of[trigger.AgentID] = append(of[trigger.AgentID], trigger)
	}
	p := &page{}
	inParallel(order, func(agent xid.ID) { c.fireAgent(ctx, enough, of[agent], p) })
	return p
}

// fireAgent fires due triggers of one agent, in order.
func (c *cronTick) fireAgent(ctx context.Context, enough <-chan struct{}, due []store.DueTrigger, p *page) {
	for _, trigger := range due {
		if closed(enough) {
			p.mu.Lock()
			p.cut = true
			p.mu.Unlock()
			return
		}
		woken, err := c.store.FireDue(ctx, trigger.ID)
		if err != nil {
			err = fmt.Errorf("fire trigger %s: %w", trigger.ID, err)
		}
		p.add(woken, err)
	}
}

// route routes each agent once, several at a time. What fails, or is left by a stop, is unrouted still, and the
// dispatcher's.
func (c *cronTick) route(ctx context.Context, enough <-chan struct{}, agents []xid.ID) error {
	if len(agents) == 0 {
		return nil
	}
	defer c.dispatch()
	p := &page{}
	inParallel(once(agents), func(agent xid.ID) {
		if closed(enough) {
			return
		}
		if _, err := c.store.Route(ctx, agent); err != nil {
			p.add(nil, fmt.Errorf("route agent %s: %w", agent, err))
		}
	})
	var problems failures
	for _, err := range p.failed {
		problems.add(err)
	}
	return problems.err()
}

// once leaves out what a list holds again.
func once(list []xid.ID) []xid.ID {
	seen := make(map[xid.ID]bool, len(list))
	return slices.DeleteFunc(list, func(id xid.ID) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// inParallel does something for each agent, for some of them at a time, and returns when it is done for all.
func inParallel(agents []xid.ID, do func(xid.ID)) {
	waiting := make(chan xid.ID, len(agents))
	for _, agent := range agents {
		waiting <- agent
	}
	close(waiting)
	var all sync.WaitGroup
	for range min(tickers, len(agents)) {
		all.Go(func() {
			for agent := range waiting {
				do(agent)
			}
		})
	}
	all.Wait()
}

func (c *cronTick) untilMinute(ctx context.Context) (time.Duration, error) {
	_, now, err := c.store.NextInstant(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the database's clock: %w", err)
	}
	if now.IsZero() {
		return 0, nil
	}
	return now.Truncate(time.Minute).Add(time.Minute + afterMinute).Sub(now), nil
}
