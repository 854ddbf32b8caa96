// Package lifecycletest holds the one stress test that every part with a Start and a Stop passes (C111). Tests only.
package lifecycletest

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Service is a part that can be started and stopped.
type Service interface {
	Start(context.Context) error
	Stop()
}

// patience is how long any single call may take before the part counts as stuck.
const patience = 30 * time.Second

// Stress starts and stops a service in every way that a server or a careless caller may: stopped before it was started,
// twice, from many goroutines at once, by its parent's context, and again after all of that. idle is asked, after each
// stop, to fail the test if anything of the service still runs; it may be nil.
func Stress(t *testing.T, service Service, idle func(*testing.T)) {
	t.Helper()
	if idle == nil {
		idle = func(*testing.T) {}
	}
	steps := []struct {
		name string
		do   func(*testing.T, Service)
	}{
		{"a stop before any start does nothing", func(t *testing.T, s Service) { stop(t, s) }},
		{"a stop right after the start ends it", func(t *testing.T, s Service) { start(t, s, t.Context()); stop(t, s) }},
		{"a second start does nothing", func(t *testing.T, s Service) { start(t, s, t.Context()); start(t, s, t.Context()); stop(t, s) }},
		{"a second stop does nothing", func(t *testing.T, s Service) { start(t, s, t.Context()); stop(t, s); stop(t, s) }},
		{"many stops at once are one stop", manyStops},
		{"the end of the parent is a stop", parentEnds},
		{"a parent that ended before the start starts nothing that lasts", endedParent},
		{"starts and stops from many goroutines end stopped", storm},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.do(t, service)
			idle(t)
		})
	}
}

func manyStops(t *testing.T, s Service) {
	start(t, s, t.Context())
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { stop(t, s) })
	}
	all.Wait()
}

func parentEnds(t *testing.T, s Service) {
	ctx, cancel := context.WithCancel(t.Context())
	start(t, s, ctx)
	cancel()
	stop(t, s)
}

func endedParent(t *testing.T, s Service) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	start(t, s, ctx)
	stop(t, s)
}

func storm(t *testing.T, s Service) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 10 {
				if i%2 == 0 {
					start(t, s, t.Context())
				} else {
					stop(t, s)
				}
			}
		})
	}
	all.Wait()
	stop(t, s)
}

func start(t *testing.T, s Service, ctx context.Context) {
	within(t, "Start", func() {
		if err := s.Start(ctx); err != nil {
			t.Errorf("Start: %v", err)
		}
	})
}

func stop(t *testing.T, s Service) { within(t, "Stop", s.Stop) }

// within reports a call that hangs, without waiting for the test binary's own limit.
func within(t *testing.T, name string, call func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Errorf("%s did not return within %s", name, patience)
	}
}
