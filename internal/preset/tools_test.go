package preset

import (
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

// Each program is told of servers as its documentation says, by names of variables and never by their values.
func TestProgramsAreToldOfServersOfTools(t *testing.T) {
	t.Parallel()
	servers := []domain.ToolServer{
		{Name: "rouse", Command: []string{"/usr/bin/rouse", "mcp"}, Environment: domain.ToolVariables},
		{Name: "docs", URL: "https://docs.example.com/mcp?a=1&b=2", Headers: []domain.ToolHeader{{Name: "Authorization", Variable: "DOCS_KEY"}}},
	}
	for name, want := range map[string]Handed{
		"claude": {Args: []string{
			`--mcp-config={"mcpServers":{"docs":{"headers":{"Authorization":"${DOCS_KEY}"},"type":"http","url":"https://docs.example.com/mcp?a=1&b=2"},` +
				`"rouse":{"args":["mcp"],"command":"/usr/bin/rouse","env":{"ROUSE_API_URL":"${ROUSE_API_URL}","ROUSE_RUN_TOKEN":"${ROUSE_RUN_TOKEN}"},"type":"stdio"}}}`,
			"--allowedTools=mcp__rouse,mcp__docs",
		}},
		"codex": {Args: []string{
			"-c", `mcp_servers.rouse={command="/usr/bin/rouse",args=["mcp"],env_vars=["ROUSE_API_URL","ROUSE_RUN_TOKEN"],startup_timeout_sec=60,default_tools_approval_mode="approve"}`,
			"-c", `mcp_servers.docs={url="https://docs.example.com/mcp?a=1&b=2",env_http_headers={"Authorization"="DOCS_KEY"},startup_timeout_sec=60,default_tools_approval_mode="approve"}`,
		}},
		"gemini": {FileVar: "GEMINI_CLI_SYSTEM_DEFAULTS_PATH", File: `{"mcpServers":{"docs":{"headers":{"Authorization":"${DOCS_KEY}"},"httpUrl":"https://docs.example.com/mcp?a=1&b=2","trust":true},` +
			`"rouse":{"args":["mcp"],"command":"/usr/bin/rouse","env":{"ROUSE_API_URL":"${ROUSE_API_URL}","ROUSE_RUN_TOKEN":"${ROUSE_RUN_TOKEN}"},"trust":true}}}`},
		"opencode": {Environment: map[string]string{"OPENCODE_CONFIG_CONTENT": `{"mcp":{"docs":{"enabled":true,"headers":{"Authorization":"{env:DOCS_KEY}"},"type":"remote","url":"https://docs.example.com/mcp?a=1&b=2"},` +
			`"rouse":{"command":["/usr/bin/rouse","mcp"],"enabled":true,"environment":{"ROUSE_API_URL":"{env:ROUSE_API_URL}","ROUSE_RUN_TOKEN":"{env:ROUSE_RUN_TOKEN}"},"type":"local"}}}`}},
	} {
		p, _ := Find(name)
		got, ok := p.HandTools(servers)
		if !ok || !slices.Equal(got.Args, want.Args) || got.File != want.File || got.FileVar != want.FileVar || got.Environment["OPENCODE_CONFIG_CONTENT"] != want.Environment["OPENCODE_CONFIG_CONTENT"] {
			t.Errorf("%s: %t\n%s\n%s %s\n%s", name, ok, strings.Join(got.Args, "\n"), got.FileVar, got.File, got.Environment)
		}
		if got, ok := p.HandTools(nil); !ok || got.Args != nil || got.File != "" || got.Environment != nil {
			t.Errorf("%s is told of no server: %+v", name, got)
		}
	}
	aider, _ := Find("aider")
	if _, ok := aider.HandTools(servers); ok {
		t.Error("aider knows of no such servers")
	}
	for _, name := range Names() {
		if p, _ := Find(name); domain.PresetTakesTools(name) != (name != "aider") || p.Name != name {
			t.Errorf("%s: takes tools is %t", name, domain.PresetTakesTools(name))
		}
	}
}
