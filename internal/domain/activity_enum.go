package domain

// ActivityCode is what an activity entry is about.
//
//rouse:enum
type ActivityCode string

const (
	ActivityCodeWakeupQueued               ActivityCode = "WAKEUP_QUEUED"                // wakeup queued
	ActivityCodeWakeupCoalesced            ActivityCode = "WAKEUP_COALESCED"             // wakeup coalesced
	ActivityCodeWakeupIdleSkipped          ActivityCode = "WAKEUP_IDLE_SKIPPED"          // wakeup idle skipped
	ActivityCodeWakeupAgentInactive        ActivityCode = "WAKEUP_AGENT_INACTIVE"        // wakeup agent inactive
	ActivityCodeWakeupCheckoutHeld         ActivityCode = "WAKEUP_CHECKOUT_HELD"         // wakeup checkout held
	ActivityCodeWakeupResent               ActivityCode = "WAKEUP_RESENT"                // wakeup resent
	ActivityCodeWakeupBudgetBlocked        ActivityCode = "WAKEUP_BUDGET_BLOCKED"        // wakeup budget blocked
	ActivityCodeWakeupStaleCancelled       ActivityCode = "WAKEUP_STALE_CANCELLED"       // wakeup stale cancelled
	ActivityCodeWakeupRetryScheduled       ActivityCode = "WAKEUP_RETRY_SCHEDULED"       // wakeup retry scheduled
	ActivityCodeWakeupRetryCancelled       ActivityCode = "WAKEUP_RETRY_CANCELLED"       // wakeup retry cancelled
	ActivityCodeRecoveryDispatch           ActivityCode = "RECOVERY_DISPATCH"            // recovery dispatch
	ActivityCodeRecoverySweepComplete      ActivityCode = "RECOVERY_SWEEP_COMPLETE"      // recovery sweep complete
	ActivityCodeRunClaimed                 ActivityCode = "RUN_CLAIMED"                  // run claimed
	ActivityCodeRunLaunched                ActivityCode = "RUN_LAUNCHED"                 // run launched
	ActivityCodeRunFinished                ActivityCode = "RUN_FINISHED"                 // run finished
	ActivityCodeRunFailed                  ActivityCode = "RUN_FAILED"                   // run failed
	ActivityCodeRunCancelled               ActivityCode = "RUN_CANCELLED"                // run cancelled
	ActivityCodeRunRescued                 ActivityCode = "RUN_RESCUED"                  // run rescued
	ActivityCodeRoutineChanged             ActivityCode = "ROUTINE_CHANGED"              // routine changed
	ActivityCodeRoutineFired               ActivityCode = "ROUTINE_FIRED"                // routine fired
	ActivityCodeTriggerChanged             ActivityCode = "TRIGGER_CHANGED"              // trigger changed
	ActivityCodeTriggerSecretRotated       ActivityCode = "TRIGGER_SECRET_ROTATED"       // trigger secret rotated
	ActivityCodeAgentChanged               ActivityCode = "AGENT_CHANGED"                // agent changed
	ActivityCodeAgentPaused                ActivityCode = "AGENT_PAUSED"                 // agent paused
	ActivityCodeAgentResumed               ActivityCode = "AGENT_RESUMED"                // agent resumed
	ActivityCodeTaskChanged                ActivityCode = "TASK_CHANGED"                 // task changed
	ActivityCodeTaskCommented              ActivityCode = "TASK_COMMENTED"               // task commented
	ActivityCodeApprovalDecided            ActivityCode = "APPROVAL_DECIDED"             // approval decided
	ActivityCodeBudgetChanged              ActivityCode = "BUDGET_CHANGED"               // budget changed
	ActivityCodeBudgetThreshold            ActivityCode = "BUDGET_THRESHOLD"             // budget threshold
	ActivityCodeSettingsChanged            ActivityCode = "SETTINGS_CHANGED"             // settings changed
	ActivityCodeWebhookRejected            ActivityCode = "WEBHOOK_REJECTED"             // webhook rejected
	ActivityCodeApprovalRequested          ActivityCode = "APPROVAL_REQUESTED"           // approval requested
	ActivityCodeInboxItemMade              ActivityCode = "INBOX_ITEM_MADE"              // inbox item made
	ActivityCodeInboxItemHandled           ActivityCode = "INBOX_ITEM_HANDLED"           // inbox item handled
	ActivityCodeTokenCreated               ActivityCode = "TOKEN_CREATED"                // token created
	ActivityCodeTokenRevoked               ActivityCode = "TOKEN_REVOKED"                // token revoked
	ActivityCodeProjectChanged             ActivityCode = "PROJECT_CHANGED"              // project changed
	ActivityCodeWorkflowChanged            ActivityCode = "WORKFLOW_CHANGED"             // workflow changed
	ActivityCodeWorkspaceCreated           ActivityCode = "WORKSPACE_CREATED"            // workspace created
	ActivityCodeExecutorTested             ActivityCode = "EXECUTOR_TESTED"              // executor tested
	ActivityCodeWakeupRequested            ActivityCode = "WAKEUP_REQUESTED"             // wakeup requested
	ActivityCodeRunCancelRequested         ActivityCode = "RUN_CANCEL_REQUESTED"         // run cancel requested
	ActivityCodeWorkspaceHeld              ActivityCode = "WORKSPACE_HELD"               // workspace held
	ActivityCodeWorkspaceReleased          ActivityCode = "WORKSPACE_RELEASED"           // workspace released
	ActivityCodeWorkspaceChanged           ActivityCode = "WORKSPACE_CHANGED"            // workspace changed
	ActivityCodeNotificationChannelChanged ActivityCode = "NOTIFICATION_CHANNEL_CHANGED" // notification channel changed
	ActivityCodeNotificationChannelTested  ActivityCode = "NOTIFICATION_CHANNEL_TESTED"  // notification channel tested
)

// InboxKind is what a person should look at.
//
//rouse:enum
type InboxKind string

const (
	InboxKindAgentError         InboxKind = "AGENT_ERROR"         // a run gave up
	InboxKindApprovalRequest    InboxKind = "APPROVAL_REQUEST"    // approval wanted
	InboxKindBudgetAlert        InboxKind = "BUDGET_ALERT"        // budget
	InboxKindLoopBreaker        InboxKind = "LOOP_BREAKER"        // hop limit or backlog
	InboxKindFiresWait          InboxKind = "FIRES_WAIT"          // fires of a routine wait for an earlier one
	InboxKindWorkingCopy        InboxKind = "WORKING_COPY"        // a working copy is kept for the work in it
	InboxKindNotificationFailed InboxKind = "NOTIFICATION_FAILED" // a notification was given up
)
