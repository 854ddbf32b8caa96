package worker

import (
	"context"
	"time"

	"rouse.dev/rouse/internal/store"

	"rouse.dev/rouse/internal/pause"
)

// heartbeat renews the leases of all live attempts in one statement, four times in a lease. It stops the attempts whose
// lease is lost, and those for which a cancel was asked.
func (p *Pool) heartbeat(ctx context.Context) {
	tick := time.NewTicker(p.options.Lease / 4)
	defer tick.Stop()
	away := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			away = p.beat(ctx, away)
		}
	}
}

// beat is one renewal; away says, before and after, whether renewals fail.
func (p *Pool) beat(ctx context.Context, away bool) bool {
	live := p.attempts()
	if len(live) == 0 {
		return away
	}
	keys := make([]store.Attempt, len(live))
	for i, a := range live {
		keys[i] = a.Attempt
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.Lease/4)
	defer cancel()
	asked := time.Now()
	states, err := p.options.Store.Heartbeat(ctx, keys, p.options.Lease)
	if err != nil {
		if !away {
			p.log.Warn("leases of live runs could not be renewed; their processes are ended before the leases end", "runs", len(live), "error", err)
		}
		return true
	}
	if away {
		p.log.Info("leases of live runs are renewed again", "runs", len(live))
	}
	p.tell(asked, states)
	return false
}

func (p *Pool) tell(asked time.Time, states []store.AttemptState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range states {
		a, ok := p.live[s.Attempt]
		switch {
		case !ok: // it ended meanwhile
		case s.Lost:
			a.stop(stopLost())
		default:
			if !s.Busy {
				a.renewed(asked)
			}
			if s.CancelRequested {
				a.stop(stopCancel())
			}
		}
	}
}

// lookPause is the least time between two looks for a cancel, however often somebody asks for it.
const lookPause = 100 * time.Millisecond

// watchCancel ends the attempt as soon as a signal about its run turns out to be a cancel.
func (p *Pool) watchCancel(a *attempt) (stop func()) {
	if p.options.Watcher == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(a.ctx)
	changed := p.options.Watcher.WatchCancel(ctx, a.RunID)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range changed { // it is closed when ctx ends
			if asked, err := p.options.Store.CancelRequested(ctx, a.RunID); err == nil && asked {
				a.stop(stopCancel())
			}
			pause.For(ctx, lookPause)
		}
	}()
	return func() { cancel(); <-done }
}
