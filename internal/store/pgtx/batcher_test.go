package pgtx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errOdd = errors.New("odd")

// crew asks a batcher whose batches last until the test lets them end.
type crew struct {
	*Batcher[int]
	batches [][]int
	begun   chan struct{} // a batch has begun
	end     chan struct{} // and may end
	answers map[int]error
	mu      sync.Mutex
	wg      sync.WaitGroup
}

func newCrew(most int, do func(ctx context.Context, batch []int) []error) *crew {
	c := &crew{begun: make(chan struct{}, 100), end: make(chan struct{}), answers: map[int]error{}}
	c.Batcher = &Batcher[int]{Turn: NewTurn(), Most: most, Patience: time.Minute, Do: func(ctx context.Context, batch []int) []error {
		c.batches = append(c.batches, batch)
		c.begun <- struct{}{}
		<-c.end
		return do(ctx, batch)
	}}
	return c
}

// ask lets calls wait, in this order.
func (c *crew) ask(ctx context.Context, numbers ...int) {
	for _, n := range numbers {
		c.wg.Go(func() {
			err := c.Ask(ctx, n)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.answers[n] = err
		})
		synctest.Wait()
	}
}

func oddOnesFail(_ context.Context, batch []int) []error {
	results := make([]error, len(batch))
	for i, n := range batch {
		if n%2 == 1 {
			results[i] = errOdd
		}
	}
	return results
}

func TestABatcher(t *testing.T) {
	for _, c := range []struct {
		name string
		most int
		run  func(c *crew)
		want string
	}{
		{"does a call that comes alone at once", 4, func(c *crew) { c.ask(context.Background(), 2); c.end <- struct{}{} }, "[[2]] map[2:<nil>]"},
		{"gathers what comes while a batch is done, in its order", 4, func(c *crew) {
			c.ask(context.Background(), 2, 4, 3, 6)
			c.end <- struct{}{}
			<-c.begun
			c.end <- struct{}{}
		}, "[[2] [4 3 6]] map[2:<nil> 3:odd 4:<nil> 6:<nil>]"},
		{"takes no more than the most, and the rest goes next", 2, func(c *crew) {
			c.ask(context.Background(), 2, 4, 6, 8)
			for range 3 {
				c.end <- struct{}{}
			}
		}, "[[2] [4 6] [8]] map[2:<nil> 4:<nil> 6:<nil> 8:<nil>]"},
		{"leaves out a call whose context ends while it waits", 4, func(c *crew) {
			ctx, cancel := context.WithCancel(context.Background())
			c.ask(context.Background(), 2)
			c.ask(ctx, 4)
			c.ask(context.Background(), 6)
			cancel()
			synctest.Wait()
			c.end <- struct{}{}
			c.end <- struct{}{}
		}, "[[2] [6]] map[2:<nil> 4:context canceled 6:<nil>]"},
		{"waits for a call that is being done when its context ends", 4, func(c *crew) {
			ctx, cancel := context.WithCancel(context.Background())
			c.ask(context.Background(), 2)
			c.ask(ctx, 4)
			c.ask(context.Background(), 6)
			c.end <- struct{}{}
			synctest.Wait()
			cancel()
			synctest.Wait()
			c.end <- struct{}{}
		}, "[[2] [4 6]] map[2:<nil> 4:<nil> 6:<nil>]"},
		{"waits for calls that a test gathers", 4, func(c *crew) {
			c.Gather(3)
			c.ask(context.Background(), 2, 4)
			if len(c.begun) > 0 {
				panic("it did not wait")
			}
			c.ask(context.Background(), 6)
			c.end <- struct{}{}
		}, "[[2 4 6]] map[2:<nil> 4:<nil> 6:<nil>]"},
		{"gives a leader up that waits for the turn in vain, and another one leads", 4, func(c *crew) {
			ctx, cancel := context.WithCancel(context.Background())
			if err := c.Turn.Take(ctx); err != nil {
				panic(err)
			}
			c.ask(ctx, 2)
			c.ask(context.Background(), 4)
			cancel()
			synctest.Wait()
			c.Turn.Give()
			c.end <- struct{}{}
		}, "[[4]] map[2:context canceled 4:<nil>]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(c.most, oddOnesFail)
				c.run(crew)
				crew.wg.Wait()
				if got := fmt.Sprint(crew.batches, crew.answers); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestABatchOfSeveralOutlivesItsLeadersContextAndNotItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(4, func(ctx context.Context, batch []int) []error {
			if len(batch) > 1 {
				<-ctx.Done()
			}
			return slices.Repeat([]error{ctx.Err()}, len(batch))
		})
		ctx, cancel := context.WithCancel(t.Context())
		c.ask(ctx, 1)
		c.ask(ctx, 2, 3)
		c.end <- struct{}{}
		c.end <- struct{}{}
		cancel()
		began := time.Now()
		c.wg.Wait()
		if took := time.Since(began); took != time.Minute || !errors.Is(c.answers[2], context.DeadlineExceeded) || !errors.Is(c.answers[3], context.DeadlineExceeded) {
			t.Errorf("after %s: %v", took, c.answers)
		}
	})
}

func TestABatchThatPanicsFailsForAllAndStopsNobodyAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(4, func(_ context.Context, batch []int) []error {
			if slices.Contains(batch, 13) {
				panic("13")
			}
			return make([]error, len(batch))
		})
		c.ask(t.Context(), 1)
		c.wg.Go(func() {
			defer func() {
				if recover() == nil {
					t.Error("the leader did not panic")
				}
			}()
			_ = c.Ask(t.Context(), 13)
		})
		synctest.Wait()
		c.ask(t.Context(), 2)
		c.end <- struct{}{}
		c.end <- struct{}{}
		synctest.Wait()
		c.ask(t.Context(), 3)
		c.end <- struct{}{}
		c.wg.Wait()
		if c.answers[1] != nil || !errors.Is(c.answers[2], errNotDone) || c.answers[3] != nil {
			t.Error(c.answers)
		}
	})
}

// Whoever asks is answered once with what came of his own call, whichever contexts end meanwhile; and no two batches are
// done at a time.
func TestCallsOfABatcherFromManySidesAreEachDoneOnceOrNot(t *testing.T) {
	var busy, done atomic.Int64
	b := &Batcher[*atomic.Int64]{Turn: NewTurn(), Most: 8, Patience: time.Minute, Do: func(_ context.Context, batch []*atomic.Int64) []error {
		if busy.Add(1) > 1 {
			t.Error("two batches at a time")
		}
		defer busy.Add(-1)
		results := make([]error, len(batch))
		for i, n := range batch {
			if n.Add(1)%3 == 0 {
				results[i] = errOdd
			}
			done.Add(1)
		}
		return results
	}}
	var asked atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			var mine atomic.Int64
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if (i+n)%5 == 0 {
					go cancel()
				}
				before := mine.Load()
				err := b.Ask(ctx, &mine)
				cancel()
				after := mine.Load()
				switch {
				case errors.Is(err, context.Canceled):
					if after != before {
						t.Errorf("a call that was given up was done")
					}
					continue
				case after != before+1 || errors.Is(err, errOdd) != (after%3 == 0):
					t.Errorf("done %d times: %v", after-before, err)
				}
				asked.Add(1)
			}
		})
	}
	wg.Wait()
	if asked.Load() != done.Load() {
		t.Errorf("%d calls, %d done", asked.Load(), done.Load())
	}
}
