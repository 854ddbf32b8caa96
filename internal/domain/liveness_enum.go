package domain

import "io"

// LoopVerdict is the answer to "did the unattended loop run". The values are in their precedence: the first that matches is
// the verdict (AC-OFFICE-LOOP-LIVENESS-004.2).
type LoopVerdict string

const (
	LoopVerdictUnknown  LoopVerdict = "UNKNOWN"   // not activated
	LoopVerdictDead     LoopVerdict = "DEAD"      // a due trigger did not fire
	LoopVerdictDegraded LoopVerdict = "DEGRADED"  // stuck runs, silent successes, or fires that wait for one without work
	LoopVerdictNotArmed LoopVerdict = "NOT_ARMED" // no enabled schedule
	LoopVerdictHealthy  LoopVerdict = "HEALTHY"   // all well
)

var loopVerdictValues = []LoopVerdict{
	LoopVerdictUnknown,
	LoopVerdictDead,
	LoopVerdictDegraded,
	LoopVerdictNotArmed,
	LoopVerdictHealthy,
}

// Values lists every LoopVerdict, for the API enum.
func (LoopVerdict) Values() []string { return enumValues(loopVerdictValues) }

// MarshalGQL writes the value as the API spells it.
func (v LoopVerdict) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *LoopVerdict) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, loopVerdictValues) }

// LoopGateCondition is why a fire that others wait for is evidence.
type LoopGateCondition string

const (
	LoopGateConditionNoLiveRun LoopGateCondition = "NO_LIVE_RUN" // its task is open, and no run of it is queued or live
	LoopGateConditionRunParked LoopGateCondition = "RUN_PARKED"  // its run is parked for long
)

var loopGateConditionValues = []LoopGateCondition{
	LoopGateConditionNoLiveRun,
	LoopGateConditionRunParked,
}

// Values lists every LoopGateCondition, for the API enum.
func (LoopGateCondition) Values() []string { return enumValues(loopGateConditionValues) }

// MarshalGQL writes the value as the API spells it.
func (v LoopGateCondition) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *LoopGateCondition) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, loopGateConditionValues)
}

// LoopRunCondition is why a run is evidence.
type LoopRunCondition string

const (
	LoopRunConditionQueuedStuck   LoopRunCondition = "QUEUED_STUCK"   // claimable, not claimed
	LoopRunConditionClaimedStuck  LoopRunCondition = "CLAIMED_STUCK"  // claimed, not ended
	LoopRunConditionSilentSuccess LoopRunCondition = "SILENT_SUCCESS" // success without a session
)

var loopRunConditionValues = []LoopRunCondition{
	LoopRunConditionQueuedStuck,
	LoopRunConditionClaimedStuck,
	LoopRunConditionSilentSuccess,
}

// Values lists every LoopRunCondition, for the API enum.
func (LoopRunCondition) Values() []string { return enumValues(loopRunConditionValues) }

// MarshalGQL writes the value as the API spells it.
func (v LoopRunCondition) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *LoopRunCondition) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, loopRunConditionValues)
}
