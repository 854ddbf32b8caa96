package domain

import (
	"fmt"
	"strconv"
)

// maxWorkflowSteps bounds the columns of a workflow.
const maxWorkflowSteps = 50

// WorkflowPlan is a workflow to make.
type WorkflowPlan struct {
	Name   string
	Kind   WorkflowKind
	System bool // made by the scheduler
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
	return WorkflowPlan{Name: "Routine", Kind: WorkflowKindRoutine, System: true, Hidden: true, Steps: []StepPlan{
		{Name: "In progress", State: TaskStateInProgress, OnEnter: []StepAction{StepActionAutoStartAgent, StepActionAutoComplete}},
		{Name: "Done", State: TaskStateDone, OnEnter: []StepAction{}},
	}}
}

// OfficeWorkflow is the workflow whose tasks the loop may act on (SPEC S5.1).
func OfficeWorkflow() WorkflowPlan {
	return WorkflowPlan{Name: "Office", Kind: WorkflowKindOffice, System: true, Steps: []StepPlan{
		{Name: "To do", State: TaskStateTodo, OnEnter: []StepAction{}},
		{Name: "In progress", State: TaskStateInProgress, OnEnter: []StepAction{}},
		{Name: "In review", State: TaskStateInReview, OnEnter: []StepAction{}},
		{Name: "Blocked", State: TaskStateBlocked, OnEnter: []StepAction{}},
		{Name: "Done", State: TaskStateDone, OnEnter: []StepAction{}},
		{Name: "Cancelled", State: TaskStateCancelled, OnEnter: []StepAction{}},
	}}
}

// Check trims the names of a workflow that somebody wants and says what is wrong with it.
func (p WorkflowPlan) Check() (WorkflowPlan, []FieldError) {
	var problems []FieldError
	p.Name, problems = CheckName(p.Name, nil)
	if p.Kind == WorkflowKindRoutine {
		problems = append(problems, FieldError{Field: []string{"kind"}, Code: UserErrorCodeInvalid, Message: "the workflow of routines is made with its workspace; choose KANBAN or OFFICE"})
	}
	switch {
	case len(p.Steps) == 0:
		problems = append(problems, FieldError{Field: []string{"steps"}, Code: UserErrorCodeRequired, Message: "a workflow has at least one step"})
	case len(p.Steps) > maxWorkflowSteps:
		problems = append(problems, FieldError{Field: []string{"steps"}, Code: UserErrorCodeTooLong, Message: fmt.Sprintf("a workflow has at most %d steps", maxWorkflowSteps)})
	}
	for i := range p.Steps {
		name, wrong := CheckName(p.Steps[i].Name, nil)
		p.Steps[i].Name = name
		for _, problem := range wrong {
			problems = append(problems, problem.Under("steps", strconv.Itoa(i)))
		}
	}
	return p, problems
}
