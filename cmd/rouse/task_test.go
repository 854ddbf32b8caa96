package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

// TestSourcesByTheirRealCause causes each of the ten kinds of wake as it comes about, and looks at what the started command
// saw in ROUSE_WAKE_REASON and in its prompt.
func TestSourcesByTheirRealCause(t *testing.T) {
	t.Parallel()
	underRaceDetector(t)
	o := openOffice(t)
	a, coordinator := o.worker("worker"), o.coordinator("lead")
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

	asked := o.comment(task, "@worker what is it?").WakeupRequests[0]
	o.wantSeen(a, o.wakeup(asked.ID).Run.ID, "COMMENT", "@worker what is it?")

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

	child, _ := o.create(map[string]any{"title": "Part", "parentId": waiting})
	o.move(child, "DONE")
	o.wantWake(mentioned, 4, "TASK_CHILDREN_COMPLETED", "Part", waiting)
	fire := o.byHand(o.routine(map[string]any{"name": "Look around", "description": "Is anything on fire?", "assigneeId": mentioned}), nil)
	o.wantSeen(mentioned, fire.WakeupRequest.Run.ID, "ROUTINE", "Look around", "Is anything on fire?")
	spender := o.worker("spender")
	o.spends(spender, "0.9")
	o.limit(spender, "1", "NOTIFY")
	o.wakeUp(spender)
	o.wantWake(coordinator, 2, "BUDGET_ALERT", "spender", "90 percent spent")
	o.wantEverySource()
}

// wantEverySource says that started commands have seen each source there is.
func (o office) wantEverySource() {
	o.t.Helper()
	files, err := filepath.Glob(o.path("*.woken"))
	if err != nil {
		o.t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		for _, seen := range o.woken(strings.TrimSuffix(filepath.Base(file), ".woken")) {
			got = append(got, seen[0])
		}
	}
	slices.Sort(got)
	want := domain.WakeupSource("").Values()
	slices.Sort(want)
	if got = slices.Compact(got); len(want) != 10 || !slices.Equal(got, want) {
		o.t.Errorf("the commands saw %v, want each of %v", got, want)
	}
}

// TestPipelineOfResultActions: Spec (which needs an approval) blocks Build, Build blocks Review, Review blocks Ship. The
// agents return result actions and nothing else; a person approves once.
func TestPipelineOfResultActions(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	o := openOffice(t)
	a := o.worker("agent")
	o.hold(a)
	task, _ := o.create(map[string]any{"title": "Mine", "assigneeId": a})
	other, _ := o.create(map[string]any{"title": "Not mine"})
	o.wantWake(a, 1, "TASK_ASSIGNED")
	token := o.tokenOf(a)
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
		`query($t: ID!) { node(id: $t) { id } }`,
	} {
		if _, body := o.post(token, refused, map[string]any{"t": task}); !strings.Contains(string(body), `FORBIDDEN`) {
			t.Errorf("%s: %s", refused, body)
		}
	}
	for id, want := range map[string]string{task: `{"task":{"title":"Mine"}}`, other: `{"task":null}`} {
		if _, body := o.post(token, `query($t: ID!) { task(id: $t) { title } }`, map[string]any{"t": id}); !strings.Contains(string(body), want) {
			t.Errorf("it read %s, want %s", body, want)
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
