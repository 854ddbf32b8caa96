package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// table finds keys that begin with "known", one round at a time, each when it is let go.
type table struct {
	mu     sync.Mutex
	rounds [][]string
	let    chan error
}

func (b *table) find(ctx context.Context, keys []string) (map[string]string, error) {
	b.mu.Lock()
	b.rounds = append(b.rounds, slices.Clone(keys))
	b.mu.Unlock()
	select {
	case err := <-b.let:
		return map[string]string{"known": "value"}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestManyWhoAskCostOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &table{let: make(chan error)}
		l := New(100, time.Second, b.find)
		var all sync.WaitGroup
		ask := func(key string, want bool) {
			all.Go(func() {
				if _, found, err := l.Find(t.Context(), key); err != nil || found != want {
					t.Errorf("%s: found %t, %v", key, found, err)
				}
			})
			synctest.Wait()
		}
		ask("first", false)
		for i := range 150 {
			ask(fmt.Sprint("stranger ", i), false)
		}
		ask("known", true)
		ask("known", true)
		for range 3 {
			b.let <- nil
			synctest.Wait()
		}
		all.Wait()
		if len(b.rounds) != 3 || len(b.rounds[0]) != 1 || len(b.rounds[1]) != 100 || len(b.rounds[2]) != 51 || b.rounds[2][50] != "known" {
			t.Errorf("the rounds are %v", b.rounds)
		}
	})
}

func TestWhoGoesAwayLeavesNothingToLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &table{let: make(chan error)}
		l := New(100, time.Second, b.find)
		gone, leave := context.WithCancel(t.Context())
		results := make(chan error, 4)
		for _, ask := range []struct {
			key string
			ctx context.Context
		}{{"first", t.Context()}, {"gone", gone}, {"shared", gone}, {"shared", t.Context()}} {
			go func() {
				_, _, err := l.Find(ask.ctx, ask.key)
				results <- err
			}()
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		for range 2 {
			b.let <- nil
			synctest.Wait()
		}
		left := 0
		for range 4 {
			if errors.Is(<-results, context.Canceled) {
				left++
			}
		}
		if left != 2 {
			t.Errorf("%d left, want 2", left)
		}
		if len(b.rounds) != 2 || !slices.Equal(b.rounds[1], []string{"shared"}) {
			t.Errorf("the rounds are %v", b.rounds)
		}
		if len(l.waiting) != 0 || len(l.order) != 0 || l.running {
			t.Errorf("it keeps %v %v, running %t", l.waiting, l.order, l.running)
		}
	})
}

func TestARoundThatFailsIsToldToAllOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &table{let: make(chan error, 1)}
		l := New(100, time.Second, b.find)
		b.let <- errors.New("no database")
		if _, found, err := l.Find(t.Context(), "known"); err == nil || found && err == nil {
			t.Error("no error")
		}
		if _, _, err := l.Find(t.Context(), "known"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a round without an end: %v", err)
		}
	})
}
