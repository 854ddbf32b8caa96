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
	triggerPage = 1000
	// triggersPerFire is how many triggers, and agentsPerRoute how many agents, the store is given at once.
	triggersPerFire = 100
	agentsPerRoute  = 20
	// tickers is how many batches are fired or routed at a time.
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
// minutes, so the next tick comes at the next minute of the database's clock, or at the beat if that is sooner. So the
// tick follows a clock that was stepped within a beat.
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

// firePage fires due triggers, several batches at a time. Those of one agent are fired in order, one batch after the other:
// they wait for its lane anyway.
func (c *cronTick) firePage(ctx context.Context, enough <-chan struct{}, due []store.DueTrigger) *page {
	p := &page{}
	inParallel(packed(due), func(triggers []xid.ID) {
		for batch := range slices.Chunk(triggers, triggersPerFire) {
			if closed(enough) {
				p.mu.Lock()
				p.cut = true
				p.mu.Unlock()
				return
			}
			p.add(c.store.FireDue(ctx, batch...))
		}
	})
	return p
}

// packed puts due triggers together for the store, those of one agent in one list, in the order in which agents come
// due. A list is longer than a batch only when one agent has that many triggers.
func packed(due []store.DueTrigger) (lists [][]xid.ID) {
	var order []xid.ID
	of := map[xid.ID][]xid.ID{}
	for _, trigger := range due {
		order = append(order, trigger.AgentID)
		of[trigger.AgentID] = append(of[trigger.AgentID], trigger.ID)
	}
	var open []xid.ID
	for _, agent := range distinct(order) {
		if len(open) > 0 && len(open)+len(of[agent]) > triggersPerFire {
			lists, open = append(lists, open), nil
		}
		open = append(open, of[agent]...)
	}
	if len(open) > 0 {
		lists = append(lists, open)
	}
	return lists
}

// route routes each agent once, several batches at a time. What fails, or is left by a stop, is unrouted still, and the
// dispatcher's.
func (c *cronTick) route(ctx context.Context, enough <-chan struct{}, agents []xid.ID) error {
	if len(agents) == 0 {
		return nil
	}
	defer c.dispatch()
	p := &page{}
	inParallel(slices.Collect(slices.Chunk(distinct(agents), agentsPerRoute)), func(batch []xid.ID) {
		if closed(enough) {
			return
		}
		_, err := c.store.Route(ctx, batch...)
		p.add(nil, err)
	})
	var problems failures
	for _, err := range p.failed {
		problems.add(err)
	}
	return problems.err()
}

// distinct leaves out repetitions, and keeps the order.
func distinct(list []xid.ID) []xid.ID {
	seen := make(map[xid.ID]bool, len(list))
	return slices.DeleteFunc(list, func(id xid.ID) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// inParallel does something with each list, with some of them at a time, and returns when it is done with all.
func inParallel(lists [][]xid.ID, do func([]xid.ID)) {
	waiting := make(chan []xid.ID, len(lists))
	for _, list := range lists {
		waiting <- list
	}
	close(waiting)
	var all sync.WaitGroup
	for range min(tickers, len(lists)) {
		all.Go(func() {
			for list := range waiting {
				do(list)
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
