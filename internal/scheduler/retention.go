package scheduler

import (
	"context"
	"log/slog"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// pruner removes history that has become too old, batch by batch, until none is left or the pass has used its time.
type pruner struct {
	store interface {
		Prune(ctx context.Context, r domain.Retention) (removed domain.Removed, more bool, err error)
	}
	keep domain.Retention
	log  *slog.Logger
}

func (p *pruner) runOnce(ctx context.Context, enough <-chan struct{}) (time.Duration, error) {
	var total domain.Removed
	defer func() {
		if total != (domain.Removed{}) {
			p.log.Info("old history removed", "runs", total.Runs, "requests", total.Requests, "activities", total.Activities,
				"inbox_items", total.InboxItems, "webhook_deliveries", total.Deliveries, "notifications", total.Notifications, "notification_tests", total.NotificationTests, "routine_runs", total.RoutineRuns, "mutation_keys", total.MutationKeys)
		}
	}()
	var problems failures
	for more := true; more && !closed(enough); {
		removed, again, err := p.store.Prune(ctx, p.keep)
		problems.add(err)
		total, more = total.Plus(removed), again
	}
	return 0, problems.err()
}
