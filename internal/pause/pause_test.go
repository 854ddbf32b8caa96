package pause

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !For(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("a whole pause took %s", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if For(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("one whose context ended took %s", time.Since(began))
		}
		if For(ctx, 0) {
			t.Error("a pause goes on in a context that has ended")
		}
	})
}
