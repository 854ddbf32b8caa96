package domain

import "io"

// WakeClass is whether a run may be idle-skipped (SPEC S1).
type WakeClass string

const (
	WakeClassPeriodic WakeClass = "PERIODIC" // caused by a cron-fired lightweight routine
	WakeClassEvent    WakeClass = "EVENT"    // caused by anything else
)

var wakeClassValues = []WakeClass{
	WakeClassPeriodic,
	WakeClassEvent,
}

// Values lists every WakeClass, for the database check and the API enum.
func (WakeClass) Values() []string { return enumValues(wakeClassValues) }

// MarshalGQL writes the value as the API spells it.
func (v WakeClass) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *WakeClass) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, wakeClassValues) }

// RunStatus is the state of a run.
type RunStatus string

const (
	RunStatusQueued    RunStatus = "QUEUED"    // waiting
	RunStatusClaimed   RunStatus = "CLAIMED"   // being done
	RunStatusFinished  RunStatus = "FINISHED"  // ended
	RunStatusFailed    RunStatus = "FAILED"    // gave up
	RunStatusCancelled RunStatus = "CANCELLED" // no longer valid
)

var runStatusValues = []RunStatus{
	RunStatusQueued,
	RunStatusClaimed,
	RunStatusFinished,
	RunStatusFailed,
	RunStatusCancelled,
}

// Values lists every RunStatus, for the database check and the API enum.
func (RunStatus) Values() []string { return enumValues(runStatusValues) }

// MarshalGQL writes the value as the API spells it.
func (v RunStatus) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *RunStatus) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, runStatusValues) }

// ParkedReason is why a queued run is not due (design of the queue, parked_reason).
type ParkedReason string

const (
	ParkedReasonWindow         ParkedReason = "WINDOW"          // coalescing window open
	ParkedReasonBackoff        ParkedReason = "BACKOFF"         // backoff
	ParkedReasonRateLimit      ParkedReason = "RATE_LIMIT"      // parsed rate-limit reset
	ParkedReasonScopeBusy      ParkedReason = "SCOPE_BUSY"      // a run of the same scope is live
	ParkedReasonTaskBlocked    ParkedReason = "TASK_BLOCKED"    // a blocker is open
	ParkedReasonBudgetReserved ParkedReason = "BUDGET_RESERVED" // budget reserved by live runs
	ParkedReasonGuardError     ParkedReason = "GUARD_ERROR"     // a guard could not be evaluated
	ParkedReasonNoWorker       ParkedReason = "NO_WORKER"       // no worker took it
)

var parkedReasonValues = []ParkedReason{
	ParkedReasonWindow,
	ParkedReasonBackoff,
	ParkedReasonRateLimit,
	ParkedReasonScopeBusy,
	ParkedReasonTaskBlocked,
	ParkedReasonBudgetReserved,
	ParkedReasonGuardError,
	ParkedReasonNoWorker,
}

// Values lists every ParkedReason, for the database check and the API enum.
func (ParkedReason) Values() []string { return enumValues(parkedReasonValues) }

// MarshalGQL writes the value as the API spells it.
func (v ParkedReason) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *ParkedReason) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, parkedReasonValues) }

// TerminalShape is how a terminal run ended (SPEC S10.2).
type TerminalShape string

const (
	TerminalShapePreActivation     TerminalShape = "PRE_ACTIVATION"     // older than this classification
	TerminalShapeLaunchedCompleted TerminalShape = "LAUNCHED_COMPLETED" // work done, session recorded
	TerminalShapeLaunchedFailed    TerminalShape = "LAUNCHED_FAILED"    // failed or cancelled after launch
	TerminalShapeSilentSuccess     TerminalShape = "SILENT_SUCCESS"     // success claimed, no session recorded: a defect
	TerminalShapeUnlaunchedSkipped TerminalShape = "UNLAUNCHED_SKIPPED" // rightly not launched
	TerminalShapeUnlaunchedFailed  TerminalShape = "UNLAUNCHED_FAILED"  // failed before launch
	TerminalShapeUnclassified      TerminalShape = "UNCLASSIFIED"       // a combination not known here
)

var terminalShapeValues = []TerminalShape{
	TerminalShapePreActivation,
	TerminalShapeLaunchedCompleted,
	TerminalShapeLaunchedFailed,
	TerminalShapeSilentSuccess,
	TerminalShapeUnlaunchedSkipped,
	TerminalShapeUnlaunchedFailed,
	TerminalShapeUnclassified,
}

// Values lists every TerminalShape, for the database check and the API enum.
func (TerminalShape) Values() []string { return enumValues(terminalShapeValues) }

// MarshalGQL writes the value as the API spells it.
func (v TerminalShape) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *TerminalShape) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, terminalShapeValues) }

// RunAttemptStatus is the state of one try at a run.
type RunAttemptStatus string

const (
	RunAttemptStatusOffered     RunAttemptStatus = "OFFERED"     // waits for a worker
	RunAttemptStatusLaunching   RunAttemptStatus = "LAUNCHING"   // being launched
	RunAttemptStatusRunning     RunAttemptStatus = "RUNNING"     // running
	RunAttemptStatusSucceeded   RunAttemptStatus = "SUCCEEDED"   // good
	RunAttemptStatusFailed      RunAttemptStatus = "FAILED"      // bad
	RunAttemptStatusAbandoned   RunAttemptStatus = "ABANDONED"   // lease lost
	RunAttemptStatusInterrupted RunAttemptStatus = "INTERRUPTED" // handed back by a shutdown
	RunAttemptStatusCancelled   RunAttemptStatus = "CANCELLED"   // ended by a cancel or settled at start
)

var runAttemptStatusValues = []RunAttemptStatus{
	RunAttemptStatusOffered,
	RunAttemptStatusLaunching,
	RunAttemptStatusRunning,
	RunAttemptStatusSucceeded,
	RunAttemptStatusFailed,
	RunAttemptStatusAbandoned,
	RunAttemptStatusInterrupted,
	RunAttemptStatusCancelled,
}

// Values lists every RunAttemptStatus, for the database check and the API enum.
func (RunAttemptStatus) Values() []string { return enumValues(runAttemptStatusValues) }

// MarshalGQL writes the value as the API spells it.
func (v RunAttemptStatus) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *RunAttemptStatus) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, runAttemptStatusValues)
}

// RunErrorCode is the class of what went wrong with an attempt.
type RunErrorCode string

const (
	RunErrorCodeRateLimited RunErrorCode = "RATE_LIMITED" // rate limit
	RunErrorCodeLaunch      RunErrorCode = "LAUNCH"       // launch
	RunErrorCodeTimeout     RunErrorCode = "TIMEOUT"      // timeout
	RunErrorCodeCrash       RunErrorCode = "CRASH"        // crash
	RunErrorCodeLeaseLost   RunErrorCode = "LEASE_LOST"   // lease lost
	RunErrorCodeBudget      RunErrorCode = "BUDGET"       // budget
	RunErrorCodeOther       RunErrorCode = "OTHER"        // other
)

var runErrorCodeValues = []RunErrorCode{
	RunErrorCodeRateLimited,
	RunErrorCodeLaunch,
	RunErrorCodeTimeout,
	RunErrorCodeCrash,
	RunErrorCodeLeaseLost,
	RunErrorCodeBudget,
	RunErrorCodeOther,
}

// Values lists every RunErrorCode, for the database check and the API enum.
func (RunErrorCode) Values() []string { return enumValues(runErrorCodeValues) }

// MarshalGQL writes the value as the API spells it.
func (v RunErrorCode) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *RunErrorCode) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, runErrorCodeValues) }

// RunEventKind is a step in the life of a run.
type RunEventKind string

const (
	RunEventKindCreated         RunEventKind = "CREATED"          // made
	RunEventKindClaimed         RunEventKind = "CLAIMED"          // claimed
	RunEventKindGuard           RunEventKind = "GUARD"            // guard decided
	RunEventKindCoalesced       RunEventKind = "COALESCED"        // merged
	RunEventKindPromoted        RunEventKind = "PROMOTED"         // promoted
	RunEventKindLaunched        RunEventKind = "LAUNCHED"         // launched
	RunEventKindSessionRecorded RunEventKind = "SESSION_RECORDED" // session known
	RunEventKindProgress        RunEventKind = "PROGRESS"         // progress
	RunEventKindRetryScheduled  RunEventKind = "RETRY_SCHEDULED"  // retry planned
	RunEventKindFinished        RunEventKind = "FINISHED"         // ended
	RunEventKindFailed          RunEventKind = "FAILED"           // gave up
	RunEventKindCancelled       RunEventKind = "CANCELLED"        // cancelled
	RunEventKindRecovered       RunEventKind = "RECOVERED"        // recovered
)

var runEventKindValues = []RunEventKind{
	RunEventKindCreated,
	RunEventKindClaimed,
	RunEventKindGuard,
	RunEventKindCoalesced,
	RunEventKindPromoted,
	RunEventKindLaunched,
	RunEventKindSessionRecorded,
	RunEventKindProgress,
	RunEventKindRetryScheduled,
	RunEventKindFinished,
	RunEventKindFailed,
	RunEventKindCancelled,
	RunEventKindRecovered,
}

// Values lists every RunEventKind, for the database check and the API enum.
func (RunEventKind) Values() []string { return enumValues(runEventKindValues) }

// MarshalGQL writes the value as the API spells it.
func (v RunEventKind) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *RunEventKind) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, runEventKindValues) }

// LogStream is where a log line came from.
type LogStream string

const (
	LogStreamStdout LogStream = "STDOUT" // output
	LogStreamStderr LogStream = "STDERR" // errors
	LogStreamSystem LogStream = "SYSTEM" // scheduler
)

var logStreamValues = []LogStream{
	LogStreamStdout,
	LogStreamStderr,
	LogStreamSystem,
}

// Values lists every LogStream, for the database check and the API enum.
func (LogStream) Values() []string { return enumValues(logStreamValues) }

// MarshalGQL writes the value as the API spells it.
func (v LogStream) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *LogStream) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, logStreamValues) }
