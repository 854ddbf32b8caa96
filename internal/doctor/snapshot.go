package doctor

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/store"
)

// maxSnapshotAge is how long a session may hold a snapshot: the rows that died since are read past by every claim.
const maxSnapshotAge = time.Hour

// Snapshots looks for a session that was forgotten in a transaction.
func (r *Report) Snapshots(ctx context.Context, s *store.Store) {
	oldest, err := s.OldestSnapshot(ctx)
	switch {
	case err != nil:
		r.Fail("snapshots", err, "may this account read pg_stat_activity?")
	case oldest.Age > maxSnapshotAge:
		r.Fail("snapshots", fmt.Errorf("a snapshot is held for %s (%s): rows that died since are not removed, and slow every claim", oldest.Age.Round(time.Second), oldest.Holder),
			"end that session, unless it is a backup that still works")
	default:
		r.Pass("snapshots", fmt.Sprintf("the oldest is %s old", oldest.Age.Round(time.Second)))
	}
}

// maxFeedHold is how long an open transaction may hold the feed back.
const maxFeedHold = time.Minute

// Feed looks for a transaction that was forgotten, and holds the feed back.
func (r *Report) Feed(ctx context.Context, s *store.Store) {
	h, err := s.FeedHolder(ctx)
	switch {
	case err != nil:
		r.Fail("feed", err, "may this account read pg_stat_activity?")
	case h.Age > maxFeedHold:
		r.Fail("feed", fmt.Errorf("an open transaction has held the feed back for %s (%s): entries that were written since it began are not shown", h.Age.Round(time.Second), h),
			"end that session, or let its program commit sooner")
	default:
		r.Pass("feed", "no open transaction holds it back")
	}
}
