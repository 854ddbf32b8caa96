package domain

import (
	"slices"
	"time"
)

// ShapeFacts are the persisted columns that the terminal shape of a run is derived from. ActivatedAt nil means that the
// activation instant has not been published.
type ShapeFacts struct {
	Status      RunStatus
	Outcome     string // "" for NULL
	EndReason   EndReason
	SessionID   string
	RequestedAt time.Time
	ActivatedAt *time.Time
}

// SkipOutcomes are the outcomes of runs that were rightly not launched.
var SkipOutcomes = []string{OutcomeAgentInactive, OutcomeIdleSkipped, OutcomeCheckoutHeld, OutcomeBudgetBlocked}

// ShapeOf classifies a terminal run into exactly one shape, first match (SPEC S10.2); "" for a run that has not ended.
func ShapeOf(f ShapeFacts) TerminalShape {
	session := f.SessionID != ""
	switch {
	case f.Status == RunStatusQueued, f.Status == RunStatusClaimed:
		return ""
	case f.ActivatedAt == nil, f.RequestedAt.Before(*f.ActivatedAt):
		return TerminalShapePreActivation
	case f.Status == RunStatusFinished && f.Outcome == OutcomeProcessed && session:
		return TerminalShapeLaunchedCompleted
	case (f.Status == RunStatusFailed || f.Status == RunStatusCancelled) && session:
		return TerminalShapeLaunchedFailed
	case f.Status == RunStatusFinished && f.Outcome == OutcomeProcessed:
		return TerminalShapeSilentSuccess
	case f.Status == RunStatusFinished && !session && slices.Contains(SkipOutcomes, f.Outcome),
		f.Status == RunStatusCancelled && !session && f.EndReason != "":
		return TerminalShapeUnlaunchedSkipped
	case f.Status == RunStatusFailed:
		return TerminalShapeUnlaunchedFailed
	}
	return TerminalShapeUnclassified
}
