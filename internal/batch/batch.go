// Package batch looks keys up together. A caller that asks while others are looked up waits for the next round. One
// call serves all callers that wait, so any number of callers costs one call at a time.
package batch

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Lookup finds values by their keys, in rounds.
type Lookup[V any] struct {
	find  func(ctx context.Context, keys []string) (map[string]V, error)
	most  int
	limit time.Duration

	mu      sync.Mutex
	waiting map[string]*ask[V]
	order   []*ask[V] // of waiting, the first to come first; those that nobody waits for any more have waiters 0
	running bool
}

// ask is a key that somebody waits for.
type ask[V any] struct {
	key     string
	waiters int
	done    chan struct{}
	value   V
	found   bool
	err     error
}

// New makes a Lookup over find, which gets at most most keys, each once, and has limit for a round. Keys that it leaves out
// are not there.
func New[V any](most int, limit time.Duration, find func(ctx context.Context, keys []string) (map[string]V, error)) *Lookup[V] {
	return &Lookup[V]{find: find, most: most, limit: limit, waiting: map[string]*ask[V]{}}
}

// Find looks a key up in the next round. What it returns was read after the call began.
func (l *Lookup[V]) Find(ctx context.Context, key string) (value V, found bool, err error) {
	a := l.enter(key)
	select {
	case <-a.done:
		return a.value, a.found, a.err
	case <-ctx.Done():
		l.leave(a)
		return value, false, ctx.Err()
	}
}

func (l *Lookup[V]) enter(key string) *ask[V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.waiting[key]
	if a == nil {
		a = &ask[V]{key: key, done: make(chan struct{})}
		l.waiting[key] = a
		l.order = append(l.order, a)
	}
	a.waiters++
	if !l.running {
		l.running = true
		go l.run()
	}
	return a
}

// leave takes a caller out that waits no longer. The last one takes the key along, if its round has not begun.
func (l *Lookup[V]) leave(a *ask[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.waiters--; a.waiters == 0 && l.waiting[a.key] == a {
		delete(l.waiting, a.key)
	}
}

// run does round after round until nobody waits.
func (l *Lookup[V]) run() {
	runtime.Gosched() // those that are ready to ask join the first round
	for {
		asks := l.take()
		if len(asks) == 0 {
			return
		}
		l.answer(asks)
	}
}

// take takes the asks of the next round out, oldest first; none: nobody waits, and the rounds are over.
func (l *Lookup[V]) take() []*ask[V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	var asks []*ask[V]
	taken := 0
	for ; taken < len(l.order) && len(asks) < l.most; taken++ {
		if a := l.order[taken]; a.waiters > 0 {
			asks = append(asks, a)
			delete(l.waiting, a.key)
		}
	}
	l.order = append([]*ask[V](nil), l.order[taken:]...)
	l.running = len(asks) > 0
	return asks
}

func (l *Lookup[V]) answer(asks []*ask[V]) {
	keys := make([]string, len(asks))
	for i, a := range asks {
		keys[i] = a.key
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.limit)
	defer cancel()
	values, err := l.find(ctx, keys)
	for _, a := range asks {
		a.value, a.found = values[a.key]
		a.err = err
		close(a.done)
	}
}
