package pgtx

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Batcher lets calls share transactions. What comes while a batch is being committed joins the next one; a call that comes
// alone is done at once. So nobody waits for a timer, and a batch is as large as the database is slow.
//
// One of the calls that wait leads: it takes the turn, does all that wait by then, and tells each what came of it.
type Batcher[T any] struct {
	Turn     Turn
	Most     int                                          // calls of one batch
	Patience time.Duration                                // bounds a batch of several, which does not end with the leader's context
	Do       func(ctx context.Context, batch []T) []error // what came of each, in the order of the batch

	mu       sync.Mutex
	waiting  []*call[T] // the first leads
	gather   int        // the next batch waits for so many calls; 0: for none
	gathered chan struct{}
}

// call is one that waits, or is being done.
type call[T any] struct {
	what T
	lead chan struct{} // closed when it leads
	done chan error    // what came of it, when another one led
}

// errNotDone is told to the calls of a batch whose leader panicked.
var errNotDone = errors.New("the transaction that it was to share broke off")

// Ask does what together with what others ask for at the same time, and returns what came of it. When ctx ends, a call that
// still waits is not done; one that is being done is waited for.
func (b *Batcher[T]) Ask(ctx context.Context, what T) error {
	c := b.join(what)
	select {
	case err := <-c.done:
		return err
	case <-c.lead:
		return b.lead(ctx, c)
	case <-ctx.Done():
	}
	if b.leave(c) {
		return ctx.Err()
	}
	return <-c.done
}

// Gather lets the next batch wait for n calls, so that a test knows what shares a transaction.
func (b *Batcher[T]) Gather(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gather, b.gathered = n, make(chan struct{})
}

func (b *Batcher[T]) join(what T) *call[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &call[T]{what: what, lead: make(chan struct{}), done: make(chan error, 1)}
	b.waiting = append(b.waiting, c)
	b.follow(len(b.waiting) == 1)
	if b.gather > 0 && len(b.waiting) >= b.gather {
		b.gather = 0
		close(b.gathered)
	}
	return c
}

// leave takes c out; false when it waits no more.
func (b *Batcher[T]) leave(c *call[T]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, c)
	if i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.follow(i == 0)
	}
	return i >= 0
}

// take is the batch of the leader, which is the first of those that wait.
func (b *Batcher[T]) take() []*call[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), b.Most)
	batch := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.follow(true)
	return batch
}

// follow makes the first of those that wait lead, if it is new there. It is called with mu held.
func (b *Batcher[T]) follow(isNew bool) {
	if isNew && len(b.waiting) > 0 {
		close(b.waiting[0].lead)
	}
}

// lead does c and all that wait when the turn comes.
func (b *Batcher[T]) lead(ctx context.Context, c *call[T]) error {
	err := b.await(ctx)
	if err == nil {
		err = b.Turn.Take(ctx)
	}
	if err != nil {
		b.leave(c)
		return err
	}
	defer b.Turn.Give()
	runtime.Gosched() // whoever can run already joins: those whom one commit lets go on often ask for the next thing all at once
	return b.do(ctx, b.take())
}

// await waits for the calls that Gather asked for.
func (b *Batcher[T]) await(ctx context.Context) error {
	b.mu.Lock()
	gathered := b.gathered
	b.mu.Unlock()
	if gathered == nil {
		return nil
	}
	select {
	case <-gathered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do does a batch, tells the others what came of them, and returns what came of the first. They are told before the turn is
// given back, and also when Do panics.
func (b *Batcher[T]) do(ctx context.Context, batch []*call[T]) error {
	what, results := make([]T, len(batch)), make([]error, len(batch))
	for i, c := range batch {
		what[i], results[i] = c.what, errNotDone
	}
	defer func() {
		for i, c := range batch[1:] {
			c.done <- results[i+1]
		}
	}()
	if len(batch) > 1 {
		together, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.Patience)
		defer cancel()
		ctx = together
	}
	copy(results, b.Do(ctx, what))
	return results[0]
}
