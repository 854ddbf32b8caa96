package model

import (
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// RoutineHealth is how the fires of a routine fare. What they cost is read when it is asked for.
type RoutineHealth struct {
	RoutineID                             xid.ID
	LastSuccessAt                         *time.Time
	ConsecutiveFailures, ConsecutiveSkips int
	SkipReason                            *domain.EndReason
	HeldBy                                *RoutineHold
	P50Duration                           *time.Duration
}

// RoutineHold is a fire that holds others back. RunID is "" when nothing of it is on its way.
type RoutineHold struct {
	FireID, RunID xid.ID
	Since         time.Time
	Count         int
}
