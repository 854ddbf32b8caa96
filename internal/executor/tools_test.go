//go:build unix

package executor

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
)

// handed runs a preset's program that prints its arguments, a variable, and the file that it names.
func handed(t *testing.T, options Options, spec domain.CommandSpec, variable string, more ...Variable) (said string, leftovers []string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	program := filepath.Join(t.TempDir(), "program")
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\"\n" + `echo "variable: $` + variable + `"` + "\n" + `[ ! -f "$` + variable + `" ] || cat "$` + variable + "\"\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	spec.Argv, spec.Timeout, spec.Grace, spec.WorkingDirectory = []string{program, "--own"}, time.Minute, time.Second, t.TempDir()
	sink := &recorder{}
	_, err := newCommand(t, options).Run(t.Context(), Request{RunID: "run_1", AgentID: "agt_1", WorkspaceID: "wsp_1", Attempt: 1, Prompt: "go",
		Environment: append([]Variable{{"ROUSE_API_URL", "http://127.0.0.1:1/graphql"}, {"ROUSE_RUN_TOKEN", "rsr_secret"}}, more...), Spec: domain.ExecutorSpec{Command: &spec}}, sink)
	if err != nil && sink.text() == "" {
		t.Fatal(err)
	}
	for _, pattern := range []string{filepath.Join(os.TempDir(), "rouse-*"), filepath.Join(settingsRoot, launchFiles(toolsFile, options.Installation, "run_1", "1"))} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		leftovers = append(leftovers, found...)
	}
	return sink.text(), leftovers
}

// An agent's program is told of the tools of its run by arguments, variables or a file of the launch. The token is in none of them.
func TestAnAgentsProgramIsToldOfTheToolsOfItsRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	byFile := []string{`{"mcpServers":{"rouse":{"args":["mcp"],"command":"` + self}
	if os.Geteuid() != 0 { // the program takes such a file from root alone
		byFile = []string{"variable: \n", "run it as an ACP agent"}
	}
	own := []domain.ToolServer{{Name: "docs", Command: []string{"docs-server"}, Environment: []string{"DOCS_KEY"}}}
	for name, test := range map[string]struct {
		options     Options
		spec        domain.CommandSpec
		variable    string
		more        []Variable
		holds, lack []string
	}{
		"arguments":                        {Options{Tools: self}, domain.CommandSpec{Preset: "claude"}, "NONE", nil, []string{`--mcp-config={"mcpServers":{"rouse":{"args":["mcp"],"command":"` + self, "--allowedTools=mcp__rouse\n", "--own"}, nil},
		"a variable":                       {Options{Tools: self}, domain.CommandSpec{Preset: "opencode"}, "OPENCODE_CONFIG_CONTENT", nil, []string{`variable: {"mcp":{"rouse":{"command":["` + self + `","mcp"]`}, nil},
		"a file":                           {Options{Tools: self}, domain.CommandSpec{Preset: "gemini"}, "GEMINI_CLI_SYSTEM_DEFAULTS_PATH", nil, byFile, nil},
		"the executor says no":             {Options{Tools: self}, domain.CommandSpec{Preset: "claude", NoTools: true}, "NONE", nil, []string{"--own"}, []string{"mcp"}},
		"a server of its own":              {Options{Tools: self}, domain.CommandSpec{Preset: "codex", NoTools: true, ToolServers: own}, "NONE", []Variable{{"DOCS_KEY", "hunter2"}}, []string{`mcp_servers.docs={command="docs-server",args=[],env_vars=["DOCS_KEY"]`}, []string{"mcp_servers.rouse", "hunter2"}},
		"a program that knows of no tools": {Options{Tools: self}, domain.CommandSpec{Preset: "aider"}, "NONE", nil, []string{"--own"}, []string{"mcp"}},
		"a program without a preset":       {Options{Tools: self}, domain.CommandSpec{}, "NONE", nil, []string{"--own"}, []string{"mcp"}},
		"rouse cannot be run by the agent": {Options{Tools: "/nowhere/rouse"}, domain.CommandSpec{Preset: "claude"}, "NONE", nil, []string{"does not get the tools of its run, because the program /nowhere/rouse does not exist", "mcp: false"}, []string{"--mcp-config"}},
		"the executor sets the variable":   {Options{Tools: self}, domain.CommandSpec{Preset: "opencode"}, "OPENCODE_CONFIG_CONTENT", []Variable{{"OPENCODE_CONFIG_CONTENT", "{}"}}, []string{"variable: {}", "because the executor sets OPENCODE_CONFIG_CONTENT"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			said, left := handed(t, test.options, test.spec, test.variable, test.more...)
			for _, text := range test.holds {
				if !strings.Contains(said, text) {
					t.Errorf("lacks %q:\n%s", text, said)
				}
			}
			for _, text := range append(test.lack, "rsr_secret") {
				if strings.Contains(said, text) {
					t.Errorf("holds %q:\n%s", text, said)
				}
			}
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// An ACP agent gets the values with the servers, because it starts their programs. A server elsewhere is for agents that say they can.
func TestAnACPAgentIsToldOfServersOfTools(t *testing.T) {
	h := handing{servers: []domain.ToolServer{
		{Name: "rouse", Command: []string{"/usr/bin/rouse", "mcp"}, Environment: domain.ToolVariables},
		{Name: "docs", URL: "https://docs.example.com/mcp", Headers: []domain.ToolHeader{{Name: "Authorization", Variable: "DOCS_KEY"}}},
	}}
	req := Request{Environment: []Variable{{"ROUSE_API_URL", "http://x"}, {"ROUSE_RUN_TOKEN", "rsr_1"}, {"DOCS_KEY", "old"}, {"DOCS_KEY", "k"}}}
	var hello acp.InitializeResponse
	for http, want := range map[bool]string{
		false: `[{"args":["mcp"],"command":"/usr/bin/rouse","env":[{"name":"ROUSE_API_URL","value":"http://x"},{"name":"ROUSE_RUN_TOKEN","value":"rsr_1"}],"name":"rouse"}]`,
		true: `[{"args":["mcp"],"command":"/usr/bin/rouse","env":[{"name":"ROUSE_API_URL","value":"http://x"},{"name":"ROUSE_RUN_TOKEN","value":"rsr_1"}],"name":"rouse"},` +
			`{"headers":[{"name":"Authorization","value":"k"}],"name":"docs","type":"http","url":"https://docs.example.com/mcp"}]`,
	} {
		hello.AgentCapabilities.McpCapabilities.Http = http
		servers, note := h.acpServers(req, hello)
		if told := strings.Contains(note, "does not get the tools of docs, because"); told == http || http && note != "" {
			t.Errorf("with http %t the log says %q", http, note)
		}
		got, err := json.Marshal(servers)
		if err := errors.Join(err, equalJSON(got, want)); err != nil {
			t.Error(err)
		}
	}
	servers, note := handing{}.acpServers(req, hello)
	if got, err := json.Marshal(servers); err != nil || string(got) != "[]" || note != "" {
		t.Errorf("no servers: %s, %v, %q", got, err, note)
	}
}

func equalJSON(got []byte, want string) error {
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		return err
	}
	x, _ := json.Marshal(a) // what was read is written
	y, _ := json.Marshal(b)
	if string(x) != string(y) {
		return errors.New(string(x) + "\nwant " + string(y))
	}
	return nil
}

func TestPermissionForRousesToolsIsForThemAlone(t *testing.T) {
	for title, want := range map[string]bool{
		"mcp__rouse__complete_task": true, "rouse.comment": true, "rouse/get_task": true, "create_subtask (rouse MCP Server)": true, "rouse_self_wake": true,
		"mcp__rouse__": false, "mcp__rousette__comment": false, "rm -rf / # mcp__rouse__comment": false, "mcp__rouse__comment; rm -rf /": false, "rouse": false, "comment": false, "": false,
	} {
		if got := ownTool(title); got != want {
			t.Errorf("%q: %t", title, got)
		}
	}
}
