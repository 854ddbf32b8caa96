package server

import (
	"context"
	"log/slog"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store"
)

// Prune removes history that is older than r says, all of it, in small batches; a dry run only counts.
func Prune(ctx context.Context, db *Database, r domain.Retention, dryRun bool) (total domain.Removed, err error) {
	nobody := event.New(event.HubOptions{Log: slog.New(slog.DiscardHandler)}) // never started: nobody waits for old history
	s := store.New(db.DB, store.Options{Events: nobody, Counters: metrics.New(), Log: db.log})
	if dryRun {
		return s.Prunable(ctx, r)
	}
	for more := true; more; {
		removed, again, failed := s.Prune(ctx, r)
		if failed != nil { // the rest is removed all the same; each call meets what it is about
			err = failed
		}
		total, more = total.Plus(removed), again
	}
	return total, err
}
