package graph_test

import (
	"strings"
	"testing"
)

// A name has 200 characters, however many bytes they take.
func TestNamesOf200CharactersOfFourBytesAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	most := strings.Repeat("😀", 199)
	agent, task := w.agent("Ada"), w.newTask("Build", nil).Task.ID
	with := func(more map[string]any) map[string]any {
		more["workspaceId"] = w.workspace
		return more
	}
	var made struct {
		CreateRoutine struct{ Routine struct{ ID string } }
		CreateProject struct{ Project struct{ ID string } }
	}
	if e := w.mutate("createRoutine", "routine { id }", with(map[string]any{"name": "Scan", "assigneeId": agent}), &made); e != "" {
		t.Fatal(e)
	}
	if e := w.mutate("createProject", "project { id }", with(map[string]any{"name": "House"}), &made); e != "" {
		t.Fatal(e)
	}
	step := func(name string) []any { return []any{map[string]any{"name": name, "state": "TODO"}} }
	for i, c := range []struct {
		mutation, fields, field string
		input                   map[string]any
		long                    func(input map[string]any, text string)
	}{
		{"createWorkspace", "workspace { name }", "name", map[string]any{"slug": "long"}, nil},
		{"createAgent", "agent { name }", "name", with(map[string]any{"role": "WORKER"}), nil},
		{"updateAgent", "agent { name }", "name", map[string]any{"agentId": agent}, nil},
		{"createProject", "project { name }", "name", with(map[string]any{}), nil},
		{"updateProject", "project { name }", "name", map[string]any{"projectId": made.CreateProject.Project.ID}, nil},
		{"createWorkflow", "workflow { name }", "name", with(map[string]any{"kind": "KANBAN", "steps": step("Do")}), nil},
		{"createWorkflow", "workflow { steps { name } }", "steps.0.name", with(map[string]any{"kind": "KANBAN", "name": "Flow"}),
			func(input map[string]any, text string) { input["steps"] = step(text) }},
		{"createRoutine", "routine { name }", "name", with(map[string]any{"assigneeId": agent}), nil},
		{"updateRoutine", "routine { name }", "name", map[string]any{"routineId": made.CreateRoutine.Routine.ID}, nil},
		{"createTask", "task { title }", "title", with(map[string]any{}), nil},
		{"updateTask", "task { title }", "title", map[string]any{"taskId": task}, nil},
		{"createApiToken", "apiToken { name }", "name", with(map[string]any{"scopes": []string{"READ"}}), nil},
	} {
		t.Run(c.mutation+" "+c.field, func(t *testing.T) {
			say := c.long
			if say == nil {
				say = func(input map[string]any, text string) { input[c.field] = text }
			}
			longest := most + string(rune('😀'+i)) // names are unique
			say(c.input, longest)
			if e := w.mutate(c.mutation, c.fields, c.input, nil); e != "" {
				t.Errorf("200 characters: %s", e)
			}
			say(c.input, "Ada\x1b[31m\u202e")
			if e := w.mutate(c.mutation, c.fields, c.input, nil); e != "INVALID input."+c.field {
				t.Errorf("a name that a terminal obeys: %q", e)
			}
			say(c.input, longest+"x")
			if e := w.mutate(c.mutation, c.fields, c.input, nil); e != "TOO_LONG input."+c.field {
				t.Errorf("201 characters: %q", e)
			}
		})
	}
}

// What else names somebody or something is one line as well.
func TestWhatNamesSomebodyIsOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const bad = "Ada\x1b[31m"
	agent, task := w.agent("Ada"), w.newTask("Build", nil).Task.ID
	for _, c := range []struct {
		mutation, fields, want string
		input                  map[string]any
	}{
		{"wakeAgent", "replayed", "INVALID input.userId", map[string]any{"agentId": agent, "userId": bad}},
		{"commentOnTask", "replayed", "INVALID input.userId", map[string]any{"taskId": task, "body": "x", "userId": bad}},
		{"commentOnTask", "replayed", "INVALID input.channel.channel", map[string]any{"taskId": task, "body": "x", "channel": map[string]any{"channel": bad}}},
		{"commentOnTask", "replayed", "INVALID input.channel.sender", map[string]any{"taskId": task, "body": "x", "channel": map[string]any{"channel": "chat", "sender": bad}}},
		{"createAgent", "replayed", "INVALID input.executor.pull.queue", map[string]any{"workspaceId": w.workspace, "name": "Bob", "role": "WORKER", "executor": map[string]any{"pull": map[string]any{"queue": bad}}}},
	} {
		if e := w.mutate(c.mutation, c.fields, c.input, nil); e != c.want {
			t.Errorf("%s: %q, want %q", c.mutation, e, c.want)
		}
	}
}
