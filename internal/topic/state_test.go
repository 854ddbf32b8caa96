package topic

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// dial is a number that is read.
type dial struct {
	mu    sync.Mutex
	n     int
	reads int
	look  chan struct{}
	fail  error
	slow  time.Duration
}

func (d *dial) set(n int) {
	d.mu.Lock()
	d.n = n
	d.mu.Unlock()
	select {
	case d.look <- struct{}{}:
	default:
	}
}

// last is a number that never changes again.
const last = 99

func newDial() *dial { return &dial{look: make(chan struct{}, 1)} }

func (d *dial) watch(ctx context.Context, t *Topics) *StateFollower[int] {
	return Join(ctx, t, d, func() *State[int] {
		return NewState(StateOptions[int]{
			Look: func(context.Context) <-chan struct{} { return d.look }, Beat: 5 * time.Second,
			Read: func(context.Context) (*int, error) {
				d.mu.Lock()
				d.reads++
				n, slow, err := d.n, d.slow, d.fail
				d.fail = nil
				d.mu.Unlock()
				time.Sleep(slow)
				return &n, err
			},
			Same: func(a, b *int) bool { return *a == *b }, Last: func(n *int) bool { return *n == last },
			Told: func(err error) bool { return errors.Is(err, errTold) }, Failed: func(context.Context, error) {},
		})
	}).Follow()
}

func TestAStateIsReadOnceForAll(t *testing.T) {
	for _, watchers := range []int{1, 50} {
		synctest.Test(t, func(t *testing.T) {
			d, topics := newDial(), &Topics{}
			var all sync.WaitGroup
			var followers []*StateFollower[int]
			for range watchers {
				followers = append(followers, d.watch(t.Context(), topics))
			}
			for _, f := range followers {
				all.Go(func() {
					for want := range 3 {
						if r, err := f.Next(t.Context()); err != nil || *r.State != want {
							t.Errorf("got %v, %v, want %d", r, err, want)
						}
					}
				})
			}
			for n := range 2 {
				synctest.Wait()
				d.set(n + 1)
			}
			all.Wait()
			if d.reads != 3 {
				t.Errorf("%d watchers took %d readings, want 3", watchers, d.reads)
			}
		})
	}
}

func TestTheFirstStateIsReadAfterTheWatchBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, topics := newDial(), &Topics{}
		d.slow = time.Second
		first := d.watch(t.Context(), topics)
		go func() { _, _ = first.Next(t.Context()) }()
		synctest.Wait() // a reading is under way, which has seen 0
		d.mu.Lock()
		d.n = 1
		d.mu.Unlock()
		second := d.watch(t.Context(), topics)
		if r, err := second.Next(t.Context()); err != nil || *r.State != 1 {
			t.Errorf("who began to watch after the change is given %v, %v", r, err)
		}
		third := d.watch(t.Context(), topics)
		if r, err := third.Next(t.Context()); err != nil || *r.State != 1 || d.reads != 3 {
			t.Errorf("given %v, %v after %d readings, want 3", r, err, d.reads)
		}
	})
}

func TestASlowWatcherIsGivenTheNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, topics := newDial(), &Topics{}
		f := d.watch(t.Context(), topics)
		next := func(want int) {
			t.Helper()
			if r, err := f.Next(t.Context()); err != nil || *r.State != want {
				t.Errorf("given %v, %v, want %d", r, err, want)
			}
		}
		look := func(n int) {
			d.set(n)
			synctest.Wait()
		}
		next(0)
		look(1)
		look(2)
		next(2)
		look(3)
		look(2) // it is again as the watcher saw it
		look(4)
		next(4)
		look(3)
		look(4)
		go d.set(last)
		next(last)
		if _, err := f.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("after the last came %v", err)
		}
	})
}

func TestAStateThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, topics := newDial(), &Topics{}
		d.fail = errors.New("connection lost")
		f, begun := d.watch(t.Context(), topics), time.Now()
		if r, err := f.Next(t.Context()); err != nil || *r.State != 0 || time.Since(begun) != 5*time.Second {
			t.Errorf("given %v, %v after %v", r, err, time.Since(begun))
		}
		d.fail = errTold
		d.set(1)
		if _, err := f.Next(t.Context()); !errors.Is(err, errTold) {
			t.Errorf("the stream ended with %v", err)
		}
		synctest.Wait()
		if r, err := d.watch(t.Context(), topics).Next(t.Context()); err != nil || *r.State != 1 {
			t.Errorf("a new watcher is given %v, %v", r, err)
		}
	})
}

func TestATextIsWrittenOnceForAllWithItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Shared
		var all sync.WaitGroup
		var mu sync.Mutex
		wrote, same := 0, 0
		for range 100 {
			all.Go(func() {
				text, _ := s.Text(t.Context(), Key{1}, func() []byte {
					mu.Lock()
					wrote++
					mu.Unlock()
					time.Sleep(time.Second)
					return []byte("text")
				})
				mu.Lock()
				defer mu.Unlock()
				if string(text) == "text" {
					same++
				}
			})
		}
		all.Wait()
		if wrote != 1 || same != 100 {
			t.Errorf("written %d times, %d got it", wrote, same)
		}
		if text, mine := s.Text(t.Context(), Key{2}, func() []byte { return nil }); text != nil || !mine {
			t.Errorf("a text that cannot be shared: %q, %t", text, mine)
		}
		if text, mine := s.Text(t.Context(), Key{2}, func() []byte { return []byte("x") }); text != nil || mine {
			t.Errorf("the next one with that key: %q, %t", text, mine)
		}
		for i := range byte(mostWays) {
			s.Text(t.Context(), Key{3, i}, func() []byte { return []byte("x") })
		}
		if n := len(s.ways); n != mostWays {
			t.Errorf("%d ways are kept", n)
		}
	})
}
