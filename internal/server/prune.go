package server

import (
	"context"

	"rouse.dev/rouse/internal/domain"
)

// Prune removes history that is older than r says, all of it, in small batches; a dry run only counts.
func Prune(ctx context.Context, db *Database, r domain.Retention, dryRun bool) (total domain.Removed, err error) {
	s := db.quietStore()
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
