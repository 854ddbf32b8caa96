package domain

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ActionType is what a result may ask for (SPEC S7.5).
type ActionType string

const (
	ActionComment         ActionType = "comment"          // comment on the run's task
	ActionMoveTask        ActionType = "move_task"        // move it
	ActionCompleteTask    ActionType = "complete_task"    // complete it
	ActionCreateSubtask   ActionType = "create_subtask"   // make a child of it
	ActionRequestApproval ActionType = "request_approval" // ask for a decision on it
	ActionDecideApproval  ActionType = "decide_approval"  // decide an approval
	ActionSelfWake        ActionType = "self_wake"        // be woken again
)

var taskActions = []ActionType{ActionComment, ActionMoveTask, ActionCompleteTask, ActionCreateSubtask, ActionRequestApproval}

// maxActions bounds the actions of one result.
const maxActions = 50

// ActionsOf are the actions that are carried out for a run, as the prompt names them.
func ActionsOf(aboutTask bool) []string {
	var names []string
	if aboutTask {
		for _, a := range taskActions {
			names = append(names, string(a))
		}
	}
	return append(names, string(ActionDecideApproval), string(ActionSelfWake))
}

// Action is one thing that a result asks for. Problem says why it is refused before anything is looked at; such an action
// is recorded and nothing else.
type Action struct {
	Type    ActionType
	Problem string

	Body             string    // comment
	State            TaskState // move_task
	Note             string    // move_task, decide_approval
	Title            string    // create_subtask …
	Description      string
	Assignee         string
	BlockedBy        []string
	RequiresApproval bool
	Question         string // request_approval
	ApprovalID       string // decide_approval …
	Approved         bool
	Reason           string // self_wake …
	Payload          map[string]any
}

// ParseActions reads the actions of a result object, in their order. Every member of the list gives an action: what cannot
// be read or is not known has a Problem. aboutTask says that the run has a task.
func ParseActions(result map[string]any, aboutTask bool) []Action {
	list, ok := result["actions"].([]any)
	if !ok {
		if result["actions"] == nil {
			return nil
		}
		return []Action{{Problem: "actions is not a list"}}
	}
	var out []Action
	for i, raw := range list {
		if i == maxActions {
			return append(out, Action{Problem: fmt.Sprintf("only the first %d of %d actions are carried out", maxActions, len(list))})
		}
		out = append(out, parseAction(raw, aboutTask))
	}
	return out
}

// wireAction is an action as agents write it.
type wireAction struct {
	Type             ActionType     `json:"type"`
	Body             string         `json:"body"`
	State            TaskState      `json:"state"`
	Note             string         `json:"note"`
	Title            string         `json:"title"`
	Description      string         `json:"description"`
	Assignee         string         `json:"assignee"`
	BlockedBy        []string       `json:"blocked_by"`
	RequiresApproval bool           `json:"requires_approval"`
	Question         string         `json:"question"`
	ApprovalID       string         `json:"approval_id"`
	Approved         *bool          `json:"approved"`
	Reason           string         `json:"reason"`
	Payload          map[string]any `json:"payload"`
}

func parseAction(raw any, aboutTask bool) Action {
	var w wireAction
	text, err := json.Marshal(raw)
	if err == nil {
		err = json.Unmarshal(text, &w)
	}
	if err != nil {
		return Action{Problem: "it cannot be read: " + err.Error()}
	}
	a := Action{Type: w.Type, Body: w.Body, State: w.State, Note: w.Note, Title: w.Title, Description: w.Description, Assignee: w.Assignee,
		BlockedBy: w.BlockedBy, RequiresApproval: w.RequiresApproval, Question: w.Question, ApprovalID: w.ApprovalID, Reason: w.Reason, Payload: w.Payload}
	if w.Approved != nil {
		a.Approved = *w.Approved
	}
	a.Problem = a.check(aboutTask, w.Approved != nil)
	return a
}

func (a Action) check(aboutTask, decided bool) string {
	if slices.Contains(taskActions, a.Type) && !aboutTask {
		return "the run has no task"
	}
	switch a.Type {
	case ActionComment:
		return missing(a.Body, "body")
	case ActionMoveTask:
		if !slices.Contains(taskStateValues, a.State) {
			return fmt.Sprintf("state is %q, want one of %v", a.State, taskStateValues)
		}
	case ActionCompleteTask:
	case ActionCreateSubtask:
		return missing(a.Title, "title")
	case ActionRequestApproval:
		return missing(a.Question, "question")
	case ActionDecideApproval:
		if !decided {
			return "approved is missing"
		}
		return missing(a.ApprovalID, "approval_id")
	case ActionSelfWake:
		return missing(a.Reason, "reason")
	case "":
		return "type is missing"
	default:
		return fmt.Sprintf("there is no action %q", a.Type)
	}
	return ""
}

func missing(value, name string) string {
	if value == "" {
		return name + " is missing"
	}
	return ""
}
