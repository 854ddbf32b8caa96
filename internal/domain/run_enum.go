package domain

// WakeClass is whether a run may be idle-skipped (SPEC S1).
//
//rouse:enum
type WakeClass string

const (
	WakeClassPeriodic WakeClass = "PERIODIC" // caused by a cron-fired lightweight routine
	WakeClassEvent    WakeClass = "EVENT"    // caused by anything else
)

// RunStatus is the state of a run.
//
//rouse:enum
type RunStatus string

const (
	RunStatusQueued    RunStatus = "QUEUED"    // waiting
	RunStatusClaimed   RunStatus = "CLAIMED"   // being done
	RunStatusFinished  RunStatus = "FINISHED"  // ended
	RunStatusFailed    RunStatus = "FAILED"    // gave up
	RunStatusCancelled RunStatus = "CANCELLED" // no longer valid
)

// ParkedReason is why a queued run is not due (design of the queue, parked_reason).
//
//rouse:enum
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
	ParkedReasonLoopBreaker    ParkedReason = "LOOP_BREAKER"    // its agent has had as many unattended launches as it may
)

// TerminalShape is how a terminal run ended (SPEC S10.2).
//
//rouse:enum
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

// RunAttemptStatus is the state of one try at a run.
//
//rouse:enum
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

// RunErrorCode is the class of what went wrong with an attempt.
//
//rouse:enum
type RunErrorCode string

const (
	RunErrorCodeRateLimited RunErrorCode = "RATE_LIMITED" // rate limit
	RunErrorCodeLaunch      RunErrorCode = "LAUNCH"       // launch
	RunErrorCodeTimeout     RunErrorCode = "TIMEOUT"      // timeout
	RunErrorCodeCrash       RunErrorCode = "CRASH"        // crash
	RunErrorCodeLeaseLost   RunErrorCode = "LEASE_LOST"   // lease lost
	RunErrorCodeBudget      RunErrorCode = "BUDGET"       // budget
	RunErrorCodeOther       RunErrorCode = "OTHER"        // other
	RunErrorCodeAuth        RunErrorCode = "AUTH"         // the agent is not logged in, or its key is bad
	RunErrorCodeBilling     RunErrorCode = "BILLING"      // no credit, or the plan does not cover it
)

// RunEventKind is a step in the life of a run.
//
//rouse:enum
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
	RunEventKindActed           RunEventKind = "ACTED"            // the agent did something by a call
)

// LogStream is where a log line came from.
//
//rouse:enum
type LogStream string

const (
	LogStreamStdout LogStream = "STDOUT" // output
	LogStreamStderr LogStream = "STDERR" // errors
	LogStreamSystem LogStream = "SYSTEM" // scheduler
)
