package main

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/lifecycle"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/scheduler"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// watchedStore is the store, with an eye on the passes of the dispatcher.
type watchedStore struct {
	*store.Store
	passes, live, overlaps atomic.Int64
}

func (w *watchedStore) UnroutedAgents(ctx context.Context, limit int) ([]xid.ID, error) {
	if w.live.Add(1) > 1 {
		w.overlaps.Add(1)
	}
	defer w.live.Add(-1)
	w.passes.Add(1)
	return w.Store.UnroutedAgents(ctx, limit)
}

// idleWorkers have room and are never given anything.
type idleWorkers struct{}

func (idleWorkers) Free() int                                         { return 1 }
func (idleWorkers) Process(context.Context, store.Claimed)            {}
func (idleWorkers) Freed() <-chan struct{}                            { return nil }
func (idleWorkers) EndLeftover(context.Context, store.Leftover) error { return nil }

// P1. All loops on the real store, without a program around them, since a program starts and stops its loops once. The
// stress test of internal/scheduler does so a thousand times without a database.
func stoppedLoops(t *testing.T) {
	h := newHouse(t)
	quiet := slog.New(slog.DiscardHandler)
	counters := metrics.New()
	hub := event.New(event.HubOptions{URL: h.url, DB: h.db, Log: quiet})
	owner, err := scheduler.ThisProcess()
	if err != nil {
		t.Fatal(err)
	}
	watched := &watchedStore{Store: store.New(h.db, store.Options{Events: hub, Counters: counters, Log: quiet, Jitter: func() float64 { return 0 }})}
	s := scheduler.New(scheduler.Options{Store: watched, Worker: idleWorkers{}, Queue: hub, Groups: idleWorkers{}, Counters: counters, Owner: owner,
		Lease: time.Minute, Keep: domain.Retention{}, Log: quiet})
	begin := func(ctx context.Context) {
		t.Helper()
		if err := s.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // twice is once
		begin(t.Context())
	}
	for range 20 {
		n := watched.passes.Load()
		hub.Publish(event.Event{Kind: event.Queue})
		eventually(t, "a pass", patience, func() bool { return watched.passes.Load() > n })
	}

	table := block(t, h.db, `LOCK TABLE wakeup_requests IN ACCESS EXCLUSIVE MODE`)
	hub.Publish(event.Event{Kind: event.Queue})
	eventually(t, "the blocked pass", patience, func() bool { return blocked(t, h.db) >= 1 && watched.live.Load() == 1 })
	var stops sync.WaitGroup
	var stopped atomic.Int64
	for range 2 {
		stops.Go(func() { s.Stop(); stopped.Add(1) })
	}
	eventually(t, "the stop", patience, func() bool { return s.State() == lifecycle.Stopping })
	if stopped.Load() != 0 || watched.live.Load() != 1 {
		t.Errorf("%d stops returned, %d passes in progress", stopped.Load(), watched.live.Load())
	}
	table.lift()
	stops.Wait()
	after := watched.passes.Load()
	if s.State() != lifecycle.Stopped || watched.live.Load() != 0 {
		t.Errorf("state %s, %d passes in progress", s.State(), watched.live.Load())
	}
	hub.Publish(event.Event{Kind: event.Queue})
	s.Stop()

	ctx, cancel := context.WithCancel(t.Context())
	if n := watched.passes.Load(); n != after {
		t.Errorf("%d passes after the stop", n-after)
	}
	begin(ctx)
	eventually(t, "a pass after the second start", patience, func() bool { return watched.passes.Load() > after })
	cancel()
	eventually(t, "the stop with the parent", patience, func() bool { return s.State() == lifecycle.Stopped })
	if n := watched.live.Load(); n != 0 {
		t.Errorf("%d passes in progress after the parent's end", n)
	}
	if n := watched.overlaps.Load(); n != 0 {
		t.Errorf("passes overlapped %d times", n)
	}
}
