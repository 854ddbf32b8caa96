package scheduler

import (
	"context"
	"log/slog"
	"time"

	"rouse.dev/rouse/internal/store"
)

// repairer lets the store put right what no transaction should have left behind (docs/queue.md rule 6).
type repairer struct {
	store interface {
		Repair(ctx context.Context) (store.Repairs, error)
	}
	log *slog.Logger
}

func (r *repairer) runOnce(ctx context.Context, _ <-chan struct{}) (time.Duration, error) {
	var problems failures
	done, err := r.store.Repair(ctx)
	problems.add(err)
	if done != (store.Repairs{}) {
		r.log.Warn("queue repaired", "heads", done.Heads, "running", done.Running, "workspaces", done.Workspaces, "scopes", done.Scopes, "leases", done.Leases, "holds", done.Holds,
			"checkouts", done.Checkouts, "blocked", done.Blocked, "offers", done.Offers)
	}
	return 0, problems.err()
}
