package mcpserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// refusal is what the API refuses, with its code.
type refusal struct {
	code, message string
	field         string // the last name of the path into the input; "" for none
}

// Error is the API's sentence.
func (r *refusal) Error() string { return r.message }

// userErrors are those of a mutation.
type userErrors []struct {
	Code, Message string
	Field         []string
}

// refused is the first of the problems; nil when there are none.
func (list userErrors) refused() error {
	if len(list) == 0 {
		return nil
	}
	r := &refusal{code: list[0].Code, message: list[0].Message}
	if n := len(list[0].Field); n > 0 {
		r.field = list[0].Field[n-1]
		if strings.Trim(r.field, "0123456789") == "" && n > 1 { // a place in a list
			r.field = list[0].Field[n-2]
		}
	}
	return r
}

// named are the API's names of what tools call otherwise.
var named = map[string]string{"taskId": "task_id", "parentId": "task_id", "assigneeId": "assignee", "blockedByIds": "blocked_by", "approvalId": "approval_id",
	"mentionedAgentIds": "mentions", "requestedByAgentId": "agent", "to": "state"}

// explain says why something was refused, and what to do next.
func explain(err error) error {
	if errors.Is(err, errNoAnswer) {
		return fmt.Errorf("%w. Nothing is known to be done. Call the tool again with the same arguments in a few seconds: what was done is not done twice. "+
			"If that fails, too, put the action into your last answer", err)
	}
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return err
	}
	said := strings.TrimSuffix(r.message, ".")
	argument := named[r.field]
	if argument == "" {
		argument = r.field
	}
	if argument != "" && !strings.Contains(said, argument) {
		said = argument + ": " + said
	}
	return errors.New(said + ". " + r.advice(argument))
}

// advice is what a model can do about a refusal.
func (r *refusal) advice(argument string) string {
	switch {
	case r.code == "UNAUTHENTICATED" || r.code == "STALE_LEASE":
		return "Stop working: nothing that you do from now on counts."
	case r.code == "FORBIDDEN":
		return "No tool can do that for you. Ask a person with request_approval, or say it in a comment."
	case r.code == "NOT_FOUND" && slices.Contains([]string{"assignee", "mentions"}, argument):
		return "list_agents has the ids of your colleagues: call again with one of them."
	case r.code == "NOT_FOUND" && argument == "blocked_by":
		return "list_children has the ids of your task's children: call again with ids of tasks that there are."
	case r.code == "NOT_FOUND" && argument == "approval_id":
		return "get_task lists the approvals of a task under approvals: call again with the id of one that is PENDING and that you are an approver of."
	case r.code == "INVALID_STATE" || r.code == "CONFLICT":
		return "Nothing was changed. Look at the task with get_task, then decide anew."
	}
	return "Nothing was done. Change that and call again."
}
