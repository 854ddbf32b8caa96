package graph_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// An executor names programs, addresses and secrets: who may only operate, or is an agent, sets none and clears none, in
// whatever form it is sent, and nothing of the call is done.
func TestOnlyADMINSetsOrClearsAnExecutor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	task := w.newTask("Work", map[string]any{"assigneeId": agent, "executor": map[string]any{"echo": map[string]any{}}})
	attempt := w.start()
	of := func(kind auth.Kind, scopes ...domain.TokenScope) auth.Principal {
		return auth.Principal{Kind: kind, WorkspaceID: xid.ID(w.workspace), Scopes: scopes, AgentID: xid.ID(agent), TaskID: xid.ID(task.Task.ID), RunID: attempt.RunID, Attempt: attempt.Number}
	}
	operate, admin, run := of(auth.KindToken, domain.TokenScopeOperate), of(auth.KindToken, domain.TokenScopeAdmin), of(auth.KindRun)
	const (
		create  = `mutation($input: CreateTaskInput!) { createTask(input: $input) { task { id } userErrors { code message field } } }`
		field   = `mutation($w: ID!, $x: ExecutorInput) { createTask(input: {workspaceId: $w, title: "x", executor: $x}) { task { id } userErrors { code message field } } }`
		inline  = `mutation($w: ID!) { createTask(input: {workspaceId: $w, title: "x", executor: {http: {url: "http://evil.example"}}}) { task { id } userErrors { code message field } } }`
		cleared = `mutation($w: ID!) { createTask(input: {workspaceId: $w, title: "x", executor: null}) { task { id } userErrors { code message field } } }`
		update  = `mutation($t: ID!, $x: ExecutorInput) { updateTask(input: {taskId: $t, title: "y", executor: $x}) { task { id } userErrors { code message field } } }`
		clear   = `mutation($t: ID!) { other: updateTask(input: {taskId: $t, executor: null}) { task { id } userErrors { code message field } } }`
	)
	command := map[string]any{"command": map[string]any{"argv": []string{"id"}}}
	w1, t1 := w.workspace, task.Task.ID
	for name, c := range map[string]struct {
		caller  auth.Principal
		query   string
		with    map[string]any
		refused bool
	}{
		"OPERATE makes a task":                                 {operate, create, map[string]any{"input": map[string]any{"workspaceId": w1, "title": "x"}}, false},
		"OPERATE makes a task with a command":                  {operate, create, map[string]any{"input": map[string]any{"workspaceId": w1, "title": "x", "executor": command}}, true},
		"OPERATE makes a task with a command by its own field": {operate, field, map[string]any{"w": w1, "x": command}, true},
		"OPERATE leaves the variable of an executor out":       {operate, field, map[string]any{"w": w1}, false},
		"OPERATE makes a task with an address":                 {operate, inline, map[string]any{"w": w1}, true},
		"OPERATE makes a task with no executor by name":        {operate, cleared, map[string]any{"w": w1}, true},
		"OPERATE changes a title":                              {operate, update, map[string]any{"t": t1}, false},
		"OPERATE changes an executor":                          {operate, update, map[string]any{"t": t1, "x": command}, true},
		"OPERATE clears an executor by variable":               {operate, update, map[string]any{"t": t1, "x": nil}, true},
		"OPERATE clears an executor":                           {operate, clear, map[string]any{"t": t1}, true},
		"an agent makes a subtask":                             {run, create, map[string]any{"input": map[string]any{"workspaceId": w1, "title": "x"}}, false},
		"an agent makes a subtask with a command":              {run, create, map[string]any{"input": map[string]any{"workspaceId": w1, "title": "x", "executor": command}}, true},
		"an agent makes a subtask with no executor by name":    {run, cleared, map[string]any{"w": w1}, true},
		"ADMIN makes a task with a command":                    {admin, create, map[string]any{"input": map[string]any{"workspaceId": w1, "title": "x", "executor": command}}, false},
		"ADMIN clears an executor":                             {admin, clear, map[string]any{"t": w.newTask("Other", nil).Task.ID}, false},
		"who needs no token changes an executor":               {auth.Local(), update, map[string]any{"t": t1, "x": map[string]any{"echo": map[string]any{"delay": "PT1S"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.one(`SELECT count(*) || ' ' || count(executor) FROM tasks`)
			data, errs := w.As(c.caller).Try(t.Context(), c.query, c.with)
			if !c.refused {
				if len(errs) > 0 || strings.Contains(string(data), `"code"`) {
					t.Errorf("%s, %v", data, errs)
				}
				return
			}
			if len(errs) == 0 {
				t.Fatalf("not refused: %s", data)
			}
			e, ok := errors.AsType[*graph.Error](errs[0])
			if !ok || e.Code != graph.CodeForbidden || fmt.Sprint(e.Extensions) != "map[field:[input executor] scopes:[ADMIN]]" {
				t.Fatalf("%v, want FORBIDDEN for input.executor: %s", errs, data)
			}
			if !strings.HasPrefix(e.Message, "input.executor needs scope ADMIN") {
				t.Errorf("the message is %q", e.Message)
			}
			if path := fmt.Sprint(errs[0].Path); !strings.HasSuffix(path, "input.executor") {
				t.Errorf("the path is %s", path)
			}
			if after := w.one(`SELECT count(*) || ' ' || count(executor) FROM tasks`); after != before {
				t.Errorf("tasks and executors were %s and are %s", before, after)
			}
		})
	}
}

// secretsOf reads what a record has sealed, by name.
func (w *world) sealedOf(table, column, id string) string {
	w.t.Helper()
	var text string
	w.ok(w.db.QueryRow(`SELECT coalesce(`+column+`::text, 'null') FROM `+table+` WHERE id = $1`, id).Scan(&text))
	var spec *domain.ExecutorSpec
	w.ok(json.Unmarshal([]byte(text), &spec))
	var out []string
	for _, v := range spec.Sealed("x").Values {
		out = append(out, v.Name+"="+strings.TrimPrefix(v.Sealed, "sealed for "+id+"/"))
	}
	return strings.Join(out, " ")
}

// Changing one field of an executor keeps the secrets that the input says to keep, wherever an executor stands, and the
// payload lists those that are gone.
func TestSecretsAreKeptByNameAndRemovalsAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type answer struct {
		RemovedSecrets []string
		UserErrors     userErrors
	}
	agent, project, task := w.agent("Ada"), "", w.newTask("Work", nil).Task.ID
	var made struct {
		CreateProject struct{ Project struct{ ID string } }
	}
	if e := w.mutate("createProject", "project { id }", map[string]any{"workspaceId": w.workspace, "name": "P"}, &made); e != "" {
		t.Fatal(e)
	}
	project = made.CreateProject.Project.ID
	for _, at := range []struct{ mutation, idField, id, table, column, field string }{
		{"updateAgent", "agentId", agent, "agents", "executor", "executor"},
		{"updateProject", "projectId", project, "projects", "executor", "executor"},
		{"updateTask", "taskId", task, "tasks", "executor", "executor"},
		{"updateWorkspaceSettings", "workspaceId", w.workspace, "workspaces", "default_executor", "defaultExecutor"},
	} {
		t.Run(at.mutation, func(t *testing.T) {
			w.t = t
			set := func(executor any, want, stored, removed string) {
				t.Helper()
				out := map[string]answer{}
				e := w.mutate(at.mutation, "removedSecrets", map[string]any{at.idField: at.id, at.field: executor}, &out)
				if want = strings.ReplaceAll(want, "executor.", "input."+at.field+"."); e != want {
					t.Fatalf("%v: %q, want %q", executor, e, want)
				}
				if got := strings.Join(out[at.mutation].RemovedSecrets, " "); got != removed {
					t.Errorf("%v: removed %q, want %q", executor, got, removed)
				}
				if got := w.sealedOf(at.table, at.column, at.id); got != stored {
					t.Errorf("%v: stored %q, want %q", executor, got, stored)
				}
			}
			given := func(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }
			keep := func(name string) map[string]any { return map[string]any{"name": name, "keep": true} }
			command := func(kind string, environment ...any) map[string]any {
				x := map[string]any{"argv": []string{"a"}, "environment": environment}
				if kind == "acp" {
					x["workingDirectory"] = "/tmp"
				}
				return map[string]any{kind: x}
			}
			http := func(more map[string]any) map[string]any {
				x := map[string]any{"url": "https://agents.example.com/run"}
				for k, v := range more {
					x[k] = v
				}
				return map[string]any{"http": x}
			}
			set(command("command", given("A", "1"), given("B", "2")), "", "A=A B=B", "")
			set(command("command", keep("A")), "", "A=A", "command.environment.B")
			set(command("command", keep("A"), given("C", "3")), "", "A=A C=C", "")
			set(command("command", keep("A"), keep("a")), "INVALID executor.command.environment.1.keep", "A=A C=C", "")
			set(command("command", map[string]any{"name": "A", "keep": true, "value": "x"}), "INVALID executor.command.environment.0.keep", "A=A C=C", "")
			set(command("command", map[string]any{"name": "A"}), "REQUIRED executor.command.environment.0.value", "A=A C=C", "")
			set(command("command", keep("A"), keep("A")), "INVALID executor.command.environment.1.name", "A=A C=C", "")
			set(command("acp", keep("A"), keep("C")), "", "A=A C=C", "")
			set(map[string]any{"pull": command("command", keep("A"))}, "", "A=A", "acp.environment.C")
			set(http(map[string]any{"headers": []any{keep("A")}}), "INVALID executor.http.headers.0.keep", "A=A", "") // a variable is no header
			set(http(map[string]any{"keepSecret": true}), "INVALID executor.http.keepSecret", "A=A", "")
			set(http(map[string]any{"headers": []any{given("X-Key", "1")}, "secret": "0123456789abcdef"}), "", "X-Key=X-Key signing secret=signing secret", "pull.command.environment.A")
			set(http(map[string]any{"url": "https://elsewhere.example.com", "headers": []any{keep("x-key")}, "keepSecret": true}), "", "X-Key=X-Key signing secret=signing secret", "")
			set(http(map[string]any{"secret": "0123456789abcdef", "keepSecret": true}), "INVALID executor.http.keepSecret", "X-Key=X-Key signing secret=signing secret", "")
			set(http(nil), "", "", "http.headers.X-Key http.secret")
			set(command("command", given("A", "1")), "", "A=A", "")
			set(nil, "", "", "command.environment.A")
		})
	}
}

// A record that is made has nothing stored, whatever key the call is repeated with.
func TestANewRecordKeepsNoSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 2 {
		out := w.createAgent("Ada", map[string]any{"idempotencyKey": "k", "executor": map[string]any{"command": map[string]any{"argv": []string{"a"}, "environment": []any{map[string]any{"name": "A", "keep": true}}}}})
		if got := out.CreateAgent.UserErrors.String(); got != "INVALID input.executor.command.environment.0.keep" {
			t.Errorf("%q", got)
		}
	}
}
