package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

const (
	// triggerPage is how many due triggers are listed at a time.
	triggerPage = 100
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
		for _, trigger := range due {
			if closed(enough) {
				c.after = after
				return agents, problems.err()
			}
			woken, err := c.store.FireDue(ctx, trigger.ID)
			if err != nil {
				problems.add(fmt.Errorf("fire trigger %s: %w", trigger.ID, err))
			}
			agents = append(agents, woken...)
			after = trigger
		}
		if len(due) < triggerPage {
			c.counters.CronTick(time.Now())
			return agents, problems.err()
		}
	}
}

// route routes each agent once. What fails, or is left by a stop, is unrouted still, and the dispatcher's.
func (c *cronTick) route(ctx context.Context, enough <-chan struct{}, agents []xid.ID) error {
	if len(agents) == 0 {
		return nil
	}
	defer c.dispatch()
	var problems failures
	seen := make(map[xid.ID]bool)
	for _, agent := range agents {
		if closed(enough) {
			break
		}
		if seen[agent] {
			continue
		}
		seen[agent] = true
		if _, err := c.store.Route(ctx, agent); err != nil {
			problems.add(fmt.Errorf("route agent %s: %w", agent, err))
		}
	}
	return problems.err()
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
