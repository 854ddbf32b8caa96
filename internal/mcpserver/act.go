package mcpserver

import (
	"context"
)

// done is what a tool that acts answers.
type done struct {
	Done bool   `json:"done"`
	Said string `json:"message"`
	ID   string `json:"id,omitempty"` // of what was made

	State string `json:"state,omitempty"` // of the task
}

// again is the answer to what this run has done before.
func again(what, id string) done {
	return done{Done: true, ID: id, Said: what + " by an earlier call of this run, and nothing was done a second time. If you mean another one, say it in other words."}
}

type record struct{ ID, State string }

func comment(ctx context.Context, r *run, given arguments) (any, error) {
	who, task, err := r.task(ctx, given.text("task_id"))
	if err != nil {
		return nil, err
	}
	input := map[string]any{"taskId": task, "body": given.text("body"), "mentionedAgentIds": given.list("mentions")}
	input["idempotencyKey"] = who.once(input)
	var out struct {
		Comment          *record
		Replayed         bool
		MentionsNotWoken []struct{ Message string }
	}
	const mutation = `mutation Comment($input: CommentOnTaskInput!) {
  payload: commentOnTask(input: $input) { comment { id } replayed mentionsNotWoken { message } userErrors { code message field } }
}`
	if err := r.change(ctx, mutation, input, &out); err != nil {
		return nil, err
	}
	if out.Replayed {
		return again("This very comment was written", out.Comment.ID), nil
	}
	said := "The comment stands on the task."
	if len(out.MentionsNotWoken) < len(given.list("mentions")) {
		said += " Whom it mentions is woken."
	}
	for _, m := range out.MentionsNotWoken {
		said += " " + m.Message
	}
	return done{Done: true, ID: out.Comment.ID, Said: said}, nil
}

func moveTask(ctx context.Context, r *run, given arguments) (any, error) {
	return move(ctx, r, given.text("task_id"), given.text("state"), given.text("note"))
}

func completeTask(ctx context.Context, r *run, given arguments) (any, error) {
	return move(ctx, r, given.text("task_id"), "DONE", "")
}

func move(ctx context.Context, r *run, given, to, note string) (any, error) {
	_, task, err := r.task(ctx, given)
	if err != nil {
		return nil, err
	}
	input := map[string]any{"taskId": task, "to": to}
	if note != "" {
		input["note"] = note
	}
	var out struct{ Task *record }
	const mutation = `mutation Move($input: MoveTaskInput!) {
  payload: moveTask(input: $input) { task { id state } userErrors { code message field } }
}`
	err = r.change(ctx, mutation, input, &out)
	if err != nil && to == "DONE" && r.waits(ctx, task) {
		return waitsForApproval(task), nil
	}
	switch {
	case err != nil:
		return nil, err
	case to == "DONE" && out.Task.State == "IN_REVIEW":
		return waitsForApproval(task), nil
	case to == "DONE":
		return done{Done: true, ID: task, State: out.Task.State, Said: "The task is done. Nothing about it is left to do: end your run with a short summary."}, nil
	}
	return done{Done: true, ID: task, State: out.Task.State, Said: "The task is " + out.Task.State + " now."}, nil
}

func waitsForApproval(task string) done {
	return done{Done: true, ID: task, State: "IN_REVIEW", Said: "The task needs an approval to be done. It is in review, and you are woken with the decision: end your run now."}
}

// waits says whether a task is in review because somebody has to decide whether it is done: then it was completed before.
func (r *run) waits(ctx context.Context, task string) bool {
	var out struct {
		Task *struct {
			State     string
			Approvals struct {
				Edges []struct {
					Node struct {
						Status     string
						Completion bool
					}
				}
			}
		}
	}
	const query = `query Waits($id: ID!) { task(id: $id) { state approvals(first: 100) { edges { node { status completion } } } } }`
	if err := r.api.call(ctx, query, map[string]any{"id": task}, &out); err != nil || out.Task == nil || out.Task.State != "IN_REVIEW" {
		return false // what was refused at first is told
	}
	for _, e := range out.Task.Approvals.Edges {
		if e.Node.Completion && e.Node.Status == "PENDING" {
			return true
		}
	}
	return false
}

func createSubtask(ctx context.Context, r *run, given arguments) (any, error) {
	who, parent, err := r.task(ctx, given.text("task_id"))
	if err != nil {
		return nil, err
	}
	input := map[string]any{"workspaceId": who.WorkspaceID, "parentId": parent, "title": given.text("title"), "description": given.text("description"),
		"blockedByIds": given.list("blocked_by"), "requiresApproval": given.truth("requires_approval")}
	if a := given.text("assignee"); a != "" {
		input["assigneeId"] = a
	}
	input["idempotencyKey"] = who.once(input)
	var out struct {
		Task *struct {
			ID, State string
			Assignee  *struct{ Name string }

			IsBlocked, IsAutonomous bool
		}
		Replayed bool
	}
	const mutation = `mutation Subtask($input: CreateTaskInput!) {
  payload: createTask(input: $input) { task { id state isBlocked isAutonomous assignee { name } } replayed userErrors { code message field } }
}`
	if err := r.change(ctx, mutation, input, &out); err != nil {
		return nil, err
	}
	if out.Replayed {
		return again("This very subtask was made", out.Task.ID), nil
	}
	said := "The subtask is made, and " + nameIn(out.Task.Assignee) + " is woken to do it. You are woken when all subtasks have ended: do not wait for it."
	switch {
	case out.Task.Assignee == nil:
		said = "The subtask is made. Nobody is assigned to it, so that nobody begins it."
	case !out.Task.IsAutonomous:
		said = "The subtask is made for " + out.Task.Assignee.Name + ". It wakes nobody, because rouse does not act on tasks of this workflow by itself."
	case out.Task.IsBlocked:
		said = "The subtask is made for " + out.Task.Assignee.Name + ", who is woken once nothing blocks it."
	}
	return done{Done: true, ID: out.Task.ID, State: out.Task.State, Said: said}, nil
}

func nameIn(a *struct{ Name string }) string {
	if a == nil {
		return "nobody"
	}
	return a.Name
}

func requestApproval(ctx context.Context, r *run, given arguments) (any, error) {
	who, task, err := r.task(ctx, given.text("task_id"))
	if err != nil {
		return nil, err
	}
	input := map[string]any{"taskId": task, "requestedByAgentId": who.Agent.ID, "note": given.text("question")}
	input["idempotencyKey"] = who.once(input)
	var out struct {
		Approval *record
		Replayed bool
	}
	const mutation = `mutation Ask($input: RequestApprovalInput!) {
  payload: requestApproval(input: $input) { approval { id } replayed userErrors { code message field } }
}`
	if err := r.change(ctx, mutation, input, &out); err != nil {
		return nil, err
	}
	if out.Replayed {
		return again("This very question was asked", out.Approval.ID), nil
	}
	return done{Done: true, ID: out.Approval.ID, Said: "The question is asked. You are woken with the decision: do what does not depend on it, then end your run."}, nil
}

func decideApproval(ctx context.Context, r *run, given arguments) (any, error) {
	who, err := r.identity(ctx)
	if err != nil {
		return nil, err
	}
	decision := "REJECT"
	if given.truth("approved") {
		decision = "APPROVE"
	}
	input := map[string]any{"approvalId": given.text("approval_id"), "decision": decision, "agentId": who.Agent.ID}
	if note := given.text("note"); note != "" {
		input["note"] = note
	}
	var out struct {
		Approval *struct{ ID, Status string }
		Task     *record
	}
	const mutation = `mutation Decide($input: DecideApprovalInput!) {
  payload: decideApproval(input: $input) { approval { id status } task { id state } userErrors { code message field } }
}`
	if err := r.change(ctx, mutation, input, &out); err != nil {
		return nil, err
	}
	return done{Done: true, ID: out.Approval.ID, State: out.Task.State, Said: "The approval is " + out.Approval.Status + ", and who asked is told."}, nil
}

func selfWake(ctx context.Context, r *run, given arguments) (any, error) {
	input := map[string]any{"reason": given.text("reason")}
	if payload, is := given["payload"]; is {
		input["payload"] = payload
	}
	var out struct {
		WakeupRequest *record
		Replayed      bool
	}
	const mutation = `mutation WakeSelf($input: WakeSelfInput!) {
  payload: wakeSelf(input: $input) { wakeupRequest { id } replayed userErrors { code message field } }
}`
	if err := r.change(ctx, mutation, input, &out); err != nil {
		return nil, err
	}
	if out.Replayed {
		return again("This very wake was asked for", out.WakeupRequest.ID), nil
	}
	return done{Done: true, ID: out.WakeupRequest.ID, Said: "You are woken again soon after this run, with that reason."}, nil
}

func addLink(ctx context.Context, r *run, given arguments) (any, error) {
	input := map[string]any{"url": given.text("url")}
	for _, name := range []string{"kind", "title"} {
		if value := given.text(name); value != "" {
			input[name] = value
		}
	}
	var out struct{ Link *record }
	const mutation = `mutation Link($input: AddLinkInput!) {
  payload: addLink(input: $input) { link { id } userErrors { code message field } }
}`
	if err := r.change(ctx, mutation, input, &out); err != nil {
		return nil, err
	}
	return done{Done: true, ID: out.Link.ID, Said: "The link shows on your run and on its task, if it has one."}, nil
}

func reportProgress(ctx context.Context, r *run, given arguments) (any, error) {
	step := map[string]any{"message": given.text("message")}
	if percent, is := given["percent"]; is {
		step["percent"] = percent
	}
	var out struct{ Run *record }
	const mutation = `mutation Progress($input: NoteProgressInput!) {
  payload: noteProgress(input: $input) { run { id } userErrors { code message field } }
}`
	if err := r.change(ctx, mutation, map[string]any{"progress": step}, &out); err != nil {
		return nil, err
	}
	return done{Done: true, Said: "People who watch the run see it."}, nil
}
