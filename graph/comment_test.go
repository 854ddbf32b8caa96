package graph_test

import (
	"strings"
	"testing"
)

// commentAnswer is what a comment answers of whom it wakes.
type commentAnswer struct {
	Comment         *struct{ ID string }
	WakeupRequests  []struct{ Source string }
	NotWoken        *string
	NotWokenMessage *string
	Replayed        bool

	MentionsNotWoken []struct {
		Agent           *struct{ ID string }
		Reason, Message string
	}
}

func (w *world) comment(task string, more map[string]any) (commentAnswer, string) {
	w.t.Helper()
	input := map[string]any{"taskId": task, "body": "and now?", "userId": "ann"}
	for k, v := range more {
		input[k] = v
	}
	var out struct{ CommentOnTask commentAnswer }
	problems := w.mutate("commentOnTask", "comment { id } wakeupRequests { source } notWoken notWokenMessage mentionsNotWoken { agent { id } reason message } replayed", input, &out)
	return out.CommentOnTask, problems
}

// A comment that wakes no assignee says so, why, and what to do (SPEC S3.8, S5.2).
func TestACommentSaysWhyItWakesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.agent("Ada"), w.agent("Ben")
	office := func(of string, more map[string]any) string {
		task := w.newTask(of, more).Task.ID
		w.sql(`UPDATE tasks SET workflow_id = (SELECT office_workflow_id FROM workspaces WHERE id = tasks.workspace_id) WHERE id = $1 AND (SELECT office_workflow_id FROM workspaces WHERE id = tasks.workspace_id) IS NOT NULL`, task)
		return task
	}
	moved := func(of, state string) string {
		task := office(of, map[string]any{"assigneeId": ada})
		w.must("moveTask", "", map[string]any{"taskId": task, "to": state})
		return task
	}
	var made struct {
		CreateWorkflow struct{ Workflow struct{ ID string } }
	}
	if e := w.mutate("createWorkflow", "workflow { id }", map[string]any{"workspaceId": w.workspace, "name": "Board", "kind": "KANBAN", "steps": []any{map[string]any{"name": "Do", "state": "TODO"}}}, &made); e != "" {
		t.Fatal(e)
	}
	board := made.CreateWorkflow.Workflow.ID
	for name, c := range map[string]struct {
		task  string
		more  map[string]any
		why   string
		sends string
		hint  string
	}{
		"an open task":                          {office("open", map[string]any{"assigneeId": ada}), nil, "", "COMMENT", ""},
		"a task that is done":                   {moved("done", "DONE"), nil, "TASK_ENDED", "", "moveTask"},
		"a task that is done, with a mention":   {moved("done too", "DONE"), map[string]any{"mentionedAgentIds": []string{ben}}, "TASK_ENDED", "USER", "moveTask"},
		"a task that is cancelled":              {moved("cancelled", "CANCELLED"), nil, "TASK_ENDED", "", "moveTask"},
		"a task without an assignee":            {office("nobody's", nil), nil, "NO_ASSIGNEE", "", "assignTask"},
		"a task of a board":                     {w.newTask("board", map[string]any{"assigneeId": ada, "workflowId": board}).Task.ID, nil, "NOT_OFFICE", "", "queueRun"},
		"the assignee's own comment":            {office("own", map[string]any{"assigneeId": ada}), map[string]any{"userId": nil, "authorAgentId": ada}, "AUTHOR", "", "own"},
		"another agent's comment":               {office("other's", map[string]any{"assigneeId": ada}), map[string]any{"userId": nil, "authorAgentId": ben}, "", "COMMENT", ""},
		"a comment through a channel on a done": {moved("done thrice", "DONE"), map[string]any{"userId": nil, "channel": map[string]any{"channel": "slack"}}, "TASK_ENDED", "", "moveTask"},
	} {
		key := map[string]any{"idempotencyKey": name}
		for k, v := range c.more {
			key[k] = v
		}
		got, problems := w.comment(c.task, key)
		var sent []string
		for _, r := range got.WakeupRequests {
			sent = append(sent, r.Source)
		}
		why, text := "", ""
		if got.NotWoken != nil {
			why = *got.NotWoken
		}
		if got.NotWokenMessage != nil {
			text = *got.NotWokenMessage
		}
		if problems != "" || why != c.why || strings.Join(sent, " ") != c.sends || (text == "") != (why == "") || !strings.Contains(text, c.hint) {
			t.Errorf("%s: %s, not woken %q (%s), sent %v, want %q and %q", name, problems, why, text, sent, c.why, c.sends)
		}
		w.sql(`UPDATE tasks SET state = 'IN_PROGRESS' WHERE id = $1`, c.task) // what a repeated call says is of then
		again, _ := w.comment(c.task, key)
		if !again.Replayed || again.Comment.ID != got.Comment.ID || (again.NotWoken == nil) != (got.NotWoken == nil) || again.NotWoken != nil && *again.NotWoken != why || len(again.WakeupRequests) != len(got.WakeupRequests) {
			t.Errorf("%s, once more: %+v, want as before %+v", name, again, got)
		}
	}
	archived := office("archived", map[string]any{"assigneeId": ada})
	w.must("archiveTask", "", map[string]any{"taskId": archived})
	if got, problems := w.comment(archived, nil); problems != "INVALID_STATE input.taskId" || got.Comment != nil || got.NotWoken != nil {
		t.Errorf("on an archived task: %s, %+v", problems, got)
	}
}

// An agent that mentions itself hears that nobody is woken by that, and why, beside what is said of the assignee.
func TestAnAgentThatMentionsItselfHearsWhyItIsNotWoken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.agent("Ada"), w.agent("Ben")
	for name, c := range map[string]struct {
		assignee string
		mentions []string
		notWoken string
		wakes    int
		inVain   bool
	}{
		"alone, on nobody's task":       {"", []string{ben}, "NO_ASSIGNEE", 0, true},
		"alone, on its own task":        {ben, []string{ben}, "AUTHOR", 0, true},
		"alone, on another one's task":  {ada, []string{ben}, "", 1, true},
		"with another, on nobody's":     {"", []string{ada, ben}, "NO_ASSIGNEE", 1, true},
		"another alone, on nobody's":    {"", []string{ada}, "NO_ASSIGNEE", 1, false},
		"nobody, on another one's task": {ada, nil, "", 1, false},
	} {
		more := map[string]any{}
		if c.assignee != "" {
			more["assigneeId"] = c.assignee
		}
		task := w.newTask(name, more).Task.ID
		said := map[string]any{"userId": nil, "authorAgentId": ben, "mentionedAgentIds": append([]string{}, c.mentions...), "idempotencyKey": name}
		for range 2 { // the second call is the first one's answer
			got, problems := w.comment(task, said)
			if why := got.NotWoken; problems != "" || (why == nil) != (c.notWoken == "") || why != nil && *why != c.notWoken || len(got.WakeupRequests) != c.wakes {
				t.Errorf("%s: %s, %+v", name, problems, got)
			}
			list := got.MentionsNotWoken
			if (len(list) == 1) != c.inVain || c.inVain && (list[0].Agent == nil || list[0].Agent.ID != ben || list[0].Reason != "SELF_MENTION" || !strings.Contains(list[0].Message, "self_wake")) {
				t.Errorf("%s: mentioned in vain are %+v", name, list)
			}
		}
	}
}

// A user's id that names a token would be shown as that token's doing.
func TestAUsersIdIsNoTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	task := w.newTask("Work", map[string]any{"assigneeId": agent}).Task.ID
	asked := struct {
		RequestApproval struct{ Approval struct{ ID string } }
	}{}
	if e := w.mutate("requestApproval", "approval { id }", map[string]any{"taskId": task, "requestedByAgentId": agent, "note": "May I?"}, &asked); e != "" {
		t.Fatal(e)
	}
	for id, want := range map[string]string{"tok_01k00000000000000000000000": "INVALID input.userId", "TOK_x": "INVALID input.userId", "a\nb": "INVALID input.userId",
		strings.Repeat("a", 151): "TOO_LONG input.userId", "ann": "", "token": ""} {
		for mutation, input := range map[string]map[string]any{
			"commentOnTask":  {"taskId": task, "body": "x"},
			"wakeAgent":      {"agentId": agent},
			"decideApproval": {"approvalId": asked.RequestApproval.Approval.ID, "decision": "APPROVE"},
		} {
			if want == "" && mutation == "decideApproval" && id != "ann" {
				continue // it is decided once
			}
			input["userId"] = id
			if got := w.mutate(mutation, "", input, nil); got != want {
				t.Errorf("%s by %.20q: %q, want %q", mutation, id, got, want)
			}
		}
	}
}
