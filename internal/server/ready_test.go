package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A probe costs a round trip to the database, and anybody may send one.
func TestProbesShareOneLookAtTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		let := make(chan error)
		s := &shared{ask: func(context.Context) error { asked.Add(1); return <-let }}
		var all sync.WaitGroup
		want := errors.New("the database does not answer")
		for range 100 {
			all.Go(func() {
				if err := s.get(t.Context()); !errors.Is(err, want) {
					t.Errorf("%v", err)
				}
			})
		}
		gone, leave := context.WithCancel(t.Context())
		all.Go(func() {
			if err := s.get(gone); !errors.Is(err, context.Canceled) {
				t.Errorf("who goes away waits on: %v", err)
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		let <- want
		all.Wait()
		if err := s.get(t.Context()); !errors.Is(err, want) || asked.Load() != 1 {
			t.Errorf("asked %d times, then %v", asked.Load(), err)
		}
		time.Sleep(readyFor)
		go func() { let <- nil }()
		if err := s.get(t.Context()); err != nil || asked.Load() != 2 {
			t.Errorf("asked %d times, then %v", asked.Load(), err)
		}
	})
}
