package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
)

// A process that stood still misses renewals just as one whose database is away: the cause is not known, so none is named.
func TestALeaseThatIsNotRenewedIsAllThatIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempt(t.Context(), store.Claimed{}, time.Minute)
		defer a.release()
		time.Sleep(fenceAfter(time.Minute) - time.Second)
		if a.ctx.Err() != nil {
			t.Fatal("ended early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		stop, ok := errors.AsType[*executor.Stop](context.Cause(a.ctx))
		if !ok || stop.Reason.Error() != "the lease could not be renewed in time" {
			t.Errorf("%v", context.Cause(a.ctx))
		}
	})
}
