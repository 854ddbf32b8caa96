package graph_test

import (
	"fmt"
	"strings"
	"testing"
)

// What is no secret is shown and may be kept as it is; what is stored as a secret although it is a word, an address or short is saved
// with advice. That holds wherever an executor is set, for variables and headers alike.
func TestWhatIsNoSecretIsShownAndASecretThatIsAWordIsAdvisedAgainst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, task := w.agent("Ada"), w.newTask("Work", nil).Task.ID
	var made struct {
		CreateProject struct{ Project struct{ ID string } }
	}
	if e := w.mutate("createProject", "project { id }", map[string]any{"workspaceId": w.workspace, "name": "P"}, &made); e != "" {
		t.Fatal(e)
	}
	values := []map[string]any{{"name": "MODE", "value": "production", "secret": false}, {"name": "WORD", "value": "production"},
		{"name": "PLACE", "value": "https://api.example.com/v1"}, {"name": "SHORT", "value": "1"}, {"name": "KEY", "value": "hunter2hunter2"}}
	const want = "MODE=production WORD PLACE SHORT KEY; SECRET_IS_COMMON %[1]s.1.value, SECRET_IS_ADDRESS %[1]s.2.value, SECRET_TOO_SHORT %[1]s.3.value"
	const shown = `executor { ... on CommandExecutor { v: environmentValues { name secret value } } ... on AcpExecutor { v: environmentValues { name secret value } }
		... on HttpExecutor { v: headerValues { name secret value } } ... on PullExecutor { command { v: environmentValues { name secret value } } } }`
	type pairs []struct {
		Name   string
		Secret bool
		Value  *string
	}
	type holder struct {
		Executor struct {
			V       pairs
			Command struct{ V pairs }
		}
	}
	for _, c := range []struct{ mutation, of, idField, id, field, kind, list string }{
		{"updateAgent", "agent", "agentId", agent, "executor", "command", "environment"},
		{"updateTask", "task", "taskId", task, "executor", "acp", "environment"},
		{"updateProject", "project", "projectId", made.CreateProject.Project.ID, "executor", "http", "headers"},
		{"updateAgent", "agent", "agentId", agent, "executor", "pull", "command.environment"},
		{"createAgent", "agent", "workspaceId", w.workspace, "executor", "command", "environment"},
		{"createTask", "task", "workspaceId", w.workspace, "executor", "command", "environment"},
		{"createProject", "project", "workspaceId", w.workspace, "executor", "command", "environment"},
	} {
		set := func(values any) string {
			var executor any
			switch c.kind {
			case "http":
				executor = map[string]any{"http": map[string]any{"url": "https://agents.example.com/", "headers": values}}
			case "pull":
				executor = map[string]any{"pull": map[string]any{"command": map[string]any{"argv": []string{"x"}, "environment": values}}}
			case "acp":
				executor = map[string]any{"acp": map[string]any{"argv": []string{"x"}, "workingDirectory": "/srv", "environment": values}}
			default:
				executor = map[string]any{"command": map[string]any{"argv": []string{"x"}, "environment": values}}
			}
			input := map[string]any{c.idField: c.id, c.field: executor}
			switch c.mutation {
			case "createAgent":
				input["name"], input["role"] = "Another", "WORKER"
			case "createTask":
				input["title"] = "Another"
			case "createProject":
				input["name"] = "Another"
			}
			out := map[string]struct {
				Agent, Task, Project holder
				Warnings             []struct {
					Code, Message string
					Field         []string
				}
			}{}
			if e := w.mutate(c.mutation, c.of+" { "+shown+" } warnings { code message field }", input, &out); e != "" {
				return e
			}
			got := out[c.mutation]
			var said, warned []string
			for _, h := range []holder{got.Agent, got.Task, got.Project} {
				for _, v := range append(h.Executor.V, h.Executor.Command.V...) {
					if v.Value != nil {
						v.Name += "=" + *v.Value
					}
					if v.Secret != (v.Value == nil) {
						v.Name += "?"
					}
					said = append(said, v.Name)
				}
			}
			for _, a := range got.Warnings {
				if !strings.HasPrefix(a.Code, "SECRET_") {
					continue // advice about an agent
				}
				warned = append(warned, a.Code+" "+strings.Join(a.Field, "."))
				if strings.Contains(a.Message, "production") {
					t.Errorf("the advice repeats the value: %s", a.Message)
				}
			}
			return strings.Join(said, " ") + "; " + strings.Join(warned, ", ")
		}
		if got, want := set(values), fmt.Sprintf(want, "input."+c.field+"."+c.kind+"."+c.list); got != want {
			t.Errorf("%s with %s: %s, want %s", c.mutation, c.kind, got, want)
		}
		if c.mutation == "updateAgent" && c.kind == "command" {
			kept := []map[string]any{{"name": "MODE", "keep": true, "secret": false}, {"name": "KEY", "keep": true}}
			if got, want := set(kept), "MODE=production KEY; "; got != want {
				t.Errorf("kept: %s, want %s", got, want)
			}
			if got := set([]map[string]any{{"name": "KEY", "keep": true, "secret": false}}); !strings.Contains(got, "secret") || !strings.Contains(got, "INVALID") {
				t.Errorf("a secret is kept as none: %s", got)
			}
		}
	}
}
