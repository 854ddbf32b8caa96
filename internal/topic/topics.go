// Package topic lets all who watch the same thing share one reader of the database, and what was written of each item
// for those who ask alike. A topic is read for as long as somebody watches it. It keeps a bounded part of what it read;
// who is behind that reads for itself until it has caught up, and holds up nobody.
package topic

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Topics are the topics that somebody watches. The zero value is ready.
type Topics struct {
	mu   sync.Mutex
	open map[any]*host
}

// host is a topic at work.
type host struct {
	topic   runner
	cancel  context.CancelFunc
	members int
}

// runner is a topic: it reads until it is over or nobody watches it.
type runner interface {
	run(ctx context.Context)
	// broke ends the topic for its watchers.
	broke(err error)
}

// Join gives the topic with this key to a watcher, until ctx ends. The first watcher makes it and starts its reader.
// When the topic is over, the next watcher makes a new one.
func Join[T runner](ctx context.Context, t *Topics, key any, make func() T) T {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.open[key]
	if h == nil {
		h = t.start(key, make())
	}
	h.members++
	context.AfterFunc(ctx, func() { t.leave(key, h) })
	return h.topic.(T)
}

// start makes a topic known and reads for it. Its reader belongs to no watcher, so it has a context of its own, which
// ends with the last of them. t.mu is held.
func (t *Topics) start(key any, topic runner) *host {
	ctx, cancel := context.WithCancel(context.Background())
	h := &host{topic: topic, cancel: cancel}
	if t.open == nil {
		t.open = map[any]*host{}
	}
	t.open[key] = h
	go func() {
		defer cancel()
		defer t.retire(key, h)
		defer func() {
			if p := recover(); p != nil {
				topic.broke(fmt.Errorf("panic in the reader of a stream: %v\n%s", p, debug.Stack()))
			}
		}()
		topic.run(ctx)
	}()
	return h
}

// retire lets nobody join a topic that is over.
func (t *Topics) retire(key any, h *host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[key] == h {
		delete(t.open, key)
	}
}

func (t *Topics) leave(key any, h *host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.members--; h.members > 0 {
		return
	}
	h.cancel()
	if t.open[key] == h {
		delete(t.open, key)
	}
}

// Open is how many topics are watched.
func (t *Topics) Open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}
