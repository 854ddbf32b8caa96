package model

import (
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// LoopTriggerEvidence is a dead trigger.
type LoopTriggerEvidence struct {
	TriggerID    xid.ID
	Condition    domain.TriggerCondition
	NextFireAt   *time.Time
	ClaimInstant time.Time
	LateBy       time.Duration
}

// LoopRunEvidence is a run that is evidence.
type LoopRunEvidence struct {
	RunID     xid.ID
	Condition domain.LoopRunCondition
	Since     time.Time
	Age       time.Duration
}

// LoopGateEvidence is a fire that others wait for.
type LoopGateEvidence struct {
	RoutineRunID, TaskID, RunID xid.ID
	Condition                   domain.LoopGateCondition
	Fires                       int
	Since                       time.Time
	Age                         time.Duration
}

// Trace is all that one cause led to, by their ids.
type Trace struct {
	CausationID, WorkspaceID xid.ID
	RoutineRunID             xid.ID // "": none
	RequestIDs, RunIDs       []xid.ID
	TaskIDs                  []xid.ID
	Truncated                bool
}
