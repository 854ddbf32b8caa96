package topic

import (
	"context"
	"io"
	"sync"
	"time"
)

// StateOptions says how a state is read.
type StateOptions[T any] struct {
	// Look gives signals to look again; nil: the beat alone makes the topic look.
	Look func(context.Context) <-chan struct{}
	Beat time.Duration // between looks, or the longest time without one where there are signals
	Read func(context.Context) (*T, error)
	// Same says whether nothing that is worth telling has changed between two readings; neither is nil.
	Same func(a, b *T) bool
	// Last says that a state never changes again; nil: each may.
	Last func(*T) bool
	// Told says of an error of Read that it ends the topic and is for its watchers; others are tried again.
	Told func(error) bool
	// Failed is told of each error that is tried again.
	Failed func(context.Context, error)
}

// Reading is a state as it was read once.
type Reading[T any] struct {
	State *T
	Shared
	number int
}

// State is a topic whose watchers get the newest state only.
type State[T any] struct {
	o    StateOptions[T]
	kick chan struct{} // capacity 1: somebody wants a reading

	mu      sync.Mutex
	begun   int // readings
	wanted  int // the number of a reading that somebody wants
	newest  *Reading[T]
	waiting bool // somebody waits for a reading, whether it says anything new or not
	over    bool
	err     error
	changed chan struct{} // closed at each change
}

// NewState makes a state, for Join.
func NewState[T any](o StateOptions[T]) *State[T] {
	return &State[T]{o: o, kick: make(chan struct{}, 1), changed: make(chan struct{})}
}

func (s *State[T]) run(ctx context.Context) {
	look := (<-chan struct{})(nil)
	if s.o.Look != nil {
		look = s.o.Look(ctx)
	}
	beat := time.NewTicker(s.o.Beat)
	defer beat.Stop()
	for {
		due := true
		select {
		case _, ok := <-look:
			if !ok {
				look = nil // no more signals; the beat goes on
			}
		case <-beat.C:
		case <-s.kick:
			due = s.due()
		case <-ctx.Done():
			return
		}
		if due && s.read(ctx) {
			return
		}
	}
}

// due says whether a reading that somebody wants has not begun.
func (s *State[T]) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun < s.wanted
}

// read reads once; over says that it was the last time.
func (s *State[T]) read(ctx context.Context) (over bool) {
	s.mu.Lock()
	s.begun++
	number := s.begun
	s.mu.Unlock()
	now, err := s.o.Read(ctx)
	switch {
	case err == nil:
		return s.publish(&Reading[T]{State: now, number: number})
	case ctx.Err() != nil:
	case s.o.Told(err):
		s.broke(err)
		return true
	default:
		s.o.Failed(ctx, err)
	}
	return false
}

// publish lets watchers see a reading, and wakes them if it says something new or one of them waits for any.
func (s *State[T]) publish(r *Reading[T]) (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.newest == nil || !s.o.Same(s.newest.State, r.State)
	s.newest = r
	s.over = s.o.Last != nil && s.o.Last(r.State)
	if fresh || s.waiting || s.over {
		s.waiting = false
		s.wake()
	}
	return s.over
}

// wake wakes the watchers. s.mu is held.
func (s *State[T]) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *State[T]) broke(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over, s.err = true, err
	s.wake()
}

// StateFollower is one watcher of a state. It is for one goroutine.
type StateFollower[T any] struct {
	state *State[T]
	from  int // the first reading that was begun after the watch
	sent  *T
}

// Follow watches the state. What it is given first was read after this call.
func (s *State[T]) Follow() *StateFollower[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &StateFollower[T]{state: s, from: s.begun + 1}
}

// Next waits for a state that the watcher has not been given, and gives the newest. Its error is io.EOF after the last
// one, or why the topic broke.
func (f *StateFollower[T]) Next(ctx context.Context) (*Reading[T], error) {
	for ctx.Err() == nil {
		r, changed, err := f.look()
		if r != nil || err != nil {
			return r, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

func (f *StateFollower[T]) look() (*Reading[T], <-chan struct{}, error) {
	s := f.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, nil, s.err
	}
	if r := s.newest; r != nil && (r.number >= f.from || s.over) && (f.sent == nil || !s.o.Same(f.sent, r.State)) {
		f.sent = r.State
		return r, nil, nil
	}
	if s.over {
		return nil, nil, io.EOF
	}
	if f.sent == nil {
		s.want(f.from)
	}
	return nil, s.changed, nil
}

// want asks for a reading and for its result, even if that says nothing new. s.mu is held.
func (s *State[T]) want(number int) {
	s.waiting, s.wanted = true, max(s.wanted, number)
	select {
	case s.kick <- struct{}{}:
	default:
	}
}
