package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// office is a workspace on a running program whose agents are a shell script that records why it was woken, waits for as
// long as it is held, and answers with the result that the test has laid out for it.
type office struct {
	journey
	workshop
}

// desk is the script of every agent.
func (w workshop) desk() string {
	return fmt.Sprintf(`cd %s || exit 1
cat >"$ROUSE_RUN_ID.prompt"
echo "$ROUSE_WAKE_REASON $ROUSE_TASK_ID $ROUSE_RUN_ID $ROUSE_WAKE_PAYLOAD_JSON" >>"$ROUSE_AGENT_ID.woken"
echo "$ROUSE_RUN_TOKEN" >"$ROUSE_AGENT_ID.token"
until [ ! -e "$ROUSE_AGENT_ID.hold" ]; do sleep 0.02; done
[ -e "$ROUSE_AGENT_ID.fail" ] && exit 3
if [ -e "$ROUSE_AGENT_ID.result" ]; then cat "$ROUSE_AGENT_ID.result"; else echo '{"summary": "done"}'; fi`, w.dir)
}

func (o office) on(t *testing.T) office { return office{o.journey.on(t, o.program), o.workshop} }

func (o office) worker(name string) string { return o.script(name, o.desk()) }

func (o office) write(name, text string) {
	o.t.Helper()
	if err := os.WriteFile(o.path(name), []byte(text+"\n"), 0o666); err != nil {
		o.t.Fatal(err)
	}
}

func (o office) remove(name string) {
	o.t.Helper()
	if err := os.Remove(o.path(name)); err != nil {
		o.t.Fatal(err)
	}
}

// hold keeps the agent's runs at work until it is let go.
func (o office) hold(agent string)  { o.t.Helper(); o.write(agent+".hold", "") }
func (o office) letGo(agent string) { o.t.Helper(); o.remove(agent + ".hold") }

// answers lays out what the agent's next runs answer with.
func (o office) answers(agent string, actions ...map[string]any) {
	o.t.Helper()
	text, err := json.Marshal(map[string]any{"summary": "done", "actions": actions})
	if err != nil {
		o.t.Fatal(err)
	}
	o.write(agent+".result", string(text))
}

// woken is what the agent's command saw: reason, task, run and payload of each run so far.
func (o office) woken(agent string) [][]string {
	text, err := os.ReadFile(o.path(agent + ".woken"))
	if err != nil {
		return nil
	}
	var out [][]string
	for line := range strings.Lines(string(text)) {
		out = append(out, strings.SplitN(strings.TrimSpace(line), " ", 4))
	}
	return out
}

// awaitWake waits until the agent's command was started for the n-th time, from 1, and returns what it saw and its prompt.
func (o office) awaitWake(agent string, n int) (reason, run, prompt string) {
	o.t.Helper()
	eventually(o.t, fmt.Sprintf("launch %d of %s", n, agent), patience, func() bool { return len(o.woken(agent)) >= n })
	seen := o.woken(agent)[n-1]
	text, err := os.ReadFile(o.path(seen[2] + ".prompt"))
	if err != nil {
		o.t.Fatal(err)
	}
	return seen[0], seen[2], string(text)
}

// wantWake is awaitWake with what is expected of it.
func (o office) wantWake(agent string, n int, reason string, inPrompt ...string) (run string) {
	o.t.Helper()
	got, run, prompt := o.awaitWake(agent, n)
	if got != reason {
		o.t.Errorf("launch %d has ROUSE_WAKE_REASON %s, want %s", n, got, reason)
	}
	for _, part := range inPrompt {
		if !strings.Contains(prompt, part) {
			o.t.Errorf("launch %d: %q is not in the prompt:\n%s", n, part, prompt)
		}
	}
	return run
}

// change sends a mutation with one input and decodes its payload into out.
func (o office) change(name, fields string, input map[string]any, out any) {
	o.t.Helper()
	kind := strings.ToUpper(name[:1]) + name[1:] + "Input"
	var data map[string]json.RawMessage
	o.request(fmt.Sprintf(`mutation($in: %s!) { %s(input: $in) { %s userErrors { code message } } }`, kind, name, fields), map[string]any{"in": input}, &data)
	if err := json.Unmarshal(data[name], out); err != nil {
		o.t.Fatalf("%v: %s", err, data[name])
	}
}

// wakeView is a wakeup as mutations list it.
type wakeView struct {
	ID, Source, Status string
	EndReason          *string
	Agent              struct{ ID string }
}

const wakeFields = `wakeupRequests { id source status endReason agent { id } }`

// taskPayload is what mutations of a task answer.
type taskPayload struct {
	Task             struct{ ID, State string }
	WakeupRequests   []wakeView
	CancelledWakeups []wakeView
}

func (p taskPayload) sources() (list []string) {
	for _, w := range p.WakeupRequests {
		list = append(list, w.Source)
	}
	return list
}

func (o office) create(input map[string]any) (string, taskPayload) {
	o.t.Helper()
	input["workspaceId"] = o.workspace
	var out taskPayload
	o.change("createTask", "task { id state } "+wakeFields, input, &out)
	return out.Task.ID, out
}

func (o office) move(task, to string) taskPayload {
	o.t.Helper()
	var out taskPayload
	o.change("moveTask", "task { id state } "+wakeFields, map[string]any{"taskId": task, "to": to}, &out)
	return out
}

func (o office) assignTo(task, agent string) taskPayload {
	o.t.Helper()
	var out taskPayload
	o.change("assignTask", "task { id state } "+wakeFields+" cancelledWakeups { id source status endReason agent { id } }", map[string]any{"taskId": task, "assigneeId": agent}, &out)
	return out
}

func (o office) comment(task, body string, mentions ...string) taskPayload {
	o.t.Helper()
	var out taskPayload
	o.change("commentOnTask", "comment { id } "+wakeFields, map[string]any{"taskId": task, "body": body, "userId": "ann", "mentionedAgentIds": append([]string{}, mentions...)}, &out)
	return out
}

// wakeup reads a wakeup.
func (o office) wakeup(id string) (w wakeView) {
	o.t.Helper()
	var out struct{ WakeupRequest wakeView }
	o.request(`query($id: ID!) { wakeupRequest(id: $id) { id source status endReason agent { id } } }`, map[string]any{"id": id}, &out)
	return out.WakeupRequest
}

// wantEnd waits until a wakeup has ended so; reason "" is none.
func (o office) wantEnd(id, status, reason string) {
	o.t.Helper()
	var last wakeView
	eventually(o.t, "wakeup "+id+" "+status, patience, func() bool { last = o.wakeup(id); return last.Status == status })
	got := ""
	if last.EndReason != nil {
		got = *last.EndReason
	}
	if got != reason {
		o.t.Errorf("the wakeup ended %s, want %s", got, reason)
	}
}

func (o office) wantTask(task, state string) {
	o.t.Helper()
	var got string
	eventually(o.t, "task "+state, patience, func() bool {
		var out struct{ Task struct{ State string } }
		o.request(`query($id: ID!) { task(id: $id) { state } }`, map[string]any{"id": task}, &out)
		got = out.Task.State
		return got == state
	})
}

// wantActivity waits for an entry of the feed about a task.
func (o office) wantActivity(task, code string) {
	o.t.Helper()
	eventually(o.t, code+" in the feed", patience, func() bool {
		var out struct {
			Workspace struct {
				Activity struct{ Edges []json.RawMessage }
			}
		}
		o.request(`query($w: ID!, $t: ID!, $c: [ActivityCode!]) { workspace(id: $w) { activity(first: 1, filter: {taskId: $t, code: $c}) { edges { node { id } } } } }`,
			map[string]any{"w": o.workspace, "t": task, "c": []string{code}}, &out)
		return len(out.Workspace.Activity.Edges) > 0
	})
}

// decide decides the task's open approval.
func (o office) decide(task, decision, note string) taskPayload {
	o.t.Helper()
	var open struct {
		Task struct {
			Approvals struct {
				Edges []struct{ Node struct{ ID, Status string } }
			}
		}
	}
	o.request(`query($id: ID!) { task(id: $id) { approvals { edges { node { id status } } } } }`, map[string]any{"id": task}, &open)
	at := slices.IndexFunc(open.Task.Approvals.Edges, func(e struct{ Node struct{ ID, Status string } }) bool { return e.Node.Status == "PENDING" })
	if at < 0 {
		o.t.Fatal("no approval is open")
	}
	var out taskPayload
	o.change("decideApproval", "task { id state } "+wakeFields, map[string]any{"approvalId": open.Task.Approvals.Edges[at].Node.ID, "decision": decision, "note": note, "userId": "ann"}, &out)
	return out
}

// openOffice starts a program with one workspace that has no window.
func openOffice(t *testing.T) office {
	t.Helper()
	shop := newWorkshop(t)
	j := newJourney(start(t, pgtest.Folder(t), nil))
	o := office{j, shop}
	var out struct{ Workspace struct{ ID string } }
	o.change("updateWorkspaceSettings", "workspace { id }", map[string]any{"workspaceId": o.workspace, "coalescingWindow": "PT0S"}, &out)
	return o
}

// TestTaskScenarios plays the scenarios of the sources that are about tasks and what they cause, through the API and a
// started agent.
func TestTaskScenarios(t *testing.T) {
	shared := openOffice(t)
	for name, scenario := range map[string]func(o office){
		"an office task is assigned: the agent starts working on it": func(o office) {
			a := o.worker("assigned")
			task, made := o.create(map[string]any{"title": "Count the beans", "description": "All of them.", "assigneeId": a})
			if !slices.Equal(made.sources(), []string{"TASK_ASSIGNED"}) {
				o.t.Errorf("wakes %v", made.sources())
			}
			run := o.wantWake(a, 1, "TASK_ASSIGNED", "Count the beans", "All of them.", task)
			o.wantEnd(made.WakeupRequests[0].ID, "FINISHED", "")
			if seen := o.woken(a)[0]; seen[1] != task || !strings.Contains(seen[3], `"ASSIGNEE"`) {
				o.t.Errorf("the command saw %v", seen)
			}
			if view := o.program.run(run); view.SessionID == "" {
				o.t.Error("no session was recorded")
			}
		},
		"a Kanban task with a runner stays in TODO: nothing is queued for it": func(o office) {
			a := o.worker("kanban")
			var board struct{ Workflow struct{ ID string } }
			o.change("createWorkflow", "workflow { id }", map[string]any{"workspaceId": o.workspace, "name": "Board", "steps": []map[string]any{
				{"name": "To do", "state": "TODO"}, {"name": "Doing", "state": "IN_PROGRESS"}}}, &board)
			task, made := o.create(map[string]any{"title": "Card", "workflowId": board.Workflow.ID, "assigneeId": a})
			commented, moved := o.comment(task, "hello"), o.move(task, "IN_PROGRESS")
			if n := len(made.WakeupRequests) + len(commented.WakeupRequests) + len(moved.WakeupRequests); n != 0 {
				o.t.Errorf("%d wakes for a Kanban task", n)
			}
		},
		"a custom workflow executes queue_run explicitly: the run is processed": func(o office) {
			a := o.worker("queued")
			var board struct{ Workflow struct{ ID string } }
			o.change("createWorkflow", "workflow { id }", map[string]any{"workspaceId": o.workspace, "name": "Custom", "steps": []map[string]any{
				{"name": "Backlog", "state": "TODO"}, {"name": "Go", "state": "IN_PROGRESS", "onEnter": []string{"QUEUE_RUN"}}}}, &board)
			task, _ := o.create(map[string]any{"title": "Card", "workflowId": board.Workflow.ID, "assigneeId": a})
			o.move(task, "IN_PROGRESS")
			o.wantWake(a, 1, "TASK_ASSIGNED", task)
			var out struct{ WakeupRequest wakeView }
			o.change("queueRun", "wakeupRequest { id status }", map[string]any{"taskId": task, "reason": "once more"}, &out)
			o.wantWake(a, 2, "TASK_ASSIGNED", task)
		},
		"a comment arrives while the agent is at capacity: it is picked up when the session completes": func(o office) {
			a := o.worker("busy")
			o.hold(a)
			task, _ := o.create(map[string]any{"title": "Long work", "assigneeId": a})
			o.wantWake(a, 1, "TASK_ASSIGNED")
			var waits []wakeView
			for i := range 5 {
				waits = append(waits, o.comment(task, fmt.Sprintf("remark %d", i+1)).WakeupRequests...)
			}
			if len(waits) != 5 || o.wakeup(waits[0].ID).Status != "QUEUED" {
				o.t.Errorf("waiting: %+v", waits)
			}
			o.letGo(a)
			o.wantWake(a, 2, "COMMENT", "remark 1", "remark 5")
			o.wantEnd(waits[0].ID, "FINISHED", "")
			if n := len(o.woken(a)); n != 2 {
				o.t.Errorf("%d launches, want exactly one more for five comments", n)
			}
		},
		"all three subtasks reach done: one children_completed for the parent's assignee": func(o office) {
			lead := o.worker("lead")
			parent, _ := o.create(map[string]any{"title": "Release", "assigneeId": lead})
			o.wantWake(lead, 1, "TASK_ASSIGNED")
			var children []string
			for i := range 3 {
				worker := o.worker(fmt.Sprint("child ", i))
				child, _ := o.create(map[string]any{"title": fmt.Sprint("Part ", i), "parentId": parent, "assigneeId": worker})
				o.wantWake(worker, 1, "TASK_ASSIGNED")
				children = append(children, child)
			}
			var wakes []wakeView
			for _, child := range children {
				wakes = append(wakes, o.move(child, "DONE").WakeupRequests...)
			}
			if len(wakes) != 1 || wakes[0].Source != "TASK_CHILDREN_COMPLETED" || wakes[0].Agent.ID != lead {
				o.t.Errorf("wakes %+v", wakes)
			}
			o.wantWake(lead, 2, "TASK_CHILDREN_COMPLETED", "Part 0", "Part 2")
		},
		"a wakeup for a paused agent is claimed: it is finished without a session": func(o office) {
			a := o.worker("paused")
			var out struct{ Agent struct{ ID string } }
			o.change("pauseAgent", "agent { id }", map[string]any{"agentId": a}, &out)
			_, made := o.create(map[string]any{"title": "Later", "assigneeId": a})
			o.wantEnd(made.WakeupRequests[0].ID, "FINISHED", "AGENT_INACTIVE")
			if n := len(o.woken(a)); n != 0 {
				o.t.Errorf("%d launches", n)
			}
			o.change("resumeAgent", "agent { id }", map[string]any{"agentId": a}, &out)
			o.wantWake(a, 1, "TASK_ASSIGNED", "Later")
		},
		"Spec needs an approval and blocks Build: the developer starts once the user approves": func(o office) {
			planner, developer := o.worker("planner"), o.worker("developer")
			o.answers(planner, map[string]any{"type": "complete_task"})
			parent, _ := o.create(map[string]any{"title": "Feature"})
			o.hold(planner)
			spec, _ := o.create(map[string]any{"title": "Spec", "parentId": parent, "assigneeId": planner, "requiresApproval": true})
			build, made := o.create(map[string]any{"title": "Build", "parentId": parent, "assigneeId": developer, "blockedByIds": []string{spec}})
			o.wantWake(planner, 1, "TASK_ASSIGNED", "Spec")
			o.letGo(planner)
			o.wantTask(spec, "IN_REVIEW")
			if got := o.wakeup(made.WakeupRequests[0].ID).Status; got != "QUEUED" || len(o.woken(developer)) != 0 {
				o.t.Errorf("the wake of the blocked task is %s", got)
			}
			approved := o.decide(spec, "APPROVE", "")
			if approved.Task.State != "DONE" || !slices.Equal(approved.sources(), []string{"TASK_BLOCKERS_RESOLVED"}) {
				o.t.Errorf("approved: %+v", approved)
			}
			_, _, prompt := o.awaitWake(developer, 1)
			if !strings.Contains(prompt, "Nothing blocks task "+build) || !strings.Contains(prompt, "Spec") {
				o.t.Errorf("the developer was told:\n%s", prompt)
			}
		},
		"a task is reassigned before the wakeup is claimed: cancelled with assignee_changed": func(o office) {
			a, b := o.worker("former"), o.worker("new")
			o.hold(a)
			o.create(map[string]any{"title": "First", "assigneeId": a})
			o.wantWake(a, 1, "TASK_ASSIGNED", "First")
			task, made := o.create(map[string]any{"title": "Second", "assigneeId": a})
			again := o.assignTo(task, b)
			if len(again.CancelledWakeups) != 1 || again.CancelledWakeups[0].ID != made.WakeupRequests[0].ID {
				o.t.Errorf("cancelled %+v", again.CancelledWakeups)
			}
			o.wantEnd(made.WakeupRequests[0].ID, "CANCELLED", "ASSIGNEE_CHANGED")
			o.wantActivity(task, "WAKEUP_STALE_CANCELLED")
			o.wantWake(b, 1, "TASK_ASSIGNED", "Second")
			o.letGo(a)
			if n := len(o.woken(a)); n != 1 {
				o.t.Errorf("the former assignee was launched %d times", n)
			}
		},
		"a retry waits and the task is reassigned: the retry is cancelled at once": func(o office) {
			a, b := o.worker("failing"), o.worker("successor")
			o.write(a+".fail", "")
			task, made := o.create(map[string]any{"title": "Hard", "assigneeId": a})
			o.wantActivity(task, "WAKEUP_RETRY_SCHEDULED")
			o.assignTo(task, b)
			o.wantEnd(made.WakeupRequests[0].ID, "CANCELLED", "RETRY_STALE_ASSIGNEE")
			o.wantActivity(task, "WAKEUP_RETRY_CANCELLED")
			o.wantWake(b, 1, "TASK_ASSIGNED", "Hard")
		},
		"a retry waits and the task is cancelled: the retry is cancelled when it is due": func(o office) {
			a := o.worker("failing twice")
			o.write(a+".fail", "")
			task, made := o.create(map[string]any{"title": "Given up", "assigneeId": a})
			o.wantActivity(task, "WAKEUP_RETRY_SCHEDULED")
			o.move(task, "CANCELLED")
			o.comment(task, "now", a) // somebody waits: the retry is due now
			o.wantEnd(made.WakeupRequests[0].ID, "CANCELLED", "RETRY_TASK_CANCELLED")
			o.wantActivity(task, "WAKEUP_RETRY_CANCELLED")
		},
		"a task has reached DONE when its wakeup is claimed: cancelled, nothing is launched": func(o office) {
			a := o.worker("late")
			o.hold(a)
			o.create(map[string]any{"title": "First", "assigneeId": a})
			o.wantWake(a, 1, "TASK_ASSIGNED", "First")
			task, made := o.create(map[string]any{"title": "Second", "assigneeId": a})
			o.move(task, "DONE")
			o.letGo(a)
			o.wantEnd(made.WakeupRequests[0].ID, "CANCELLED", "TASK_DONE")
			o.wantActivity(task, "WAKEUP_STALE_CANCELLED")
			if n := len(o.woken(a)); n != 1 {
				o.t.Errorf("%d launches", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { scenario(shared.on(t)) })
	}
}

// TestSourcesByTheirRealCause causes each kind of wake as it comes about, and looks at what the started command saw.
func TestSourcesByTheirRealCause(t *testing.T) {
	o := openOffice(t)
	a, coordinator := o.worker("worker"), ""
	var made struct{ Agent struct{ ID string } }
	o.change("createAgent", "agent { id }", map[string]any{"workspaceId": o.workspace, "name": "lead", "role": "COORDINATOR", "cooldown": "PT0S",
		"executor": map[string]any{"command": map[string]any{"argv": []string{"/bin/sh", "-c", o.desk()}}}}, &made)
	coordinator = made.Agent.ID

	o.answers(a, map[string]any{"type": "request_approval", "question": "May I merge?"})
	task, _ := o.create(map[string]any{"title": "Merge", "assigneeId": a})
	o.wantWake(a, 1, "TASK_ASSIGNED", "Merge")
	eventually(t, "the question", patience, func() bool {
		var out struct {
			Task struct {
				Approvals struct{ Edges []json.RawMessage }
			}
		}
		o.request(`query($id: ID!) { task(id: $id) { approvals { edges { node { id } } } } }`, map[string]any{"id": task}, &out)
		return len(out.Task.Approvals.Edges) == 1
	})
	o.answers(a, map[string]any{"type": "self_wake", "reason": "look at the merge"})
	if got := o.decide(task, "REJECT", "not before Friday"); !slices.Equal(got.sources(), []string{"APPROVAL_RESOLVED"}) {
		t.Errorf("decided: %+v", got)
	}
	o.wantWake(a, 2, "APPROVAL_RESOLVED", "May I merge?", "not before Friday")
	o.wantWake(a, 3, "SELF", "look at the merge")
	eventually(t, "the third wake of itself", patience, func() bool { return len(o.woken(a)) >= 4 })
	o.remove(a + ".result")

	o.comment(task, "@worker what is it?")
	eventually(t, "the comment", patience, func() bool {
		return slices.ContainsFunc(o.woken(a), func(s []string) bool { return s[0] == "COMMENT" })
	})

	mentioned := o.worker("mentioned")
	if got := o.comment(task, "please look", mentioned); !slices.Contains(got.sources(), "USER") {
		t.Errorf("a mention: %v", got.sources())
	}
	o.wantWake(mentioned, 1, "USER", "please look", task)

	waiting, _ := o.create(map[string]any{"title": "Waiting", "assigneeId": mentioned})
	o.wantWake(mentioned, 2, "TASK_ASSIGNED", "Waiting")
	var out taskPayload
	o.change("setTaskBlockers", "task { id } "+wakeFields, map[string]any{"taskId": waiting, "blockedByIds": []string{task}}, &out)
	o.move(task, "DONE")
	o.wantWake(mentioned, 3, "TASK_BLOCKERS_RESOLVED", "Merge", waiting)
	nobody := o.agent("nobody", nil)
	o.create(map[string]any{"title": "Nobody can do it", "assigneeId": nobody})
	o.wantWake(coordinator, 1, "AGENT_ERROR", "nobody", "no executor")
}

// TestPipelineOfResultActions: Spec (which needs an approval) blocks Build, Build blocks Review, Review blocks Ship. The
// agents return result actions and nothing else; a person approves once.
func TestPipelineOfResultActions(t *testing.T) {
	o := openOffice(t)
	lead := o.worker("coordinator")
	steps := []string{"Spec", "Build", "Review", "Ship"}
	agents, plan := map[string]string{}, []map[string]any{}
	for i, title := range steps {
		agents[title] = o.worker(title)
		o.answers(agents[title], map[string]any{"type": "comment", "body": title + " is finished."}, map[string]any{"type": "complete_task"})
		action := map[string]any{"type": "create_subtask", "title": title, "assignee": agents[title], "requires_approval": i == 0}
		if i > 0 {
			action["blocked_by"] = []string{fmt.Sprintf("#%d", i)}
		}
		plan = append(plan, action)
	}
	o.answers(lead, plan...)
	parent, _ := o.create(map[string]any{"title": "Feature", "assigneeId": lead})
	o.wantWake(agents["Spec"], 1, "TASK_ASSIGNED", "Spec")
	o.answers(lead, map[string]any{"type": "complete_task"})

	spec := o.woken(agents["Spec"])[0][1]
	o.wantTask(spec, "IN_REVIEW")
	if n := len(o.woken(agents["Build"])); n != 0 {
		t.Errorf("Build was launched before Spec was approved")
	}
	o.decide(spec, "REJECT", "say how fast")
	o.wantWake(agents["Spec"], 2, "COMMENT", "say how fast")
	o.wantTask(spec, "IN_REVIEW")
	o.decide(spec, "APPROVE", "")
	for _, title := range steps[1:] {
		_, _, prompt := o.awaitWake(agents[title], 1)
		if !strings.Contains(prompt, "Nothing blocks task") {
			t.Errorf("%s was told:\n%s", title, prompt)
		}
	}
	o.wantWake(lead, 2, "TASK_CHILDREN_COMPLETED", "Spec", "Ship")
	o.wantTask(parent, "DONE")
	for _, title := range steps[1:] {
		if n := len(o.woken(agents[title])); n != 1 {
			t.Errorf("%s was launched %d times", title, n)
		}
	}
}

// TestRunTokenActsOnItsOwnTaskAlone: an agent at work uses the API with the token of its run (SPEC S7.4).
func TestRunTokenActsOnItsOwnTaskAlone(t *testing.T) {
	o := openOffice(t)
	a := o.worker("agent")
	o.hold(a)
	task, _ := o.create(map[string]any{"title": "Mine", "assigneeId": a})
	other, _ := o.create(map[string]any{"title": "Not mine"})
	o.wantWake(a, 1, "TASK_ASSIGNED")
	var token string
	eventually(t, "the token", patience, func() bool {
		text, err := os.ReadFile(o.path(a + ".token"))
		token = strings.TrimSpace(string(text))
		return err == nil && token != ""
	})
	const comment = `mutation($t: ID!, $a: ID) { commentOnTask(input: {taskId: $t, body: "from inside", authorAgentId: $a}) {
		comment { author { ... on Agent { id } } } wakeupRequests { id } userErrors { code } } }`
	_, body := o.post(token, comment, map[string]any{"t": task})
	if !strings.Contains(string(body), `"id":"`+a+`"`) || !strings.Contains(string(body), `"wakeupRequests":[]`) {
		t.Errorf("C223: %s", body)
	}
	_, body = o.post(token, comment, map[string]any{"t": other})
	if !strings.Contains(string(body), `NOT_FOUND`) {
		t.Errorf("it commented on another task: %s", body)
	}
	_, body = o.post(token, `mutation($w: ID!) { createTask(input: {workspaceId: $w, title: "Part"}) { task { parent { id } } userErrors { code } } }`, map[string]any{"w": o.workspace})
	if !strings.Contains(string(body), `"id":"`+task+`"`) {
		t.Errorf("its task is no child: %s", body)
	}
	_, body = o.post(token, `mutation($t: ID!) { moveTask(input: {taskId: $t, to: IN_PROGRESS}) { task { state } wakeupRequests { id } userErrors { code } } }`, map[string]any{"t": task})
	if !strings.Contains(string(body), `"state":"IN_PROGRESS"`) || !strings.Contains(string(body), `"wakeupRequests":[]`) {
		t.Errorf("moved: %s", body)
	}
	for _, refused := range []string{
		`mutation($t: ID!) { queueRun(input: {taskId: $t}) { userErrors { code } } }`,
		`mutation($t: ID!) { assignTask(input: {taskId: $t}) { userErrors { code } } }`,
		`query($t: ID!) { task(id: $t) { id } }`,
	} {
		if _, body := o.post(token, refused, map[string]any{"t": task}); !strings.Contains(string(body), `FORBIDDEN`) {
			t.Errorf("%s: %s", refused, body)
		}
	}
	o.letGo(a)
	eventually(t, "the end of the token", patience, func() bool {
		status, body := o.post(token, comment, map[string]any{"t": task})
		return status == 401 || strings.Contains(string(body), "UNAUTHENTICATED")
	})
	if n := len(o.woken(a)); n != 1 {
		t.Errorf("C223: its own changes woke the agent: %d launches", n)
	}
}
