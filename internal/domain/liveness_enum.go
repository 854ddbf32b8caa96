package domain

// LoopVerdict is the answer to "did the unattended loop run". The values are in their precedence: the first that matches is
// the verdict (AC-OFFICE-LOOP-LIVENESS-004.2).
//
//rouse:enum
type LoopVerdict string

const (
	LoopVerdictUnknown  LoopVerdict = "UNKNOWN"   // not activated
	LoopVerdictDead     LoopVerdict = "DEAD"      // a due trigger did not fire
	LoopVerdictHeld     LoopVerdict = "HELD"      // a person holds the workspace
	LoopVerdictDegraded LoopVerdict = "DEGRADED"  // stuck runs, silent successes, or fires that wait for one without work
	LoopVerdictNotArmed LoopVerdict = "NOT_ARMED" // no enabled schedule
	LoopVerdictHealthy  LoopVerdict = "HEALTHY"   // all well
)

// LoopGateCondition is why a fire that others wait for is evidence.
//
//rouse:enum
type LoopGateCondition string

const (
	LoopGateConditionNoLiveRun LoopGateCondition = "NO_LIVE_RUN" // its task is open, and no run of it is queued or live
	LoopGateConditionRunParked LoopGateCondition = "RUN_PARKED"  // its run is parked for long
)

// LoopRunCondition is why a run is evidence.
//
//rouse:enum
type LoopRunCondition string

const (
	LoopRunConditionQueuedStuck   LoopRunCondition = "QUEUED_STUCK"   // claimable, not claimed
	LoopRunConditionClaimedStuck  LoopRunCondition = "CLAIMED_STUCK"  // claimed, not ended
	LoopRunConditionSilentSuccess LoopRunCondition = "SILENT_SUCCESS" // success without a session
)
