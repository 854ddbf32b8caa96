// Package liveness is the rules by which the unattended loop is judged to be alive (SPEC S10, requirements
// AC-OFFICE-LOOP-LIVENESS-004 and -005): thresholds, the conditions of triggers and runs, and the verdict. It is pure: facts
// and one captured instant in, a decision out.
package liveness

import "time"

// Thresholds of the verdict; no caller can change them (AC-OFFICE-LOOP-LIVENESS-004.14).
const (
	OverdueGrace  = 180 * time.Second // a due trigger may be late by this much
	StrandedGrace = 300 * time.Second // a trigger without a next slot is mid-claim for this long
	QueuedGrace   = 120 * time.Second // a claimable run may wait this long
	ClaimedGrace  = 600 * time.Second // a claimed run may live this long without a sign of life
	Window        = 24 * time.Hour    // how far back terminal runs are looked at
	Cap           = 50                // most rows of one evidence list
)

// Verdict is the answer to "is the loop alive".
type Verdict string

// The verdicts, in their precedence: the first that matches is the answer (AC-OFFICE-LOOP-LIVENESS-004.2).
const (
	Unknown  Verdict = "UNKNOWN"   // the activation instant has not been published
	Dead     Verdict = "DEAD"      // a due trigger did not fire
	Degraded Verdict = "DEGRADED"  // stuck runs or silent successes
	NotArmed Verdict = "NOT_ARMED" // no enabled schedule
	Healthy  Verdict = "HEALTHY"   // none of these
)

// Facts are what the verdict is decided from. The counts are of all rows, not of those that a list shows.
type Facts struct {
	ActivatedAt      *time.Time // nil: not published
	DeadTriggers     int        // overdue or stranded
	StuckRuns        int        // queued or claimed
	SilentSuccesses  int        // inside the window
	EligibleTriggers int        // enabled schedules
}

// Judge decides the verdict.
func Judge(f Facts) Verdict {
	switch {
	case f.ActivatedAt == nil:
		return Unknown
	case f.DeadTriggers > 0:
		return Dead
	case f.StuckRuns > 0 || f.SilentSuccesses > 0:
		return Degraded
	case f.EligibleTriggers == 0:
		return NotArmed
	}
	return Healthy
}

// Trigger is an eligible trigger: a schedule that is enabled, and nothing further.
type Trigger struct {
	NextRunAt   *time.Time // nil: cleared by a claim
	LastFiredAt *time.Time
	CreatedAt   time.Time
}

// TriggerCondition is how an eligible trigger stands.
type TriggerCondition string

// The conditions of an eligible trigger. Only Overdue and Stranded are evidence.
const (
	OnTime   TriggerCondition = "ON_TIME"
	Claiming TriggerCondition = "CLAIMING" // its cursor was cleared a moment ago
	Overdue  TriggerCondition = "OVERDUE"
	Stranded TriggerCondition = "STRANDED"
)

// ClaimInstant is when the trigger last claimed a slot; one that never fired counts from when it was made.
func (t Trigger) ClaimInstant() time.Time {
	if t.LastFiredAt != nil {
		return *t.LastFiredAt
	}
	return t.CreatedAt
}

// Condition judges the trigger at an instant.
func (t Trigger) Condition(now time.Time) TriggerCondition {
	switch {
	case t.NextRunAt != nil && t.NextRunAt.Before(now.Add(-OverdueGrace)):
		return Overdue
	case t.NextRunAt != nil:
		return OnTime
	case t.ClaimInstant().Before(now.Add(-StrandedGrace)):
		return Stranded
	}
	return Claiming
}

// LateBy is how long the trigger has been dead: since its slot, or since it lost its cursor.
func (t Trigger) LateBy(now time.Time) time.Duration {
	if t.NextRunAt != nil {
		return now.Sub(*t.NextRunAt)
	}
	return now.Sub(t.ClaimInstant())
}

// QueueEligible is the instant from which a queued run might have been claimed: the latest of when it was asked for, the
// end of its parking, the end of its agent's rest, and the release of the capacity that held it. Zero instants do not count.
func QueueEligible(requestedAt time.Time, others ...time.Time) time.Time {
	latest := requestedAt
	for _, at := range others {
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}

// QueuedStuck says whether a claimable run has waited too long.
func QueuedStuck(eligible, now time.Time) bool { return eligible.Before(now.Add(-QueuedGrace)) }

// Claimed is a claimed run. SignOfLife is until when its lease runs, nil when it has none.
type Claimed struct {
	ClaimedAt  *time.Time
	SignOfLife *time.Time
}

// Stuck says whether a claimed run is older than the grace, or has no age at all, and shows no sign of life: one whose
// lease was renewed within the grace is alive, however long it runs (C100).
func (c Claimed) Stuck(now time.Time) bool {
	cut := now.Add(-ClaimedGrace)
	if c.SignOfLife != nil && !c.SignOfLife.Before(cut) {
		return false
	}
	return c.ClaimedAt == nil || c.ClaimedAt.Before(cut)
}

// Terminal is the instant by which a terminal run is in the window or not: its end, or else when it was asked for
// (AC-OFFICE-LOOP-LIVENESS-004.16).
func Terminal(finishedAt *time.Time, requestedAt time.Time) time.Time {
	if finishedAt != nil {
		return *finishedAt
	}
	return requestedAt
}

// InWindow says whether a terminal instant is inside the evaluation window.
func InWindow(at, now time.Time) bool { return !at.Before(now.Add(-Window)) }
