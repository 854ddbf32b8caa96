package domain

// WakeupSource is the kind of cause behind a wakeup request (SPEC S3.1).
//
//rouse:enum
type WakeupSource string

const (
	WakeupSourceRoutine               WakeupSource = "ROUTINE"                 // routine fired
	WakeupSourceComment               WakeupSource = "COMMENT"                 // comment
	WakeupSourceAgentError            WakeupSource = "AGENT_ERROR"             // a colleague failed
	WakeupSourceSelf                  WakeupSource = "SELF"                    // itself
	WakeupSourceUser                  WakeupSource = "USER"                    // a person
	WakeupSourceTaskAssigned          WakeupSource = "TASK_ASSIGNED"           // task assigned
	WakeupSourceTaskBlockersResolved  WakeupSource = "TASK_BLOCKERS_RESOLVED"  // blockers done
	WakeupSourceTaskChildrenCompleted WakeupSource = "TASK_CHILDREN_COMPLETED" // children done
	WakeupSourceApprovalResolved      WakeupSource = "APPROVAL_RESOLVED"       // approval decided
	WakeupSourceBudgetAlert           WakeupSource = "BUDGET_ALERT"            // budget threshold
)

// WakeupStatus is the state of a wakeup request (SPEC S3.8).
//
//rouse:enum
type WakeupStatus string

const (
	WakeupStatusQueued    WakeupStatus = "QUEUED"    // waiting
	WakeupStatusClaimed   WakeupStatus = "CLAIMED"   // being served
	WakeupStatusCoalesced WakeupStatus = "COALESCED" // merged
	WakeupStatusSkipped   WakeupStatus = "SKIPPED"   // dropped
	WakeupStatusFinished  WakeupStatus = "FINISHED"  // done
	WakeupStatusFailed    WakeupStatus = "FAILED"    // gave up
	WakeupStatusCancelled WakeupStatus = "CANCELLED" // no longer valid
)

// WakeBasis is in which capacity an agent is woken about a task.
//
//rouse:enum
type WakeBasis string

const (
	WakeBasisAssignee WakeBasis = "ASSIGNEE" // assignee
	WakeBasisReviewer WakeBasis = "REVIEWER" // reviewer
	WakeBasisApprover WakeBasis = "APPROVER" // approver
	WakeBasisExplicit WakeBasis = "EXPLICIT" // asked for by name
)

// EndReason is why a request, a run or a fire ended without its work being done.
//
//rouse:enum
type EndReason string

const (
	EndReasonTaskNotFound             EndReason = "TASK_NOT_FOUND"             // task gone
	EndReasonAssigneeChanged          EndReason = "ASSIGNEE_CHANGED"           // assignee changed
	EndReasonTaskDone                 EndReason = "TASK_DONE"                  // task done
	EndReasonTaskCancelled            EndReason = "TASK_CANCELLED"             // task cancelled or archived
	EndReasonReviewParticipantChanged EndReason = "REVIEW_PARTICIPANT_CHANGED" // reviewer or approver changed
	EndReasonRetryStaleAssignee       EndReason = "RETRY_STALE_ASSIGNEE"       // retry for a former assignee
	EndReasonRetryTaskCancelled       EndReason = "RETRY_TASK_CANCELLED"       // retry of a cancelled task
	EndReasonCancelledByUser          EndReason = "CANCELLED_BY_USER"          // by a person
	EndReasonRoutineDeleted           EndReason = "ROUTINE_DELETED"            // routine deleted
	EndReasonAgentDeleted             EndReason = "AGENT_DELETED"              // agent deleted
	EndReasonIdleSkipped              EndReason = "IDLE_SKIPPED"               // nothing to do
	EndReasonBudgetBlocked            EndReason = "BUDGET_BLOCKED"             // budget spent
	EndReasonCheckoutHeld             EndReason = "CHECKOUT_HELD"              // task locked by another run
	EndReasonAgentInactive            EndReason = "AGENT_INACTIVE"             // agent paused or stopped
	EndReasonConcurrencyPolicy        EndReason = "CONCURRENCY_POLICY"         // concurrency policy
	EndReasonHopLimit                 EndReason = "HOP_LIMIT"                  // too many hops
	EndReasonBacklogFull              EndReason = "BACKLOG_FULL"               // too many queued runs
	EndReasonRetriesExhausted         EndReason = "RETRIES_EXHAUSTED"          // gave up
	EndReasonNoExecutor               EndReason = "NO_EXECUTOR"                // no executor
	EndReasonWorkspaceHeld            EndReason = "WORKSPACE_HELD"             // a person holds the workspace
)

// RetrySource is where a retry instant came from.
//
//rouse:enum
type RetrySource string

const (
	RetrySourceBackoff         RetrySource = "BACKOFF"           // backoff table
	RetrySourceRateLimitParsed RetrySource = "RATE_LIMIT_PARSED" // parsed from a rate-limit message
)

// QueueHold is why a queued run or an unrouted request waits (SPEC S3.9).
//
//rouse:enum
type QueueHold string

const (
	QueueHoldNone             QueueHold = "NONE"              // nothing: the next pass takes it
	QueueHoldRouting          QueueHold = "ROUTING"           // not routed yet
	QueueHoldAgentAtCapacity  QueueHold = "AGENT_AT_CAPACITY" // agent at capacity
	QueueHoldAgentCooldown    QueueHold = "AGENT_COOLDOWN"    // agent resting
	QueueHoldWindow           QueueHold = "WINDOW"            // coalescing window open
	QueueHoldBackoff          QueueHold = "BACKOFF"           // backoff
	QueueHoldRateLimit        QueueHold = "RATE_LIMIT"        // parsed rate-limit reset
	QueueHoldScopeBusy        QueueHold = "SCOPE_BUSY"        // a run of the same scope is live
	QueueHoldTaskBlocked      QueueHold = "TASK_BLOCKED"      // a blocker is open
	QueueHoldTaskCheckedOut   QueueHold = "TASK_CHECKED_OUT"  // another run holds the task
	QueueHoldWorkspaceCeiling QueueHold = "WORKSPACE_CEILING" // workspace ceiling reached
	QueueHoldBudgetReserved   QueueHold = "BUDGET_RESERVED"   // budget reserved by live runs
	QueueHoldGuardError       QueueHold = "GUARD_ERROR"       // a guard could not be evaluated
	QueueHoldNoWorker         QueueHold = "NO_WORKER"         // no worker took it
	QueueHoldNoScheduler      QueueHold = "NO_SCHEDULER"      // no scheduler runs: every server has ended, or is on standby
	QueueHoldWorkspaceHeld    QueueHold = "WORKSPACE_HELD"    // a person holds the workspace
	QueueHoldLoopBreaker      QueueHold = "LOOP_BREAKER"      // the agent has had as many unattended launches as it may
)
