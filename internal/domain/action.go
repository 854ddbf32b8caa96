package domain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ActionType is what a result may ask for (SPEC S7.5).
type ActionType string

const (
	ActionComment         ActionType = "comment"          // comment on the run's task
	ActionMoveTask        ActionType = "move_task"        // move it
	ActionCompleteTask    ActionType = "complete_task"    // complete it
	ActionCreateSubtask   ActionType = "create_subtask"   // make a child of it
	ActionRequestApproval ActionType = "request_approval" // ask for a decision on it
	ActionAddLink         ActionType = "add_link"         // name something that was made elsewhere, such as a pull request
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
	return append(names, string(ActionAddLink), string(ActionDecideApproval), string(ActionSelfWake))
}

// Action is one thing that a result asks for. Problem says why the action is refused by its form alone. Such an action
// is recorded, and nothing else happens.
type Action struct {
	Type    ActionType
	Problem string

	Body             string    // comment …
	Mentions         []string  // ids of agents to wake by it
	State            TaskState // move_task
	Note             string    // move_task, decide_approval
	Kind             LinkKind  // add_link …
	URL              string
	Title            string // add_link, create_subtask …
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
	Mentions         []string       `json:"mentions"`
	State            TaskState      `json:"state"`
	Note             string         `json:"note"`
	Kind             LinkKind       `json:"kind"`
	URL              string         `json:"url"`
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
		return Action{Problem: "it cannot be read: " + CutText(err.Error(), maxActionProblem, "…")}
	}
	a := Action{Type: w.Type, Body: w.Body, Mentions: w.Mentions, State: w.State, Note: w.Note, Kind: cmp.Or(w.Kind, LinkKindOther), URL: w.URL, Title: w.Title, Description: w.Description, Assignee: w.Assignee,
		BlockedBy: w.BlockedBy, RequiresApproval: w.RequiresApproval, Question: w.Question, ApprovalID: w.ApprovalID, Reason: w.Reason, Payload: w.Payload}
	if w.Approved != nil {
		a.Approved = *w.Approved
	}
	a.Problem = a.check(aboutTask, w.Approved != nil)
	a.Type = ActionType(shorten(string(a.Type))) // it is recorded, whatever it is
	return a
}

func (a Action) check(aboutTask, decided bool) string {
	if slices.Contains(taskActions, a.Type) && !aboutTask {
		return "the run has no task"
	}
	switch a.Type {
	case ActionComment:
		return cmp.Or(missing(a.Body, "body"), noIDs(a.Mentions, "mentions"))
	case ActionMoveTask:
		if !slices.Contains(taskStateValues, a.State) {
			return fmt.Sprintf("state is %q, want one of %v", shorten(string(a.State)), taskStateValues)
		}
	case ActionCompleteTask:
	case ActionCreateSubtask:
		return a.checkSubtask()
	case ActionRequestApproval:
		return missing(a.Question, "question")
	case ActionAddLink:
		return a.checkLink()
	case ActionDecideApproval:
		if !decided {
			return "approved is missing"
		}
		return cmp.Or(missing(a.ApprovalID, "approval_id"), noID(a.ApprovalID, "approval_id"))
	case ActionSelfWake:
		return a.checkSelfWake()
	case "":
		return "type is missing"
	default:
		return fmt.Sprintf("there is no action %q", shorten(string(a.Type)))
	}
	return ""
}

// checkSubtask checks what names other records; the texts are those of any task (CheckTaskTexts).
func (a Action) checkSubtask() string {
	if problem := cmp.Or(missing(a.Title, "title"), noID(a.Assignee, "assignee")); problem != "" {
		return problem
	}
	return noIDs(a.BlockedBy, "blocked_by")
}

// Bounds of what a self wake tells, which are those of a person's wake.
const (
	maxWakeReason  = maxCommentBody
	maxWakePayload = 32 << 10 // bytes of JSON
)

// SelfWakeProblems are why a self wake that a call asks for is refused.
func (a Action) SelfWakeProblems() []FieldError { return fieldProblem(a.checkSelfWake()) }

// LinkProblems are why a link that a call adds is refused.
func (a Action) LinkProblems() []FieldError { return fieldProblem(a.checkLink()) }

// fieldProblem is a problem of an action, which begins with the name of a field; "" for none.
func fieldProblem(problem string) (problems []FieldError) {
	if problem != "" {
		field, _, _ := strings.Cut(problem, " ")
		problems = append(problems, FieldError{Field: []string{field}, Code: UserErrorCodeInvalid, Message: problem})
	}
	return problems
}

func (a Action) checkSelfWake() string {
	payload, err := json.Marshal(a.Payload)
	switch {
	case a.Reason == "":
		return "reason is missing"
	case len(a.Reason) > maxWakeReason:
		return "reason has more than 64 KiB"
	case err != nil || len(payload) > maxWakePayload:
		return "payload has more than 32 KiB of JSON: keep the rest where the next run finds it"
	}
	return ""
}

// Bounds of what a refused action says of itself, in bytes.
const (
	maxActionProblem = 500
	maxActionID      = 64
)

// noID says that a text is longer than any id, so that it is neither looked for nor repeated.
func noID(id, name string) string {
	if len(id) > maxActionID {
		return fmt.Sprintf("%s is no id: %q", name, shorten(id))
	}
	return ""
}

// noIDs is noID for a list, which may not be too long either.
func noIDs(list []string, name string) string {
	if len(list) > maxTaskLinks {
		return fmt.Sprintf("%s has %d ids, at most %d may be named", name, len(list), maxTaskLinks)
	}
	for _, id := range list {
		if problem := noID(id, name); problem != "" {
			return problem
		}
	}
	return ""
}

func missing(value, name string) string {
	if value == "" {
		return name + " is missing"
	}
	return ""
}
