// Package pause waits, as long as somebody still wants what comes after.
package pause

import (
	"context"
	"time"
)

// For waits for d, or less when ctx ends, and says whether ctx goes on.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
