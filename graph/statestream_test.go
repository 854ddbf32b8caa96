package graph

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/xid"
)

func TestAReaderThatIsSlowGetsTheNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		now := 0
		numbers := state[int]{
			read: func(context.Context, xid.ID) (*int, error) { return new(now), nil },
			same: func(a, b *int) bool { return a != nil && *a == *b },
		}
		beats, out, done := make(chan time.Time), make(chan *int), make(chan error)
		go func() { done <- numbers.send(ctx, nil, "", beats, out) }()
		look := func(n int) {
			now = n
			beats <- time.Time{}
			synctest.Wait()
		}
		nothing := func() {
			t.Helper()
			synctest.Wait()
			select {
			case got := <-out:
				t.Errorf("got %d, and nothing was new", *got)
			default:
			}
		}
		synctest.Wait()
		look(1)
		look(2)
		if got := <-out; *got != 2 {
			t.Errorf("after 0, 1 and 2 the reader gets %d", *got)
		}
		nothing()
		look(3)
		look(2)
		nothing() // it is again as the reader saw it
		look(4)
		if got := <-out; *got != 4 {
			t.Errorf("got %d, want 4", *got)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}
