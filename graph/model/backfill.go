package model

import (
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// BackfilledSlot is a slot of a window that is fired anew. RoutineRunID is "" where it has no fire.
type BackfilledSlot struct {
	At           time.Time
	Outcome      domain.BackfillOutcome
	RoutineRunID xid.ID
}
