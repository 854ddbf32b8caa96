package prompt

import (
	"fmt"
	"slices"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// actionForms are the actions of SPEC S7.5 with the form each is written in.
var actionForms = []struct {
	name          domain.ActionType
	form, meaning string
}{
	{domain.ActionComment, `{"type":"comment","body":"…","mentions":["<agent id>"]}`, "comment on your task; mentions, which may be left out, wakes those agents"},
	{domain.ActionMoveTask, `{"type":"move_task","state":"IN_REVIEW","note":"…"}`, "move your task to TODO, IN_PROGRESS, IN_REVIEW, BLOCKED, DONE or CANCELLED"},
	{domain.ActionCompleteTask, `{"type":"complete_task"}`, "finish your task; it goes to review if it needs an approval"},
	{domain.ActionCreateSubtask, `{"type":"create_subtask","title":"…","description":"…","assignee":"<agent id>","blocked_by":["<task id>"],"requires_approval":false}`,
		`make a subtask; "#1" in blocked_by is the one that the first action of this list makes`},
	{domain.ActionRequestApproval, `{"type":"request_approval","question":"…"}`, "ask for a decision; you are woken with it"},
	{domain.ActionAddLink, `{"type":"add_link","kind":"PULL_REQUEST","url":"https://…","title":"…"}`, "show people something that you made elsewhere: a PULL_REQUEST, a PREVIEW or an OTHER"},
	{domain.ActionDecideApproval, `{"type":"decide_approval","approval_id":"…","approved":true,"note":"…"}`, "decide an approval that waits for you"},
	{domain.ActionSelfWake, `{"type":"self_wake","reason":"…"}`, "be woken again with that reason"},
}

// can says whether an action will be carried out for the run.
func (r Run) can(action domain.ActionType) bool { return slices.Contains(r.Actions, string(action)) }

// answer says how to end, with one whole example. A resumed session is told the actions again, because a long conversation
// forgets them.
func answer(in Input) string {
	parts := []string{"# How to answer\n"}
	if in.Delta {
		parts = append(parts, "As before, end your last message with one JSON object on a line of its own, and nothing behind it. For example:\n")
	} else {
		parts = append(parts, "Say what you do while you do it. End your last message with one JSON object on a line of its own, and nothing behind it. A whole example:\n")
	}
	parts = append(parts, example(in)+"\n")
	if !in.Delta {
		parts = append(parts, "The summary says what you did and found, next_action what comes next, if anything does.\n")
	}
	parts = append(parts, actions(in.Run), ending(in.Run))
	if !in.Delta {
		parts = append(parts, tools(in.Run))
	}
	return strings.TrimRight(lines(parts...), "\n") + "\n"
}

// actions lists what will be carried out.
func actions(run Run) string {
	var known []string
	for _, action := range actionForms {
		if run.can(action.name) {
			known = append(known, fmt.Sprintf("- %s: %s", action.form, action.meaning))
		}
	}
	if len(known) == 0 {
		return "Actions in the result are not carried out for this run.\n"
	}
	return "These actions are carried out when you have ended, in the order of your list:\n\n" + strings.Join(known, "\n") + "\n"
}

// ending says what becomes of the task, and how to say that the work cannot go on.
func ending(run Run) string {
	const again = `{"error":"why"} in place of the summary says that the attempt broke: the same work is then begun again, at full price.`
	switch {
	case run.Task == nil || !run.can(domain.ActionMoveTask):
		return "What you could not do, and why, belongs into the summary. " + again + "\n"
	case run.Task.Completes:
		return `The task is done when you end and say nothing else about its state. To keep it open, add {"type":"move_task","state":"IN_PROGRESS"}. ` + stuck + again + "\n"
	}
	return "The task stays open unless complete_task is among the actions. " + stuck + again + "\n"
}

const stuck = `When you cannot go on, add {"type":"move_task","state":"BLOCKED","note":"what is missing"}, or request_approval when somebody has to decide. `

// example is a whole answer, of the kind that the newest wake asks for.
func example(in Input) string {
	basis, approval := domain.WakeBasis(""), "<approval id>"
	var source domain.WakeupSource
	if n := len(in.Wakes); n > 0 {
		newest := in.Wakes[n-1]
		source = newest.Source
		if p, ok := newest.Payload.(*domain.TaskPayload); ok {
			basis = p.Basis
		}
		if len(newest.Approvals) > 0 {
			approval = oneLine(newest.Approvals[0].ID)
		}
	}
	run := in.Run
	switch {
	case basis == domain.WakeBasisApprover && run.can(domain.ActionDecideApproval):
		return `{"summary":"Read the change and its test: it does what the task asks for.","actions":[{"type":"decide_approval","approval_id":"` + approval + `","approved":true,"note":"Tried it with an empty file, too."}]}`
	case run.Task == nil || !run.can(domain.ActionComment):
		return `{"summary":"Three jobs wait in the queue, none for more than a minute.","next_action":"Look for the cause when one waits for ten."}`
	case basis == domain.WakeBasisReviewer:
		return `{"summary":"Read the change and ran it: it holds, but nothing tests the limit.","actions":[{"type":"comment","body":"Please test the limit of 50, too. The rest is good."},{"type":"move_task","state":"IN_PROGRESS"}]}`
	case in.Agent.Role == domain.AgentRoleCoordinator && source != domain.WakeupSourceTaskChildrenCompleted && run.can(domain.ActionCreateSubtask):
		return `{"summary":"Split the work: first the format, then the reader.","next_action":"Check what comes back.","actions":[` +
			`{"type":"create_subtask","title":"Describe the format","description":"Every field, with an example.","assignee":"<agent id>"},` +
			`{"type":"create_subtask","title":"Write the reader","assignee":"<agent id>","blocked_by":["#1"]}]}`
	}
	return `{"summary":"The test waited for a fixed port. It asks for a free one now, and passed 200 times.","next_action":"Watch the next nightly run.",` +
		`"actions":[{"type":"comment","body":"Fixed: the test asks for a free port."},{"type":"complete_task"}]}`
}

// tools says how the agent can look around and act before its end.
func tools(run Run) string {
	switch run.Tools {
	case domain.AgentToolsMCP:
		return "While you work, the tools of the MCP server rouse do the same at once, and show more. What you did by a tool is done: leave it out of the actions.\n"
	case domain.AgentToolsAPI:
		names := "decideApproval and wakeSelf act; run and workspace { agents } show"
		if run.Task != nil {
			names = "commentOnTask, moveTask, createTask, requestApproval, decideApproval and wakeSelf act; task, run and workspace { agents } show"
		}
		return "While you work, the API is there, too: " + names + ". For example:\n\n" + curl(run)
	}
	return ""
}

// curl is a line for a shell that reads what the run is about.
func curl(run Run) string {
	ask := `{ run(id: \"` + plainID(run.ID) + `\") { wakeupRequests { edges { node { payload { __typename ... on RoutineWakeup { variables } } } } } } }`
	if run.Task != nil {
		ask = `{ task(id: \"` + plainID(run.Task.ID) + `\") { title state comments(first: 100) { edges { node { body } } } } }`
	}
	return `curl -sS "$ROUSE_API_URL" -H "Authorization: Bearer $ROUSE_RUN_TOKEN" -H "Content-Type: application/json" -d '{"query":"` + ask + `"}'` + "\n"
}

// plainID is an id as it may stand in a command: what no id has is left out.
func plainID(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, oneLine(id))
}
