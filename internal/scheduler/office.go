package scheduler

import (
	"context"
	"log/slog"
	"time"

	"rouse.dev/rouse/internal/store"
)

// budgetSweep begins new periods of budgets and lets agents go on that no budget holds any more (SPEC S6.3, S6.5).
type budgetSweep struct {
	store interface {
		SweepBudgets(ctx context.Context) (resumed int, err error)
	}
	log *slog.Logger
}

func (b *budgetSweep) runOnce(ctx context.Context, _ <-chan struct{}) (time.Duration, error) {
	var problems failures
	resumed, err := b.store.SweepBudgets(ctx)
	problems.add(err)
	if resumed > 0 {
		b.log.Info("agents resumed that a budget had held", "agents", resumed)
	}
	return 0, problems.err()
}

// recovery wakes the assignees of unstarted office tasks (SPEC S8.5).
type recovery struct {
	store interface {
		Recover(ctx context.Context) ([]store.Recovered, error)
	}
	log *slog.Logger
}

func (r *recovery) runOnce(ctx context.Context, _ <-chan struct{}) (time.Duration, error) {
	var problems failures
	done, err := r.store.Recover(ctx)
	problems.add(err)
	if len(done) > 0 {
		r.log.Info("recovery sweep complete", "dispatched_count", len(done))
	}
	return 0, problems.err()
}
