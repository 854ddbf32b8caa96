package worker

import (
	"context"
	"time"

	"rouse.dev/rouse/internal/postgres"
)

const (
	firstPause = 20 * time.Millisecond
	longPause  = time.Second
	// tryLimit bounds one try of a write.
	tryLimit = 15 * time.Second
)

// persist repeats a write while the database is away or busy, until ctx ends. It returns the last error.
func persist(ctx context.Context, write func(context.Context) error) error {
	for wait := firstPause; ; wait = min(2*wait, longPause) {
		err := func() error {
			try, cancel := context.WithTimeout(ctx, tryLimit)
			defer cancel()
			return write(try)
		}()
		if err == nil || !postgres.MayPass(err) || ctx.Err() != nil {
			return err
		}
		pause(ctx, wait)
	}
}

// pause waits for d, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
