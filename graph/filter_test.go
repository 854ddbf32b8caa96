package graph_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/graph/graphtest"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// An empty list in a filter lets nothing through; one that is absent or null lets all through.
func TestAnEmptyListInAFilterLetsNothingThrough(t *testing.T) {
	t.Parallel()
	w := newPagedWorld(t)
	for name, c := range map[string]struct{ field, list string }{
		"state of tasks":     {"tasks", "state"},
		"status of agents":   {"agents", "status"},
		"role of agents":     {"agents", "role"},
		"status of routines": {"routines", "status"},
		"status of fires":    {"routineRuns", "status"},
		"source of fires":    {"routineRuns", "source"},
		"status of requests": {"wakeupRequests", "status"},
		"source of requests": {"wakeupRequests", "source"},
		"status of runs":     {"runs", "status"},
		"shape of runs":      {"runs", "terminalShape"},
		"kind of items":      {"inbox", "kind"},
		"code of activities": {"activity", "code"},
	} {
		t.Run(name, func(t *testing.T) {
			count := func(filter string) (n int) {
				t.Helper()
				var out struct {
					Workspace map[string]struct{ Edges []json.RawMessage }
				}
				w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { `+c.field+filter+` { edges { node { __typename } } } } }`, map[string]any{"id": w.workspace}, &out)
				return len(out.Workspace[c.field].Edges)
			}
			all := count("")
			if got := count("(filter: {" + c.list + ": null})"); got != all {
				t.Errorf("null: %d rows of %d", got, all)
			}
			if got := count("(filter: {" + c.list + ": []})"); got != 0 || all == 0 {
				t.Errorf("an empty list: %d rows of %d", got, all)
			}
		})
	}
}

// Null in a filter asks for what has none, and absent for nothing.
func TestNullInAFilterAsksForWhatHasNone(t *testing.T) {
	t.Parallel()
	w := newPagedWorld(t)
	w.sql(`UPDATE tasks SET assignee_id = $1 WHERE right(id, 1) IN ('1', '2')`, w.agent)
	w.sql(`UPDATE runs SET task_id = NULL WHERE right(id, 1) = '3'`)
	w.sql(`UPDATE runs SET routine_id = $1 WHERE right(id, 1) IN ('3', '4')`, w.routine)
	for _, c := range []struct {
		field, filter string
		want          int
	}{
		{"tasks", "{}", 7}, {"tasks", "{assigneeId: null}", 5}, {"tasks", "{assigneeId: $agent}", 2}, {"tasks", "{assigneeId: $absent}", 7},
		{"tasks", "{projectId: null}", 2}, {"tasks", "{parentId: null}", 2}, {"tasks", "{parentId: null, assigneeId: $agent}", 0},
		{"runs", "{}", 5}, {"runs", "{taskId: null}", 1}, {"runs", "{routineId: null}", 3}, {"runs", "{routineId: $absent}", 5},
	} {
		declared := `$id: ID!`
		for _, name := range []string{"agent", "absent"} {
			if strings.Contains(c.filter, "$"+name) {
				declared += ", $" + name + ": ID"
			}
		}
		var out struct {
			Workspace map[string]struct{ Edges []json.RawMessage }
		}
		with := map[string]any{"id": w.workspace}
		if strings.Contains(c.filter, "$agent") {
			with["agent"] = w.agent
		}
		w.Do(t.Context(), `query(`+declared+`) { workspace(id: $id) { `+c.field+`(filter: `+c.filter+`) { edges { node { id } } } } }`, with, &out)
		if got := len(out.Workspace[c.field].Edges); got != c.want {
			t.Errorf("%s of %s: %d rows, want %d", c.filter, c.field, got, c.want)
		}
	}
}

// What a caller without READ does not see of a type it does not see through an interface of it.
func TestNarrowTokensSeeNoMoreThroughInterfaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	task := w.newTask("Work", map[string]any{"assigneeId": agent}).Task.ID
	attempt := w.start()
	run := w.As(auth.Principal{Kind: auth.KindRun, WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(agent), TaskID: xid.ID(task), RunID: attempt.RunID, Attempt: attempt.Number})
	execute := w.As(auth.Principal{Kind: auth.KindToken, WorkspaceID: xid.ID(w.workspace), Scopes: []domain.TokenScope{domain.TokenScopeExecute}})
	for name, c := range map[string]struct{ fields, want string }{
		"its own task":                        {"id title", ""},
		"an agent's name":                     {"assignee { id name }", ""},
		"an agent's id by an interface":       {"assignee { ... on Node { id } }", ""},
		"an agent's revision":                 {"assignee { revision }", graph.CodeForbidden},
		"an agent's revision by an interface": {"assignee { ... on Versioned { revision } }", graph.CodeForbidden},
		"a task's revision by an interface":   {"... on Versioned { revision }", graph.CodeForbidden}, // an agent is one, too
	} {
		_, errs := run.Try(t.Context(), `mutation($id: ID!) { moveTask(input: {taskId: $id, to: IN_PROGRESS}) { task { `+c.fields+` } } }`, map[string]any{"id": task})
		if got := codeOf(errs); got != c.want {
			t.Errorf("%s: %q (%v), want %q", name, got, errs, c.want)
		}
	}
	_, errs := execute.Try(t.Context(), `mutation($w: ID!) { acquireRun(input: {workspaceId: $w}) { lease { run { requests: wakeupRequests { edges { node { payload { ... on RoutineWakeup { trigger { enabled } } } } } } } } } }`, map[string]any{"w": w.workspace})
	if got := codeOf(errs); got != graph.CodeForbidden {
		t.Errorf("a trigger by its interface: %q (%v)", got, errs)
	}
}

// What an agent names as a blocker of a child it does not read by that, nor what became a blocker of its task while its run was at work:
// its token reads its task, that one's children, parent and the blockers that it had before the run began, and no other.
func TestRunTokensReadOnlyTasksLinkedWithTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	parent, foreign := w.newTask("Parent", nil).Task.ID, w.newTask("Foreign", map[string]any{"description": "secret plans"}).Task.ID
	blocker := w.newTask("Blocker", nil).Task.ID
	for id, body := range map[string]string{foreign: "of no concern", parent: "of interest"} {
		if _, problems := w.taskMutation("commentOnTask", "comment { id }", map[string]any{"taskId": id, "body": body}); problems != "" {
			t.Fatal(problems)
		}
	}
	task := w.newTask("Work", map[string]any{"parentId": parent, "assigneeId": agent, "blockedByIds": []string{blocker}}).Task.ID
	w.must("moveTask", "", map[string]any{"taskId": blocker, "to": "DONE"})
	attempt := w.start()
	late := w.newTask("Late", map[string]any{"description": "hidden plans"}).Task.ID
	w.must("setTaskBlockers", "", map[string]any{"taskId": task, "blockedByIds": []string{blocker, late, foreign}})
	run := w.As(auth.Principal{Kind: auth.KindRun, WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(agent), TaskID: xid.ID(task), RunID: attempt.RunID, Attempt: attempt.Number})
	for name, ask := range map[string]string{
		"a node":         `{ node(id: $task) { ... on Task { title } } }`,
		"nodes":          `{ nodes(ids: [$foreign]) { ... on Task { title } } }`,
		"a search":       `{ workspace(id: $w) { tasks(filter: {search: "Foreign"}) { edges { node { title } } } } }`,
		"the feed":       `{ workspace(id: $w) { activity { edges { node { summary } } } } }`,
		"all runs":       `{ workspace(id: $w) { runs { edges { node { summary } } } } }`,
		"instructions":   `{ workspace(id: $w) { agents { edges { node { instructions } } } } }`,
		"the feed, live": `subscription { workspaceActivity(workspaceId: $w) { summary } }`,
		"a run, live":    `subscription { runUpdated(runId: $run) { id } }`,
		"events, live":   `subscription { runEvents(runId: $run) { __typename } }`,
	} {
		ask = strings.NewReplacer("$w", strconv.Quote(w.workspace), "$task", strconv.Quote(task), "$foreign", strconv.Quote(foreign), "$run", strconv.Quote(string(attempt.RunID))).Replace(ask)
		if data, errs := run.Subscribe(t.Context(), ask, nil)(); codeOf(errs) != graph.CodeForbidden || strings.Contains(string(data), "secret") {
			t.Errorf("%s: %s, %v", name, data, errs)
		}
	}
	const texts = `edges { node { title description comments { edges { node { body } } } } }`
	for _, c := range []struct{ mutation, names, hides string }{
		{`r: createTask(input: {workspaceId: $w, title: "Child", blockedByIds: [$foreign]}) { task { title blockedBy { ` + texts + ` } parent { title } } userErrors { message } }`, "Child Work", "Foreign secret"},
		{`r: moveTask(input: {taskId: $task, to: IN_PROGRESS}) { task { title parent { title comments { edges { node { body } } } } blockedBy { ` + texts + ` } children { ` + texts + ` } } userErrors { message } }`,
			"Work Parent interest Blocker Child", "Foreign secret concern Late hidden"},
		{`r: moveTask(input: {taskId: $task, to: IN_PROGRESS}) { task { children { edges { node { blockedBy { ` + texts + ` } } } } } userErrors { message } }`, "edges", "Foreign secret"},
	} {
		mutation := strings.NewReplacer("$w", strconv.Quote(w.workspace), "$task", strconv.Quote(task), "$foreign", strconv.Quote(foreign)).Replace(c.mutation)
		data, errs := run.Try(t.Context(), `mutation { `+mutation+` }`, nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, name := range strings.Fields(c.names) {
			if !strings.Contains(string(data), name) {
				t.Errorf("%s lacks %s: %s", c.mutation, name, data)
			}
		}
		for _, name := range strings.Fields(c.hides) {
			if strings.Contains(string(data), name) {
				t.Errorf("%s shows %s: %s", c.mutation, name, data)
			}
		}
	}
}

// An agent at work reads what its prompt tells of: its task, the tasks linked with it, its run and the workspace's agents.
func TestRunTokensReadWhatTheirPromptTellsOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.agent("Ada"), w.agent("Ben")
	parent, foreign := w.newTask("Parent", nil).Task.ID, w.newTask("Foreign", map[string]any{"description": "secret plans"}).Task.ID
	blocker := w.newTask("Blocker", map[string]any{"description": "how it was unblocked"}).Task.ID
	task := w.newTask("Work", map[string]any{"parentId": parent, "assigneeId": ada, "blockedByIds": []string{blocker}}).Task.ID
	child := w.newTask("Child", map[string]any{"parentId": task, "blockedByIds": []string{foreign}}).Task.ID
	w.must("commentOnTask", "", map[string]any{"taskId": task, "body": "of interest"})
	w.must("requestApproval", "", map[string]any{"taskId": task, "requestedByAgentId": ben, "note": "may it go out?"})
	w.must("moveTask", "", map[string]any{"taskId": blocker, "to": "DONE"})
	attempt := w.start()
	w.must("assignTask", "", map[string]any{"taskId": foreign, "assigneeId": ben})
	other := w.start()
	ids := strings.NewReplacer("$w", strconv.Quote(w.workspace), "$task", strconv.Quote(task), "$parent", strconv.Quote(parent), "$child", strconv.Quote(child),
		"$blocker", strconv.Quote(blocker), "$foreign", strconv.Quote(foreign), "$run", strconv.Quote(string(attempt.RunID)), "$other", strconv.Quote(string(other.RunID)))
	as := w.As(auth.Principal{Kind: auth.KindRun, WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(ada), TaskID: xid.ID(task), RunID: attempt.RunID, Attempt: attempt.Number})
	for name, c := range map[string]struct{ ask, names, hides string }{
		"its task, whole": {`{ task(id: $task) { title state comments { edges { node { body } } } approvals { edges { node { question } } } runs { edges { node { id } } }
			parent { title } children { edges { node { title } } } blockedBy { edges { node { title description } } } } }`,
			"Work interest out? Parent Child Blocker unblocked " + string(attempt.RunID), "Foreign"},
		"its parent":                           {`{ task(id: $parent) { title } }`, "Parent", ""},
		"its child, without the one's blocker": {`{ task(id: $child) { title blockedBy { edges { node { title } } } } }`, "Child", "Foreign"},
		"the blocker that it had":              {`{ task(id: $blocker) { title description } }`, "Blocker unblocked", ""},
		"no other task":                        {`{ task(id: $foreign) { title description } }`, `{"task":null}`, "Foreign"},
		"its run":                              {`{ run(id: $run) { assembledPrompt wakeupRequests { edges { node { payload { __typename } } } } } }`, "Work TaskWakeup", ""},
		"no other run":                         {`{ run(id: $other) { assembledPrompt } }`, `{"run":null}`, "secret"},
		"the workspace's agents":               {`{ workspace { name agents { edges { node { id name role status } } } } }`, "Ada Ben WORKER WORKING " + ben, ""},
		"no runs of others about its task":     {`{ task(id: $task) { runs { edges { node { id agent { name } } } } } }`, "Ada", "Ben " + string(other.RunID)},
	} {
		data, errs := as.Try(t.Context(), ids.Replace(c.ask), nil)
		if len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		for _, want := range strings.Fields(c.names) {
			if !strings.Contains(string(data), want) {
				t.Errorf("%s: %s is missing in %s", name, want, data)
			}
		}
		for _, not := range strings.Fields(c.hides) {
			if strings.Contains(string(data), not) {
				t.Errorf("%s: %s is in %s", name, not, data)
			}
		}
	}
}

// What an agent names as a blocker of a subtask that it makes, it does not read in the subtask's run either; a sibling it does,
// since its parent's run could, and so does another agent, and whoever a person linked the tasks for.
func TestAnAgentDoesNotReadWhatItNamedAsABlocker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.agent("Ada"), w.agent("Ben")
	foreign := w.newTask("Foreign", map[string]any{"description": "secret plans"}).Task.ID
	given := w.newTask("Given", map[string]any{"description": "for all"}).Task.ID
	task := w.newTask("Work", map[string]any{"assigneeId": ada}).Task.ID
	attempt := w.start()
	as := func(agent, task string) *graphtest.Client {
		return w.As(auth.Principal{Kind: auth.KindRun, WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(agent), TaskID: xid.ID(task), RunID: attempt.RunID, Attempt: attempt.Number})
	}
	made := func(title string, blockers ...string) string {
		var out struct {
			CreateTask struct{ Task struct{ ID string } }
		}
		as(ada, task).Do(t.Context(), `mutation($w: ID!, $t: String!, $b: [ID!]!) { createTask(input: {workspaceId: $w, title: $t, blockedByIds: $b}) { task { id } } }`,
			map[string]any{"w": w.workspace, "t": title, "b": append([]string{}, blockers...)}, &out)
		return out.CreateTask.Task.ID
	}
	sibling := made("Sibling")
	child := made("Child", foreign, sibling)
	w.must("setTaskBlockers", "", map[string]any{"taskId": child, "blockedByIds": []string{foreign, sibling, given}})
	w.sql(`UPDATE task_blockers SET created_at = created_at - interval '1 hour'`) // the child's run begins later
	for _, c := range []struct{ agent, names, hides string }{
		{ada, "Child Sibling Given all", "Foreign secret"},
		{ben, "Child Sibling Given all Foreign secret", "nothing"},
	} {
		data, errs := as(c.agent, child).Try(t.Context(), `mutation($t: ID!) { moveTask(input: {taskId: $t, to: IN_PROGRESS}) { task { title blockedBy { edges { node { title description } } } } } }`, map[string]any{"t": child})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, name := range strings.Fields(c.names) {
			if !strings.Contains(string(data), name) {
				t.Errorf("%s lacks %s: %s", c.agent, name, data)
			}
		}
		for _, name := range strings.Fields(c.hides) {
			if strings.Contains(string(data), name) {
				t.Errorf("%s sees %s: %s", c.agent, name, data)
			}
		}
	}
}
