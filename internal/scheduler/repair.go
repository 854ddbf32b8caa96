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
		FeedHolder(ctx context.Context) (store.FeedHolder, error)
	}
	log  *slog.Logger
	told time.Time // when it was told last who holds the feed back
}

// feedPatience is how long a transaction may hold the feed back before the log names it, feedPause how long the log is silent
// then.
const (
	feedPatience = 30 * time.Second
	feedPause    = time.Minute
)

func (r *repairer) runOnce(ctx context.Context, _ <-chan struct{}) (time.Duration, error) {
	var problems failures
	done, err := r.store.Repair(ctx)
	problems.add(err)
	if done != (store.Repairs{}) {
		r.log.Warn("queue repaired", "heads", done.Heads, "running", done.Running, "workspaces", done.Workspaces, "scopes", done.Scopes, "leases", done.Leases, "holds", done.Holds,
			"checkouts", done.Checkouts, "blocked", done.Blocked, "offers", done.Offers, "fires", done.Fires, "orphans", done.Orphans, "costs", done.Costs)
	}
	problems.add(r.watchFeed(ctx))
	return 0, problems.err()
}

// watchFeed tells who holds the feed back for long: who follows it waits, and nothing else says for whom.
func (r *repairer) watchFeed(ctx context.Context) error {
	h, err := r.store.FeedHolder(ctx)
	if err != nil || h.Age < feedPatience || !r.told.IsZero() && time.Since(r.told) < feedPause {
		return err
	}
	r.told = time.Now()
	r.log.Warn("an open transaction holds the feed back: entries that were written since it began are shown once it has ended; end it, or let its program commit sooner",
		"pid", h.PID, "account", h.Account, "application", h.Application, "state", h.State, "age", h.Age.Round(time.Second))
	return nil
}
