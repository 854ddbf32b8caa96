package domain

// WorkflowPlan is a workflow to make.
type WorkflowPlan struct {
	Name   string
	Kind   WorkflowKind
	Hidden bool // left out of boards
	Steps  []StepPlan
}

// StepPlan is one column of a WorkflowPlan.
type StepPlan struct {
	Name    string
	State   TaskState
	OnEnter []StepAction
}

// RoutineWorkflow is the hidden workflow of heavy routines' tasks: one auto-completing step (SPEC S4.7).
func RoutineWorkflow() WorkflowPlan {
	return WorkflowPlan{Name: "Routine", Kind: WorkflowKindRoutine, Hidden: true, Steps: []StepPlan{
		{Name: "In progress", State: TaskStateInProgress, OnEnter: []StepAction{StepActionAutoStartAgent, StepActionAutoComplete}},
		{Name: "Done", State: TaskStateDone, OnEnter: []StepAction{}},
	}}
}

// OfficeWorkflow is the workflow whose tasks the loop may act on (SPEC S5.1).
func OfficeWorkflow() WorkflowPlan {
	return WorkflowPlan{Name: "Office", Kind: WorkflowKindOffice, Steps: []StepPlan{
		{Name: "To do", State: TaskStateTodo, OnEnter: []StepAction{}},
		{Name: "In progress", State: TaskStateInProgress, OnEnter: []StepAction{}},
		{Name: "In review", State: TaskStateInReview, OnEnter: []StepAction{}},
		{Name: "Blocked", State: TaskStateBlocked, OnEnter: []StepAction{}},
		{Name: "Done", State: TaskStateDone, OnEnter: []StepAction{}},
		{Name: "Cancelled", State: TaskStateCancelled, OnEnter: []StepAction{}},
	}}
}
