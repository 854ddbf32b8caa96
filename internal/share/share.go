// Package share gives everybody a few places of their own, so that nobody takes them all.
package share

import (
	"context"
	"sync"
)

// Each has places for every key, the same number for each. Keys that nobody uses take no memory.
type Each struct {
	most int

	mu     sync.Mutex
	places map[string]*places
}

type places struct {
	taken chan struct{}
	users int // who have a place or wait for one
}

// NewEach gives each key so many places.
func NewEach(most int) *Each { return &Each{most: most, places: map[string]*places{}} }

// Take waits for a place of the key, or for ctx, whose error it returns then. free gives the place back; call it once.
func (e *Each) Take(ctx context.Context, key string) (free func(), err error) {
	own := e.enter(key)
	select {
	case own.taken <- struct{}{}:
	case <-ctx.Done():
		e.leave(key, own)
		return nil, ctx.Err()
	}
	return func() {
		<-own.taken
		e.leave(key, own)
	}, nil
}

func (e *Each) enter(key string) *places {
	e.mu.Lock()
	defer e.mu.Unlock()
	own := e.places[key]
	if own == nil {
		own = &places{taken: make(chan struct{}, e.most)}
		e.places[key] = own
	}
	own.users++
	return own
}

func (e *Each) leave(key string, own *places) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(e.places, key)
	}
}
