package graph_test

import (
	"encoding/json"
	"strings"
	"testing"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// An empty list in a filter lets nothing through; one that is absent or null lets all through.
func TestAnEmptyListInAFilterLetsNothingThrough(t *testing.T) {
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
