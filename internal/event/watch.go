package event

import (
	"context"
	"sync"

	"rouse.dev/rouse/internal/xid"
)

// watchers are those who want to be told, by what they look at. The zero value is ready.
type watchers struct {
	mu   sync.Mutex
	of   map[topic]map[chan struct{}]struct{}
	open int
}

// topic is what a watcher looks at: one run, or whether it is cancelled; one workspace's feed, or its offers to workers; or the queue when
// id is empty.
type topic struct {
	id      xid.ID
	offers  bool
	cancels bool
}

// watch adds a watcher until ctx ends; its channel is closed then.
func (w *watchers) watch(ctx context.Context, t topic) <-chan struct{} {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = make(map[topic]map[chan struct{}]struct{})
	}
	if w.of[t] == nil {
		w.of[t] = make(map[chan struct{}]struct{})
	}
	w.of[t][c] = struct{}{}
	w.open++
	context.AfterFunc(ctx, func() { w.remove(t, c) })
	return c
}

func (w *watchers) remove(t topic, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of[t], c)
	if len(w.of[t]) == 0 {
		delete(w.of, t)
	}
	w.open--
	close(c)
}

// tell wakes the watchers of the signals, or everybody. A watcher that was woken and has not looked yet needs no more.
func (w *watchers) tell(s signals) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.all {
		for _, set := range w.of {
			wake(set)
		}
		return
	}
	for one := range s.set {
		switch one.kind {
		case Queue:
			wake(w.of[topic{}])
		case Run, Log, Activity:
			wake(w.of[topic{id: one.id}])
		case Offer:
			wake(w.of[topic{id: one.id, offers: true}])
		case Cancel:
			wake(w.of[topic{id: one.id, cancels: true}])
		}
	}
}

func wake(set map[chan struct{}]struct{}) {
	for c := range set {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
