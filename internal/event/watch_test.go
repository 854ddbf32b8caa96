package event

import (
	"context"
	"testing"
	"testing/synctest"

	"rouse.dev/rouse/internal/xid"
)

// woken reports whether a signal is there, and takes it.
func woken(c <-chan struct{}) bool {
	select {
	case _, ok := <-c:
		return ok
	default:
		return false
	}
}

func TestWatchersAreToldAtOnceWhatTheyLookAt(t *testing.T) {
	h := New(HubOptions{})
	one, two, queue := h.WatchRun(t.Context(), "run_1"), h.WatchRun(t.Context(), "run_2"), h.WatchQueue(t.Context())
	tests := []struct {
		name            string
		events          []Event
		one, two, queue bool
	}{
		{"a run's own watcher", []Event{{Kind: Run, ID: "run_1"}}, true, false, false},
		{"its log is its watcher's too", []Event{{Kind: Log, ID: "run_2"}}, false, true, false},
		{"the queue, whatever the agent", []Event{{Kind: Queue, ID: "agt_1"}}, false, false, true},
		{"several at once", []Event{{Kind: Queue}, {Kind: Run, ID: "run_1"}, {Kind: Log, ID: "run_1"}}, true, false, true},
		{"nobody looks at that run", []Event{{Kind: Run, ID: "run_3"}}, false, false, false},
		{"a run without an id is not the queue", []Event{{Kind: Run}}, false, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h.Publish(tt.events...)
			if a, b, c := woken(one), woken(two), woken(queue); a != tt.one || b != tt.two || c != tt.queue {
				t.Errorf("woken: run_1 %t, run_2 %t, queue %t", a, b, c)
			}
		})
	}
}

func TestSignalsBeforeALookAreOne(t *testing.T) {
	h := New(HubOptions{})
	c := h.WatchRun(t.Context(), "run_1")
	for range 100 {
		h.Publish(Event{Kind: Run, ID: "run_1"})
	}
	if !woken(c) || woken(c) {
		t.Error("want exactly one signal")
	}
}

func TestAWatchEndsWithItsContextAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(HubOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		var all []<-chan struct{}
		for range 100 {
			all = append(all, h.WatchRun(ctx, xid.New("run")), h.WatchQueue(ctx))
		}
		cancel()
		for _, c := range all {
			if _, open := <-c; open {
				t.Fatal("a watch was woken by nothing")
			}
		}
		h.Publish(Event{Kind: Queue})
		h.watchers.mu.Lock()
		defer h.watchers.mu.Unlock()
		if h.watchers.open != 0 || len(h.watchers.of) != 0 {
			t.Errorf("%d watches and %d topics are left", h.watchers.open, len(h.watchers.of))
		}
	})
}

func TestAWatchWithAnEndedContextIsClosed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, open := <-New(HubOptions{}).WatchQueue(ctx); open {
		t.Error("the channel is open")
	}
}
