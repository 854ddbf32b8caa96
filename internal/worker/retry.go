package worker

import (
	"context"
	"time"

	"rouse.dev/rouse/internal/postgres"

	"rouse.dev/rouse/internal/pause"
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
		pause.For(ctx, wait)
	}
}
