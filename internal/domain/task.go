package domain

import (
	"slices"
	"strings"
)

// MaxTaskTitle is the longest title of a task, in characters.
const MaxTaskTitle = 200

// Bounds of a task's other texts and lists.
const (
	maxTaskDescription = 64 << 10 // bytes
	maxTaskLinks       = 100      // blockers, reviewers, approvers, each
	maxCommentBody     = 64 << 10 // bytes
)

// Ended says whether work on a task in this state is over.
func (v TaskState) Ended() bool { return v == TaskStateDone || v == TaskStateCancelled }

// IsOffice says whether the loop may act on a task (SPEC S5.1): the task has a project, or its workflow is the
// workspace's office workflow or the ROUTINE workflow. No other Go code decides this; officeTask in internal/store is
// the same rule in SQL.
func IsOffice(hasProject, inOfficeWorkflow bool, kind WorkflowKind) bool {
	return hasProject || inOfficeWorkflow || kind == WorkflowKindRoutine
}

// CheckTaskTexts trims a task's title and adds what is wrong with its texts to problems.
func CheckTaskTexts(title, description string, problems []FieldError) (string, []FieldError) {
	title, problems = checkTitle(title, problems)
	return title, checkDescription(description, problems)
}

func checkDescription(description string, problems []FieldError) []FieldError {
	if len(description) > maxTaskDescription {
		problems = append(problems, FieldError{Field: []string{"description"}, Code: UserErrorCodeTooLong, Message: "a description has at most 64 KiB"})
	}
	return problems
}

// ChangedTaskTexts gives a task's title and description after a change, and the problems of texts that the change
// gives. A text that the change leaves as it is has no problem, so that it cannot stop the rest of the change.
func ChangedTaskTexts(oldTitle, oldDescription string, title, description Change[string]) (newTitle, newDescription string, problems []FieldError) {
	newTitle, newDescription = oldTitle, description.Or(oldDescription, "")
	if given := title.Or("", ""); title.Set && (given == "" || given != oldTitle) {
		newTitle, problems = checkTitle(given, nil)
	}
	if description.Set {
		problems = checkDescription(newDescription, problems)
	}
	return newTitle, newDescription, problems
}

// CheckCommentBody says what is wrong with the text of a comment, a note or a question.
func CheckCommentBody(field, body string) []FieldError {
	switch {
	case strings.TrimSpace(body) == "":
		return []FieldError{{Field: []string{field}, Code: UserErrorCodeRequired, Message: "write something"}}
	case len(body) > maxCommentBody:
		return []FieldError{{Field: []string{field}, Code: UserErrorCodeTooLong, Message: "a text has at most 64 KiB"}}
	}
	return nil
}

// CheckNote says what is wrong with a text that may also be left out.
func CheckNote(field, note string) []FieldError {
	if note == "" {
		return nil
	}
	return CheckCommentBody(field, note)
}

// CheckLinks says what is wrong with a list of tasks or agents that a task is to be linked to.
func CheckLinks(field string, ids []string) []FieldError {
	if len(ids) > maxTaskLinks {
		return []FieldError{{Field: []string{field}, Code: UserErrorCodeTooLong, Message: "at most 100 may be named"}}
	}
	return nil
}

// BlockerCycle finds a way from one of the new blockers of a task back to the task itself, along blockedBy: the tasks
// that each task waits for. It returns the cycle, with the task first and last; nil when there is no cycle.
func BlockerCycle(taskID string, blockers []string, blockedBy map[string][]string) []string {
	seen := map[string]bool{}
	var find func(at string, way []string) []string
	find = func(at string, way []string) []string {
		way = append(slices.Clone(way), at)
		if at == taskID {
			return way
		}
		if seen[at] {
			return nil
		}
		seen[at] = true
		for _, next := range blockedBy[at] {
			if found := find(next, way); found != nil {
				return found
			}
		}
		return nil
	}
	for _, b := range blockers {
		if way := find(b, []string{taskID}); way != nil {
			return way
		}
	}
	return nil
}
