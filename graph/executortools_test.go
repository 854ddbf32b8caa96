package graph_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// An executor hands the tools of the run over unless it says no, and tells of servers whose secrets are its variables.
func TestAnExecutorTellsOfServersOfTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := []any{object{"name": "DOCS_KEY", "value": "hunter2"}}
	servers := []any{object{"name": "docs", "command": []string{"npx", "docs"}, "environment": []string{"DOCS_KEY"}},
		object{"name": "tickets", "url": "https://tickets.example.com/mcp", "headers": []any{object{"name": "Authorization", "variable": "DOCS_KEY"}}}}
	const shown = `[{"name":"docs","command":["npx","docs"],"environment":["DOCS_KEY"],"url":null,"headers":[]},` +
		`{"name":"tickets","command":[],"environment":[],"url":"https://tickets.example.com/mcp","headers":[{"name":"Authorization","variable":"DOCS_KEY"}]}]`
	for name, test := range map[string]struct {
		executor object
		want     string
	}{
		"a preset":          {object{"command": object{"preset": "claude"}}, `{"mcp":true,"mcpServers":[]}`},
		"a preset says no":  {object{"command": object{"preset": "claude", "mcp": false}}, `{"mcp":false,"mcpServers":[]}`},
		"a preset's own":    {object{"command": object{"preset": "codex", "environment": key, "mcpServers": servers}}, `{"mcp":true,"mcpServers":` + shown + `}`},
		"an ACP agent":      {object{"acp": object{"argv": []string{"a"}, "workingDirectory": "/srv", "environment": key, "mcpServers": servers}}, `{"mcp":true,"mcpServers":` + shown + `}`},
		"an ACP agent's no": {object{"acp": object{"argv": []string{"a"}, "workingDirectory": "/srv", "mcp": false}}, `{"mcp":false,"mcpServers":[]}`},
	} {
		made := w.createAgent(name, object{"executor": test.executor})
		if made.CreateAgent.Agent == nil {
			t.Fatalf("%s: %v", name, made.CreateAgent.UserErrors)
		}
		var out struct {
			Agent struct{ Executor json.RawMessage }
		}
		const fields = `{ mcp mcpServers { name command environment url headers { name variable } } }`
		w.Do(t.Context(), `query($id: ID!) { agent(id: $id) { executor { ... on CommandExecutor `+fields+` ... on AcpExecutor `+fields+` } } }`, object{"id": made.CreateAgent.Agent.ID}, &out)
		if got := string(out.Agent.Executor); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	one := func(s object) object {
		return object{"command": object{"preset": "claude", "environment": key, "mcpServers": []any{s}}}
	}
	for name, test := range map[string]struct {
		executor    object
		field, says string
	}{
		"rouse's name":            {one(object{"name": "rouse", "command": []string{"x"}}), "input.executor.command.mcpServers.0.name", "another server"},
		"a name with blanks":      {one(object{"name": "my docs", "command": []string{"x"}}), "input.executor.command.mcpServers.0.name", "small letters"},
		"neither command nor url": {one(object{"name": "docs"}), "input.executor.command.mcpServers.0", "either the command"},
		"both of them":            {one(object{"name": "docs", "command": []string{"x"}, "url": "https://x.example.com"}), "input.executor.command.mcpServers.0", "either the command"},
		"an unknown variable":     {one(object{"name": "docs", "command": []string{"x"}, "environment": []string{"NO_SUCH"}}), "input.executor.command.mcpServers.0.environment.0", "stored encrypted"},
		"an unknown variable of a header": {one(object{"name": "docs", "url": "https://x.example.com", "headers": []any{object{"name": "A", "variable": "NO_SUCH"}}}),
			"input.executor.command.mcpServers.0.headers.0.variable", "NO_SUCH"},
		"a header of a program":          {one(object{"name": "docs", "command": []string{"x"}, "headers": []any{object{"name": "A", "variable": "DOCS_KEY"}}}), "input.executor.command.mcpServers.0.headers", "with a url"},
		"an address that is none":        {one(object{"name": "docs", "url": "docs"}), "input.executor.command.mcpServers.0.url", "http"},
		"a program that knows of none":   {object{"command": object{"argv": []string{"x"}, "mcpServers": []any{object{"name": "docs", "command": []string{"x"}}}}}, "input.executor.command.mcpServers", "cannot be told"},
		"a preset that knows of no such": {object{"command": object{"preset": "aider", "mcpServers": []any{object{"name": "docs", "command": []string{"x"}}}}}, "input.executor.command.mcpServers", "cannot be told"},
	} {
		made := w.createAgent(name, object{"executor": test.executor})
		text, err := json.Marshal(made.CreateAgent.UserErrors)
		if err != nil || made.CreateAgent.Agent != nil || !strings.Contains(string(text), test.says) || !strings.Contains(strings.ReplaceAll(string(text), `","`, "."), test.field+`"`) {
			t.Errorf("%s: %+v %s, %v", name, made.CreateAgent.Agent, text, err)
		}
	}
}
