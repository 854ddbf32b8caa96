package scheduler

import (
	"context"
	"time"
)

// tallier counts the ended runs of minutes that are settled, step by step, until none is left or the pass has used its
// time.
type tallier struct {
	store interface {
		TallyShapes(ctx context.Context) (more bool, err error)
	}
}

func (t *tallier) runOnce(ctx context.Context, enough <-chan struct{}) (time.Duration, error) {
	for !closed(enough) {
		if more, err := t.store.TallyShapes(ctx); err != nil || !more {
			return 0, err
		}
	}
	return 0, nil
}
