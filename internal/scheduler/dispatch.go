package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

const (
	// routePage is how many agents with unrouted requests are listed at a time.
	routePage = 100
	// soonest is how soon the dispatcher looks again at what is due and was not taken; it doubles with each look in vain.
	soonest = 5 * time.Millisecond
)

// dispatcher routes requests and hands due runs to the worker (SPEC S3.2, S6.1).
type dispatcher struct {
	store    queue
	worker   Worker
	owner    store.Owner
	lease    time.Duration
	counters *metrics.Counters

	vain int // passes in a row that left something due, and claimed nothing
}

// runOnce claims, routes, claims what the routing made due, and says when to look again. It claims first, since the API
// routes its own requests, and so that no amount of routing delays a run that is due. When a lane fails, the pass goes
// on with the others. When nothing could be claimed at all, the pass ends.
func (d *dispatcher) runOnce(ctx context.Context, enough <-chan struct{}) (time.Duration, error) {
	var problems failures
	if d.claim(ctx, enough, &problems) {
		return 0, problems.err()
	}
	routed := d.route(ctx, enough, &problems)
	if routed > 0 && d.claim(ctx, enough, &problems) {
		return 0, problems.err()
	}
	d.counters.QueuePass(time.Now())
	if routed >= routePage || closed(enough) {
		return soonest, problems.err() // there may be more to do
	}
	again, err := d.next(ctx)
	problems.add(err)
	return again, problems.err()
}

// route goes through the agents with unrouted requests, past those that fail, until no new one is listed or a page of
// them was routed.
func (d *dispatcher) route(ctx context.Context, enough <-chan struct{}, problems *failures) (routed int) {
	seen := make(map[xid.ID]bool)
	for routed < routePage && !closed(enough) {
		agents, err := d.store.UnroutedAgents(ctx, routePage+len(seen))
		if err != nil {
			problems.add(fmt.Errorf("list agents to route: %w", err))
			break
		}
		fresh := slices.DeleteFunc(agents, func(agent xid.ID) bool { return seen[agent] })
		if len(fresh) == 0 {
			break
		}
		for batch := range slices.Chunk(fresh, agentsPerRoute) {
			if closed(enough) {
				break
			}
			for _, agent := range batch {
				seen[agent] = true
			}
			_, err := d.store.Route(ctx, batch...)
			if err == nil {
				routed += len(batch)
			}
			problems.add(err)
			if store.Disconnected(err) {
				return routed
			}
		}
	}
	return routed
}

// claim fills the free slots, past lanes that fail; cut says that nothing could be claimed at all. A claimed run is
// handed over even when the pass is being stopped, because it is leased to this process.
func (d *dispatcher) claim(ctx context.Context, enough <-chan struct{}, problems *failures) (cut bool) {
	for !closed(enough) {
		if d.worker.Free() <= 0 { // workers elsewhere may have one, and what is to be ended needs none
			err := errors.Join(d.store.OfferToWaiters(ctx), d.store.SettleBacklog(ctx))
			problems.add(err)
			return store.Disconnected(err)
		}
		claimed, err := d.store.ClaimInto(ctx, d.owner, d.worker.Free, d.lease)
		problems.add(err)
		if len(claimed) > 0 {
			d.vain = 0
		}
		for _, c := range claimed {
			d.worker.Process(context.WithoutCancel(ctx), c)
		}
		if len(claimed) == 0 || store.CutShort(err) {
			return store.CutShort(err)
		}
	}
	return false
}

// next is how long nothing becomes due, by the database's clock; 0 when nothing but a signal or a beat can change that.
func (d *dispatcher) next(ctx context.Context) (time.Duration, error) {
	at, now, err := d.store.NextInstant(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the next instant: %w", err)
	}
	if at.IsZero() || d.worker.Free() <= 0 { // a slot that becomes free is a signal
		d.vain = 0
		return 0, nil
	}
	if at.After(now) {
		d.vain = 0
		return max(at.Sub(now), soonest), nil
	}
	// Something is due. A holder of its lane, such as a router that found nothing to route, may signal nothing when it
	// lets go. So the dispatcher looks again, less and less often while it finds nothing.
	again := min(soonest<<min(d.vain, 20), dispatchBeat)
	d.vain++
	return again, nil
}
