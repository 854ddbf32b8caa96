package domain

import "io"

// WorkflowKind is how far the loop may act on the tasks of a workflow.
type WorkflowKind string

const (
	WorkflowKindKanban  WorkflowKind = "KANBAN"  // people decide when to launch
	WorkflowKindOffice  WorkflowKind = "OFFICE"  // the loop may act on its tasks
	WorkflowKindRoutine WorkflowKind = "ROUTINE" // tasks of heavy routines
)

var workflowKindValues = []WorkflowKind{
	WorkflowKindKanban,
	WorkflowKindOffice,
	WorkflowKindRoutine,
}

// Values lists every WorkflowKind, for the database check and the API enum.
func (WorkflowKind) Values() []string { return enumValues(workflowKindValues) }

// MarshalGQL writes the value as the API spells it.
func (v WorkflowKind) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *WorkflowKind) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, workflowKindValues) }

// StepAction is what entering a workflow step does.
type StepAction string

const (
	StepActionQueueRun       StepAction = "QUEUE_RUN"        // enqueue a run for the assignee, in any workflow
	StepActionAutoStartAgent StepAction = "AUTO_START_AGENT" // start the assignee when a task is made here
	StepActionAutoComplete   StepAction = "AUTO_COMPLETE"    // complete the task when its run succeeds
)

var stepActionValues = []StepAction{
	StepActionQueueRun,
	StepActionAutoStartAgent,
	StepActionAutoComplete,
}

// Values lists every StepAction, for the database check and the API enum.
func (StepAction) Values() []string { return enumValues(stepActionValues) }

// MarshalGQL writes the value as the API spells it.
func (v StepAction) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *StepAction) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, stepActionValues) }

// TaskState is where a task stands.
type TaskState string

const (
	TaskStateTodo       TaskState = "TODO"        // not begun
	TaskStateInProgress TaskState = "IN_PROGRESS" // being done
	TaskStateInReview   TaskState = "IN_REVIEW"   // waiting for review
	TaskStateBlocked    TaskState = "BLOCKED"     // cannot go on
	TaskStateDone       TaskState = "DONE"        // finished
	TaskStateCancelled  TaskState = "CANCELLED"   // given up
)

var taskStateValues = []TaskState{
	TaskStateTodo,
	TaskStateInProgress,
	TaskStateInReview,
	TaskStateBlocked,
	TaskStateDone,
	TaskStateCancelled,
}

// Values lists every TaskState, for the database check and the API enum.
func (TaskState) Values() []string { return enumValues(taskStateValues) }

// MarshalGQL writes the value as the API spells it.
func (v TaskState) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *TaskState) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, taskStateValues) }

// AuthorKind is who wrote a comment or did something.
type AuthorKind string

const (
	AuthorKindUser    AuthorKind = "USER"    // a person
	AuthorKindAgent   AuthorKind = "AGENT"   // an agent
	AuthorKindChannel AuthorKind = "CHANNEL" // somebody in a chat channel
	AuthorKindSystem  AuthorKind = "SYSTEM"  // the scheduler itself
)

var authorKindValues = []AuthorKind{
	AuthorKindUser,
	AuthorKindAgent,
	AuthorKindChannel,
	AuthorKindSystem,
}

// Values lists every AuthorKind, for the database check and the API enum.
func (AuthorKind) Values() []string { return enumValues(authorKindValues) }

// MarshalGQL writes the value as the API spells it.
func (v AuthorKind) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *AuthorKind) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, authorKindValues) }

// ApprovalStatus is how an approval stands.
type ApprovalStatus string

const (
	ApprovalStatusPending  ApprovalStatus = "PENDING"  // open
	ApprovalStatusApproved ApprovalStatus = "APPROVED" // yes
	ApprovalStatusRejected ApprovalStatus = "REJECTED" // no
)

var approvalStatusValues = []ApprovalStatus{
	ApprovalStatusPending,
	ApprovalStatusApproved,
	ApprovalStatusRejected,
}

// Values lists every ApprovalStatus, for the database check and the API enum.
func (ApprovalStatus) Values() []string { return enumValues(approvalStatusValues) }

// MarshalGQL writes the value as the API spells it.
func (v ApprovalStatus) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *ApprovalStatus) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, approvalStatusValues)
}

// TaskSessionState is how an agent-side conversation stands.
type TaskSessionState string

const (
	TaskSessionStateStarting        TaskSessionState = "STARTING"          // opening
	TaskSessionStateRunning         TaskSessionState = "RUNNING"           // at work
	TaskSessionStateWaitingForInput TaskSessionState = "WAITING_FOR_INPUT" // waits for input
	TaskSessionStateIdle            TaskSessionState = "IDLE"              // idle, can be resumed
	TaskSessionStateEnded           TaskSessionState = "ENDED"             // ended
)

var taskSessionStateValues = []TaskSessionState{
	TaskSessionStateStarting,
	TaskSessionStateRunning,
	TaskSessionStateWaitingForInput,
	TaskSessionStateIdle,
	TaskSessionStateEnded,
}

// Values lists every TaskSessionState, for the database check and the API enum.
func (TaskSessionState) Values() []string { return enumValues(taskSessionStateValues) }

// MarshalGQL writes the value as the API spells it.
func (v TaskSessionState) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *TaskSessionState) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, taskSessionStateValues)
}
