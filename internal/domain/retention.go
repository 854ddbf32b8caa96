package domain

import (
	"fmt"
	"time"
)

// Defaults and bounds of the retention. A key that deduplicates lives as long as its row, so nothing younger than a day is
// ever removed (SPEC S3.3).
const (
	DefaultHistory   = 30 * 24 * time.Hour
	MinRetention     = 24 * time.Hour
	RetentionFloor   = 50             // the newest rows of each owner are kept, however old they are
	MutationKeyLives = 24 * time.Hour // for how long a repeated mutation returns its first result
)

// Retention says how old history may become. 0 keeps it for ever.
type Retention struct {
	History     time.Duration // runs with all that hangs on them, requests, the feed, handled inbox items, webhook deliveries, notifications
	RoutineRuns time.Duration // the fire ledger
}

// Validate refuses an age that is too small to keep what deduplicates.
func (r Retention) Validate() error {
	for _, age := range []time.Duration{r.History, r.RoutineRuns} {
		if age != 0 && age < MinRetention {
			return fmt.Errorf("history of %s is too short: keys that recognise repeated causes live with it; give at least %s, or 0 to keep it for ever", age, MinRetention)
		}
	}
	return nil
}

// MutationKeys is how old keys of mutations become.
func (Retention) MutationKeys() time.Duration { return MutationKeyLives }

// Removed counts the rows that retention removes, or would remove. What hangs on a run goes with it, uncounted.
type Removed struct {
	Runs, Requests, Activities, InboxItems, Deliveries, Notifications, NotificationTests, RoutineRuns, MutationKeys int
}

// Plus adds two counts.
func (r Removed) Plus(o Removed) Removed {
	return Removed{r.Runs + o.Runs, r.Requests + o.Requests, r.Activities + o.Activities, r.InboxItems + o.InboxItems,
		r.Deliveries + o.Deliveries, r.Notifications + o.Notifications, r.NotificationTests + o.NotificationTests, r.RoutineRuns + o.RoutineRuns, r.MutationKeys + o.MutationKeys}
}
