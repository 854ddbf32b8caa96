// Package liveness holds the rules that say whether the unattended loop is alive (SPEC S10, requirements
// AC-OFFICE-LOOP-LIVENESS-004 and -005): thresholds, the conditions of triggers and runs, and the verdict. It is pure:
// facts and one captured instant in, a decision out.
package liveness

import (
	"time"

	"rouse.dev/rouse/internal/domain"
)

// Thresholds of the verdict; no caller can change them (AC-OFFICE-LOOP-LIVENESS-004.14).
const (
	OverdueGrace  = domain.OverdueGrace  // a due trigger may be late by this much
	StrandedGrace = domain.StrandedGrace // a trigger without a next slot is mid-claim for this long; fires may wait this long for one without work
	QueuedGrace   = 120 * time.Second    // a claimable run may wait this long
	ClaimedGrace  = 600 * time.Second    // a claimed run may live this long without a sign of life
	Window        = 24 * time.Hour       // how far back terminal runs are looked at
	Cap           = 50                   // most rows of one evidence list
)

// Facts are what the verdict is decided from. The counts are of all rows, not of those that a list shows.
type Facts struct {
	ActivatedAt      *time.Time // nil: not published
	DeadTriggers     int        // overdue or stranded
	StuckRuns        int        // queued or claimed
	SilentSuccesses  int        // inside the window
	Gates            int        // fires that others wait for without work on its way, for longer than StrandedGrace
	EligibleTriggers int        // enabled schedules
	Held             bool       // a person holds the workspace
}

// Judge decides the verdict: the first that matches.
func Judge(f Facts) domain.LoopVerdict {
	switch {
	case f.ActivatedAt == nil:
		return domain.LoopVerdictUnknown
	case f.DeadTriggers > 0:
		return domain.LoopVerdictDead
	case f.Held:
		return domain.LoopVerdictHeld
	case f.StuckRuns > 0 || f.SilentSuccesses > 0 || f.Gates > 0:
		return domain.LoopVerdictDegraded
	case f.EligibleTriggers == 0:
		return domain.LoopVerdictNotArmed
	}
	return domain.LoopVerdictHealthy
}

// GateCondition is why a fire that others wait for is evidence: the run that is left of it is parked for long, or none is left.
func GateCondition(hasRun bool) domain.LoopGateCondition {
	if hasRun {
		return domain.LoopGateConditionRunParked
	}
	return domain.LoopGateConditionNoLiveRun
}

// ClaimInstant is when a trigger last claimed a slot; one that never fired counts from when it was made.
func ClaimInstant(t domain.TriggerFacts) time.Time {
	if t.LastFiredAt != nil {
		return *t.LastFiredAt
	}
	return t.CreatedAt
}

// LateBy is how long a trigger has been dead: since its slot, or since it lost its cursor.
func LateBy(t domain.TriggerFacts, now time.Time) time.Duration {
	if t.NextRunAt != nil {
		return now.Sub(*t.NextRunAt)
	}
	return now.Sub(ClaimInstant(t))
}

// Cutoffs are the thresholds as instants, all from one captured now: what is older than its cutoff is late.
type Cutoffs struct {
	Now                                time.Time
	Overdue, Stranded, Queued, Claimed time.Time
	Window                             time.Time // terminal runs from this instant on are looked at
}

// CutoffsAt are the cutoffs of a reading.
func CutoffsAt(now time.Time) Cutoffs {
	return Cutoffs{Now: now, Overdue: now.Add(-OverdueGrace), Stranded: now.Add(-StrandedGrace), Queued: now.Add(-QueuedGrace),
		Claimed: now.Add(-ClaimedGrace), Window: now.Add(-Window)}
}

// ShapeGroup is how many terminal runs of the window share what a shape is derived from.
type ShapeGroup struct {
	Facts domain.ShapeFacts
	Count int
}

// CountShapes adds up the terminal runs of the window by shape; every shape is in the answer, at 0 too.
func CountShapes(groups []ShapeGroup) map[domain.TerminalShape]int {
	counts := map[domain.TerminalShape]int{}
	for _, shape := range domain.TerminalShape("").Values() {
		counts[domain.TerminalShape(shape)] = 0
	}
	for _, g := range groups {
		if shape := domain.ShapeOf(g.Facts); shape != "" {
			counts[shape] += g.Count
		}
	}
	return counts
}
