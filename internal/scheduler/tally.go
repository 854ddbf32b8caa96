package scheduler

import (
	"context"
	"time"
)

// tallier counts the ended runs of minutes and adds up the costs of hours that are settled, step by step, until none is left or
// the pass has used its time.
type tallier struct {
	store interface {
		TallyShapes(ctx context.Context) (more bool, err error)
		TallyCosts(ctx context.Context) (more bool, err error)
	}
}

func (t *tallier) runOnce(ctx context.Context, enough <-chan struct{}) (time.Duration, error) {
	var problems failures
	for _, step := range []func(context.Context) (bool, error){t.store.TallyShapes, t.store.TallyCosts} {
		for more := true; more && !closed(enough); {
			var err error
			more, err = step(ctx)
			problems.add(err)
		}
	}
	return 0, problems.err()
}
