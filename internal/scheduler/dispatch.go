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
	// claimBatch is the most runs of one claim (QUEUE.md rule 3).
	claimBatch = 16
	// routePage is how many agents with unrouted requests are listed at a time.
	routePage = 100
	// soonest keeps an instant that lies in the past from making the dispatcher spin.
	soonest = 5 * time.Millisecond
)

// dispatcher routes requests and hands due runs to the worker (SPEC S3.2, S6.1).
type dispatcher struct {
	store    queue
	worker   Worker
	owner    store.Owner
	lease    time.Duration
	counters *metrics.Counters

	overdue time.Time // an instant that had passed when it was read, and was looked at once since
}

// runOnce routes, claims until nothing comes or no slot is free, and says when the next run becomes due. A failing route
// does not keep the claim from being tried.
func (d *dispatcher) runOnce(ctx context.Context, enough <-chan struct{}) (time.Duration, error) {
	routing := d.route(ctx, enough)
	if closed(enough) {
		return 0, routing
	}
	if err := d.claim(ctx, enough); err != nil {
		return 0, errors.Join(routing, err)
	}
	again, err := d.next(ctx)
	if err == nil {
		d.counters.QueuePass(time.Now())
	}
	return again, errors.Join(routing, err)
}

// route goes through the agents with unrouted requests, past those that fail, until no new one is listed.
func (d *dispatcher) route(ctx context.Context, enough <-chan struct{}) error {
	var problems failures
	failed := make(map[xid.ID]bool)
	for {
		agents, err := d.store.UnroutedAgents(ctx, routePage+len(failed))
		if err != nil {
			problems.add(fmt.Errorf("list agents to route: %w", err))
			return problems.err()
		}
		progress := false
		for _, agent := range agents {
			if closed(enough) {
				return problems.err()
			}
			if failed[agent] {
				continue
			}
			switch n, err := d.store.Route(ctx, agent); {
			case err != nil:
				failed[agent] = true
				problems.add(fmt.Errorf("route agent %s: %w", agent, err))
				progress = true // the next list is longer, and may show others
			case n > 0:
				progress = true
			}
		}
		if !progress {
			return problems.err()
		}
	}
}

// claim fills the free slots. A claimed run is handed over whatever happens meanwhile: it is leased to this process.
func (d *dispatcher) claim(ctx context.Context, enough <-chan struct{}) error {
	for !closed(enough) {
		free := min(claimBatch, d.worker.Free())
		if free <= 0 {
			return nil
		}
		claimed, err := d.store.Claim(ctx, d.owner, free, d.lease)
		for _, c := range claimed {
			d.worker.Process(context.WithoutCancel(ctx), c)
		}
		if err != nil {
			return fmt.Errorf("claim runs: %w", err)
		}
		if len(claimed) == 0 {
			return nil
		}
	}
	return nil
}

// next is how long nothing becomes due, by the database's clock; 0 when nothing but a signal or a beat can change that.
func (d *dispatcher) next(ctx context.Context) (time.Duration, error) {
	at, now, err := d.store.NextInstant(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the next instant: %w", err)
	}
	if at.IsZero() || d.worker.Free() <= 0 { // a slot that becomes free is a signal
		return 0, nil
	}
	if at.After(now) {
		return max(at.Sub(now), soonest), nil
	}
	if at.Equal(d.overdue) { // looked at already, and something else holds it
		return 0, nil
	}
	d.overdue = at
	return soonest, nil
}
