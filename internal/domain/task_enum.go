package domain

// WorkflowKind is how far the loop may act on the tasks of a workflow.
//
//rouse:enum
type WorkflowKind string

const (
	WorkflowKindKanban  WorkflowKind = "KANBAN"  // people decide when to launch
	WorkflowKindOffice  WorkflowKind = "OFFICE"  // the loop may act on its tasks
	WorkflowKindRoutine WorkflowKind = "ROUTINE" // tasks of heavy routines
)

// StepAction is what entering a workflow step does.
//
//rouse:enum
type StepAction string

const (
	StepActionQueueRun       StepAction = "QUEUE_RUN"        // enqueue a run for the assignee, in any workflow
	StepActionAutoStartAgent StepAction = "AUTO_START_AGENT" // start the assignee when a task is made here
	StepActionAutoComplete   StepAction = "AUTO_COMPLETE"    // complete the task when its run succeeds
)

// TaskState is where a task stands.
//
//rouse:enum
type TaskState string

const (
	TaskStateTodo       TaskState = "TODO"        // not begun
	TaskStateInProgress TaskState = "IN_PROGRESS" // being done
	TaskStateInReview   TaskState = "IN_REVIEW"   // waiting for review
	TaskStateBlocked    TaskState = "BLOCKED"     // cannot go on
	TaskStateDone       TaskState = "DONE"        // finished
	TaskStateCancelled  TaskState = "CANCELLED"   // given up
)

// AuthorKind is who wrote a comment or did something.
//
//rouse:enum
type AuthorKind string

const (
	AuthorKindUser    AuthorKind = "USER"    // a person
	AuthorKindAgent   AuthorKind = "AGENT"   // an agent
	AuthorKindChannel AuthorKind = "CHANNEL" // somebody in a chat channel
	AuthorKindSystem  AuthorKind = "SYSTEM"  // the scheduler itself
)

// ApprovalStatus is how an approval stands.
//
//rouse:enum
type ApprovalStatus string

const (
	ApprovalStatusPending  ApprovalStatus = "PENDING"  // open
	ApprovalStatusApproved ApprovalStatus = "APPROVED" // yes
	ApprovalStatusRejected ApprovalStatus = "REJECTED" // no
)

// TaskSessionState is how an agent-side conversation stands.
//
//rouse:enum
type TaskSessionState string

const (
	TaskSessionStateStarting        TaskSessionState = "STARTING"          // opening
	TaskSessionStateRunning         TaskSessionState = "RUNNING"           // at work
	TaskSessionStateWaitingForInput TaskSessionState = "WAITING_FOR_INPUT" // waits for input
	TaskSessionStateIdle            TaskSessionState = "IDLE"              // idle, can be resumed
	TaskSessionStateEnded           TaskSessionState = "ENDED"             // ended
)
