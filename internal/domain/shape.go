package domain

import (
	"slices"
	"time"
)

// Outcomes of a run as the column holds them: text without a CHECK, lower case (SPEC S10.2).
const (
	OutcomeProcessed     = "processed"      // the agent ended well
	OutcomeAgentInactive = "agent_inactive" // skipped: the agent was paused or stopped
	OutcomeIdleSkipped   = "idle_skipped"   // skipped: there was nothing to do
	OutcomeCheckoutHeld  = "checkout_held"  // skipped: another run held the task
	OutcomeBudgetBlocked = "budget_blocked" // skipped: a budget was spent
)

// SkipOutcomes are the outcomes of runs that a guard rightly did not launch.
var SkipOutcomes = []string{OutcomeAgentInactive, OutcomeIdleSkipped, OutcomeCheckoutHeld, OutcomeBudgetBlocked}

// ShapeFacts is what the classification of an ended run reads: columns only, never texts of errors.
type ShapeFacts struct {
	Status      RunStatus
	Outcome     string // "" for NULL
	HasSession  bool
	HasReason   bool // end_reason is set
	RequestedAt time.Time
	ActivatedAt time.Time // when terminal shapes began to be recorded; zero: not published yet
}

// ShapeOf classifies an ended run (SPEC S10.2, first match). It is total: whatever the columns hold has one shape. A run
// that has not ended has none; the caller asks about terminal runs only.
func ShapeOf(f ShapeFacts) TerminalShape {
	unlaunched := !f.HasSession
	switch {
	case f.ActivatedAt.IsZero() || f.RequestedAt.Before(f.ActivatedAt):
		return TerminalShapePreActivation
	case !f.Status.Terminal():
		return TerminalShapeUnclassified
	case f.Status == RunStatusFinished && f.Outcome == OutcomeProcessed && f.HasSession:
		return TerminalShapeLaunchedCompleted
	case f.Status != RunStatusFinished && f.HasSession:
		return TerminalShapeLaunchedFailed
	case f.Status == RunStatusFinished && f.Outcome == OutcomeProcessed:
		return TerminalShapeSilentSuccess
	case unlaunched && (slices.Contains(SkipOutcomes, f.Outcome) || f.Status == RunStatusCancelled && f.HasReason):
		return TerminalShapeUnlaunchedSkipped
	case unlaunched && f.Status == RunStatusFailed:
		return TerminalShapeUnlaunchedFailed
	}
	return TerminalShapeUnclassified
}

// Terminal says whether the status is an end.
func (v RunStatus) Terminal() bool {
	return v == RunStatusFinished || v == RunStatusFailed || v == RunStatusCancelled
}
