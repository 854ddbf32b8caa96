package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// wakeList is the wakeups that a mutation lists.
type wakeList []struct {
	ID, Source, Status string
	Run                *struct{ ID string }
	Payload            map[string]any
}

func (l wakeList) sources() string {
	list := []string{}
	for _, w := range l {
		list = append(list, w.Source)
	}
	return strings.Join(list, " ")
}

const shownWakes = `wakeupRequests { id source status run { id } payload { ... on TaskWakeup { basis task { id } } ... on CommentWakeup { comment { body author { ... on UserActor { userId } } } }
  ... on BlockersWakeup { resolvedBlockers { id } } ... on ApprovalWakeup { status note approval { question } } ... on UserWakeup { userId context } } }`

// taskOut is what mutations of tasks answer.
type taskOut struct {
	Task             *struct{ ID, State string }
	Comment          *struct{ ID string }
	Approval         *struct{ ID, Status string }
	WakeupRequests   wakeList
	CancelledWakeups wakeList
	Replayed         bool
}

// taskMutation sends a mutation and gives its payload and problems.
func (w *world) taskMutation(name, fields string, input map[string]any) (taskOut, string) {
	w.t.Helper()
	var out map[string]json.RawMessage
	problems := w.mutate(name, fields, input, &out)
	var payload taskOut
	if err := json.Unmarshal(out[name], &payload); err != nil {
		w.t.Fatalf("%v: %s", err, out[name])
	}
	return payload, problems
}

func (w *world) newTask(title string, more map[string]any) taskOut {
	w.t.Helper()
	input := map[string]any{"workspaceId": w.workspace, "title": title}
	for k, v := range more {
		input[k] = v
	}
	out, problems := w.taskMutation("createTask", "task { id state } replayed "+shownWakes, input)
	if problems != "" {
		w.t.Fatal(problems)
	}
	return out
}

func TestTasksWakeAndSayWhom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.agent("Ada"), w.agent("Ben")
	made := w.newTask("Build", map[string]any{"assigneeId": ada, "idempotencyKey": "k"})
	task := made.Task.ID
	if made.WakeupRequests.sources() != "TASK_ASSIGNED" || made.WakeupRequests[0].Run == nil || made.WakeupRequests[0].Payload["basis"] != "ASSIGNEE" {
		t.Errorf("made: %+v", made)
	}
	again := w.newTask("Build", map[string]any{"assigneeId": ada, "idempotencyKey": "k"})
	if !again.Replayed || again.Task.ID != task || len(again.WakeupRequests) != 1 || again.WakeupRequests[0].ID != made.WakeupRequests[0].ID {
		t.Errorf("C36 replayed: %+v", again)
	}
	if _, problems := w.taskMutation("createTask", "task { id }", map[string]any{"workspaceId": w.workspace, "title": "Other", "idempotencyKey": "k"}); problems != "IDEMPOTENCY_KEY_REUSED input.idempotencyKey" {
		t.Errorf("C36 reused: %q", problems)
	}
	said, _ := w.taskMutation("commentOnTask", "comment { id } replayed "+shownWakes, map[string]any{"taskId": task, "body": "hello", "userId": "ann", "mentionedAgentIds": []string{ben}, "idempotencyKey": "c"})
	if said.WakeupRequests.sources() != "COMMENT USER" || fmt.Sprint(said.WakeupRequests[0].Payload["comment"]) != "map[author:map[userId:ann] body:hello]" {
		t.Errorf("comment: %+v", said)
	}
	if twice, _ := w.taskMutation("commentOnTask", "comment { id } replayed "+shownWakes, map[string]any{"taskId": task, "body": "hello", "userId": "ann", "mentionedAgentIds": []string{ben}, "idempotencyKey": "c"}); !twice.Replayed || len(twice.WakeupRequests) != 2 {
		t.Errorf("C36 comment replayed: %+v", twice)
	}
	given, problems := w.taskMutation("assignTask", "task { id state } cancelledWakeups { id source status } "+shownWakes, map[string]any{"taskId": task, "assigneeId": ben, "expectedRevision": 1})
	if problems != "" || given.WakeupRequests.sources() != "TASK_ASSIGNED" || given.CancelledWakeups.sources() != "TASK_ASSIGNED" || given.CancelledWakeups[0].Status != "CANCELLED" {
		t.Errorf("S5.5 assigned: %q %+v", problems, given)
	}
	if _, problems := w.taskMutation("assignTask", "task { id }", map[string]any{"taskId": task, "assigneeId": ada, "expectedRevision": 1}); problems != "CONFLICT input.expectedRevision" {
		t.Errorf("assigned to an older revision: %q", problems)
	}
	blocked := w.newTask("Ship", map[string]any{"assigneeId": ada, "blockedByIds": []string{task}})
	if blocked.WakeupRequests.sources() != "TASK_ASSIGNED" {
		t.Errorf("blocked: %+v", blocked)
	}
	if _, problems := w.taskMutation("setTaskBlockers", "task { id }", map[string]any{"taskId": task, "blockedByIds": []string{blocked.Task.ID}}); problems != "BLOCKER_CYCLE input.blockedByIds" {
		t.Errorf("a circle: %q", problems)
	}
	var waits struct {
		Run struct {
			Waiting struct {
				Hold      string
				BlockedBy []struct{ ID string }
			}
		}
	}
	w.Do(t.Context(), `query($id: ID!) { run(id: $id) { waiting { hold blockedBy { id } } } }`, map[string]any{"id": blocked.WakeupRequests[0].Run.ID}, &waits)
	if x := waits.Run.Waiting; x.Hold != "TASK_BLOCKED" || len(x.BlockedBy) != 1 || x.BlockedBy[0].ID != task {
		t.Errorf("S3.9 waits: %+v", x)
	}
	asked, _ := w.taskMutation("requestApproval", "approval { id status } "+shownWakes, map[string]any{"taskId": task, "requestedByAgentId": ben, "note": "May I?"})
	answer, problems := w.taskMutation("decideApproval", "approval { id status } task { id state } "+shownWakes, map[string]any{"approvalId": asked.Approval.ID, "decision": "APPROVE", "note": "yes", "userId": "ann"})
	if problems != "" || answer.WakeupRequests.sources() != "APPROVAL_RESOLVED" || fmt.Sprint(answer.WakeupRequests[0].Payload) != "map[approval:map[question:May I?] note:yes status:APPROVED]" {
		t.Errorf("decided: %q %+v", problems, answer)
	}
	done, _ := w.taskMutation("moveTask", "task { id state } "+shownWakes, map[string]any{"taskId": task, "to": "DONE"})
	if done.Task.State != "DONE" || done.WakeupRequests.sources() != "TASK_BLOCKERS_RESOLVED" {
		t.Errorf("done: %+v", done)
	}
	for id, waits := range map[string]bool{task: false, blocked.Task.ID: true} { // what waited about the first ended as it was done
		gone, problems := w.taskMutation("archiveTask", "task { id state } cancelledWakeups { source } "+shownWakes, map[string]any{"taskId": id})
		if problems != "" || (gone.CancelledWakeups.sources() != "") != waits {
			t.Errorf("archived %s: %q %+v", id, problems, gone)
		}
	}
	for name, input := range map[string]map[string]any{
		"moveTask": {"taskId": task, "to": "TODO"}, "commentOnTask": {"taskId": task, "body": "x"}, "queueRun": {"taskId": task},
	} {
		if _, problems := w.taskMutation(name, "userErrors { code }", input); problems != "INVALID_STATE input.taskId" {
			t.Errorf("%s of an archived task: %q", name, problems)
		}
	}
}

func TestATaskIsShownWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.agent("Ada"), w.agent("Ben")
	var project struct {
		CreateProject struct{ Project struct{ ID string } }
	}
	if e := w.mutate("createProject", "project { id }", map[string]any{"workspaceId": w.workspace, "name": "Beans"}, &project); e != "" {
		t.Fatal(e)
	}
	first := w.newTask("First", nil).Task.ID
	parent := w.newTask("Parent", map[string]any{"projectId": project.CreateProject.Project.ID}).Task.ID
	task := w.newTask("Child", map[string]any{"parentId": parent, "assigneeId": ada, "blockedByIds": []string{first}, "requiresApproval": true, "executor": map[string]any{"echo": map[string]any{}}}).Task.ID
	if _, e := w.taskMutation("setTaskParticipants", "task { id } "+shownWakes, map[string]any{"taskId": task, "reviewerIds": []string{ben}, "approverIds": []string{ben, ada}}); e != "" {
		t.Fatal(e)
	}
	if _, e := w.taskMutation("commentOnTask", "comment { id } "+shownWakes, map[string]any{"taskId": task, "body": "from afar", "channel": map[string]any{"channel": "slack", "sender": "U1"}, "mentionedAgentIds": []string{ben}}); e != "" {
		t.Fatal(e)
	}
	var out struct{ Task json.RawMessage }
	w.Do(t.Context(), `query($id: ID!) { task(id: $id) { title state isAutonomous isBlocked requiresApproval assignee { name actionableTaskCount } reviewers { name } approvers { name } parent { title }
		project { name tasks { edges { node { title } } } } workflow { kind steps { name onEnter } } step { name } blockedBy { totalCount edges { node { title blocks { edges { node { title } } } } } }
		comments { edges { node { body author { ... on ChannelActor { channel sender } } mentions { name } } } } executor { ... on EchoExecutor { delay } } checkout { since } children { totalCount } sessions { id }
		runs { edges { node { status task { title } } } } } }`, map[string]any{"id": task}, &out)
	want := `{"title":"Child","state":"TODO","isAutonomous":true,"isBlocked":true,"requiresApproval":true,"assignee":{"name":"Ada","actionableTaskCount":1},"reviewers":[{"name":"Ben"}],` +
		`"approvers":[{"name":"Ada"},{"name":"Ben"}],"parent":{"title":"Parent"},"project":{"name":"Beans","tasks":{"edges":[{"node":{"title":"Parent"}},{"node":{"title":"Child"}}]}},` +
		`"workflow":{"kind":"OFFICE","steps":[{"name":"To do","onEnter":[]},{"name":"In progress","onEnter":[]},{"name":"In review","onEnter":[]},{"name":"Blocked","onEnter":[]},{"name":"Done","onEnter":[]},{"name":"Cancelled","onEnter":[]}]},` +
		`"step":{"name":"To do"},"blockedBy":{"totalCount":1,"edges":[{"node":{"title":"First","blocks":{"edges":[{"node":{"title":"Child"}}]}}}]},` +
		`"comments":{"edges":[{"node":{"body":"from afar","author":{"channel":"slack","sender":"U1"},"mentions":[{"name":"Ben"}]}}]},"executor":{"delay":"PT0S"},"checkout":null,"children":{"totalCount":0},"sessions":[],` +
		`"runs":{"edges":[{"node":{"status":"QUEUED","task":{"title":"Child"}}}]}}`
	if string(out.Task) != want {
		t.Errorf("got\n%s, want\n%s", out.Task, want)
	}
	for filter, titles := range map[string]string{
		`isBlocked: true`: "Child", `isBlocked: false`: "First Parent", `assigneeId: "` + ada + `"`: "Child", `parentId: "` + parent + `"`: "Child", `search: "ir"`: "First", `state: [DONE]`: "",
	} {
		var page struct {
			Workspace struct {
				Tasks struct {
					Edges []struct{ Node struct{ Title string } }
				}
			}
		}
		w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { tasks(filter: {`+filter+`}, orderBy: {field: CREATED_AT}) { edges { node { title } } } } }`, map[string]any{"id": w.workspace}, &page)
		var got []string
		for _, e := range page.Workspace.Tasks.Edges {
			got = append(got, e.Node.Title)
		}
		if strings.Join(got, " ") != titles {
			t.Errorf("%s: %v, want %s", filter, got, titles)
		}
	}
}

// Nothing of a task crosses its workspace's border (SPEC S2).
func TestTasksOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.agent("Ada")
	task := w.newTask("Mine", map[string]any{"assigneeId": ada}).Task.ID
	asked, _ := w.taskMutation("requestApproval", "approval { id status } "+shownWakes, map[string]any{"taskId": task, "requestedByAgentId": ada, "note": "May I?"})
	other := w.makeWorkspace("Other")
	stranger := w.As(auth.Principal{Kind: auth.KindToken, WorkspaceID: xid.ID(other), Scopes: []domain.TokenScope{domain.TokenScopeAdmin}})
	for query, variables := range map[string]map[string]any{
		`mutation($t: ID!) { r: moveTask(input: {taskId: $t, to: DONE}) { userErrors { code } } }`:                                       {"t": task},
		`mutation($t: ID!) { r: commentOnTask(input: {taskId: $t, body: "x"}) { userErrors { code } } }`:                                 {"t": task},
		`mutation($t: ID!) { r: assignTask(input: {taskId: $t}) { userErrors { code } } }`:                                               {"t": task},
		`mutation($t: ID!) { r: archiveTask(input: {taskId: $t}) { userErrors { code } } }`:                                              {"t": task},
		`mutation($t: ID!) { r: queueRun(input: {taskId: $t}) { userErrors { code } } }`:                                                 {"t": task},
		`mutation($a: ID!) { r: decideApproval(input: {approvalId: $a, decision: APPROVE}) { userErrors { code } } }`:                    {"a": asked.Approval.ID},
		`mutation($w: ID!, $t: ID!) { r: createTask(input: {workspaceId: $w, title: "x", parentId: $t}) { userErrors { code } } }`:       {"w": other, "t": task},
		`mutation($w: ID!, $t: ID!) { r: createTask(input: {workspaceId: $w, title: "x", blockedByIds: [$t]}) { userErrors { code } } }`: {"w": other, "t": task},
		`mutation($w: ID!, $a: ID!) { r: createTask(input: {workspaceId: $w, title: "x", assigneeId: $a}) { userErrors { code } } }`:     {"w": other, "a": ada},
	} {
		var out struct {
			R struct{ UserErrors userErrors }
		}
		stranger.Do(t.Context(), query, variables, &out)
		if len(out.R.UserErrors) != 1 || out.R.UserErrors[0].Code != "NOT_FOUND" {
			t.Errorf("%s: %v", query, out.R.UserErrors)
		}
	}
	var seen struct{ Task, Node *struct{ ID string } }
	stranger.Do(t.Context(), `query($t: ID!) { task(id: $t) { id } node(id: $t) { id } }`, map[string]any{"t": task}, &seen)
	if seen.Task != nil || seen.Node != nil {
		t.Errorf("a stranger sees %+v", seen)
	}
}

func TestParticipantsThatAreAbsentStayAsTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.agent("Ada"), w.agent("Ben")
	task := w.newTask("Build", nil).Task.ID
	set := func(more map[string]any) string {
		t.Helper()
		more["taskId"] = task
		var out struct {
			SetTaskParticipants struct{ Task json.RawMessage }
		}
		if e := w.mutate("setTaskParticipants", "task { reviewers { name } approvers { name } }", more, &out); e != "" {
			t.Fatal(e)
		}
		return string(out.SetTaskParticipants.Task)
	}
	set(map[string]any{"reviewerIds": []string{ada}, "approverIds": []string{ben}})
	if got := set(map[string]any{}); got != `{"reviewers":[{"name":"Ada"}],"approvers":[{"name":"Ben"}]}` {
		t.Errorf("neither list is there: %s", got)
	}
	if got := set(map[string]any{"reviewerIds": nil}); got != `{"reviewers":[],"approvers":[{"name":"Ben"}]}` {
		t.Errorf("one list is null: %s", got)
	}
	if got := set(map[string]any{"approverIds": []string{}}); got != `{"reviewers":[],"approvers":[]}` {
		t.Errorf("one list is empty: %s", got)
	}
}

func TestParticipantsAreNotSetOverAChangeThatTheCallerDidNotSee(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.agent("Ada"), w.agent("Ben")
	task := w.newTask("Build", nil).Task.ID
	set := func(reviewer string, expected int) string {
		t.Helper()
		return w.mutate("setTaskParticipants", "task { revision }", map[string]any{"taskId": task, "reviewerIds": []string{reviewer}, "expectedRevision": expected}, nil)
	}
	var at int
	revision := func() int {
		t.Helper()
		w.ok(w.db.QueryRow(`SELECT revision FROM tasks WHERE id = $1`, task).Scan(&at))
		return at
	}
	first := revision()
	if e := set(ada, first); e != "" {
		t.Fatal(e)
	}
	if e := set(ben, first); e != "CONFLICT input.expectedRevision" {
		t.Errorf("with the revision of before: %q", e)
	}
	var reviewer string
	if w.ok(w.db.QueryRow(`SELECT agent_id FROM task_reviewers WHERE task_id = $1`, task).Scan(&reviewer)); reviewer != ada {
		t.Errorf("%s reviews, want %s", reviewer, ada)
	}
	if e := set(ben, revision()); e != "" {
		t.Error(e)
	}
}

func TestAnIntBeyond32BitsIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	task := w.newTask("Build", nil).Task.ID
	const move = `mutation($revision: Int, $task: ID!) { moveTask(input: {taskId: $task, to: DONE, expectedRevision: $revision}) { task { state } } }`
	for name, query := range map[string]string{"a variable": move, "a literal": strings.ReplaceAll(strings.ReplaceAll(move, "$revision: Int, ", ""), "$revision", "4294967296")} {
		variables := map[string]any{"task": task}
		if name == "a variable" {
			variables["revision"] = json.Number("4294967296")
		}
		_, errs := w.Try(t.Context(), query, variables)
		if len(errs) != 1 || !strings.Contains(errs[0].Message, "an Int has 32 bits") {
			t.Errorf("%s: %v", name, errs)
		}
	}
	if got := w.one(`SELECT state FROM tasks`); got != "TODO" {
		t.Errorf("the task is %s", got)
	}
}
