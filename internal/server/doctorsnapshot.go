package server

import (
	"context"
	"fmt"
	"time"
)

// maxSnapshotAge is how long a session may hold a snapshot: the rows that died since are read past by every claim.
const maxSnapshotAge = time.Hour

// snapshots looks for a session that was forgotten in a transaction.
func (d *doctor) snapshots(ctx context.Context, db *Database) {
	oldest, err := db.quietStore().OldestSnapshot(ctx)
	switch {
	case err != nil:
		d.fail("snapshots", err, "may this account read pg_stat_activity?")
	case oldest.Age > maxSnapshotAge:
		d.fail("snapshots", fmt.Errorf("a snapshot is held for %s (%s): rows that died since are not removed, and slow every claim", oldest.Age.Round(time.Second), oldest.Holder),
			"end that session, unless it is a backup that still works")
	default:
		d.pass("snapshots", fmt.Sprintf("the oldest is %s old", oldest.Age.Round(time.Second)))
	}
}

// maxFeedHold is how long an open transaction may hold the feed back.
const maxFeedHold = time.Minute

// feed looks for a transaction that was forgotten, and holds the feed back.
func (d *doctor) feed(ctx context.Context, db *Database) {
	h, err := db.quietStore().FeedHolder(ctx)
	switch {
	case err != nil:
		d.fail("feed", err, "may this account read pg_stat_activity?")
	case h.Age > maxFeedHold:
		d.fail("feed", fmt.Errorf("an open transaction has held the feed back for %s (%s): entries that were written since it began are not shown", h.Age.Round(time.Second), h),
			"end that session, or let its program commit sooner")
	default:
		d.pass("feed", "no open transaction holds it back")
	}
}
