package share

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestEachHasPlacesOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEach(2)
		took := make(chan func(), 10)
		take := func(ctx context.Context, key string) error {
			free, err := e.Take(ctx, key)
			if err == nil {
				took <- free
			}
			return err
		}
		for range 2 {
			if err := take(t.Context(), "greedy"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		gone, third := make(chan error, 1), make(chan error, 1)
		go func() { gone <- take(ctx, "greedy") }()
		synctest.Wait()
		go func() { third <- take(t.Context(), "greedy") }()
		synctest.Wait()
		if len(took) != 2 {
			t.Error("more than its places are taken")
		}
		if err := take(t.Context(), "modest"); err != nil || len(took) != 3 {
			t.Errorf("another has no place: %v", err)
		}
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who went away: %v", err)
		}
		(<-took)()
		if err := <-third; err != nil {
			t.Errorf("nobody gets the place that is free: %v", err)
		}
		for len(took) > 0 {
			(<-took)()
		}
		if len(e.places) != 0 {
			t.Errorf("%d keys are remembered", len(e.places))
		}
	})
}
