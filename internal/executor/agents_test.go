//go:build unix && agents

package executor

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/modelserver"
)

// realAgent is a program from npm's registry, with what makes it ask the scripted model and nobody else.
type realAgent struct {
	name        string // its column in the table
	version     string
	preset      string   // of a command
	acp         string   // of an agent of the protocol
	arguments   []string // without them its own model chooses another one
	free        []string // arguments with which it uses a shell without asking; an agent of the protocol asks
	environment func(url string) []Variable
	files       func(url string) map[string]string // below its home
	tool        string                             // a step that reads the file notes.txt of its folder
	denied      string                             // a step that it may not take
	child       string                             // a step that starts a process in a session of its own; %s is the command
	badKey      string                             // how its model's provider refuses a key
	limit       func(after time.Duration) string   // and how until when
	limited     []Variable                         // what makes it an account that has such limits
	minute      bool                               // it loses a session that is loaded within the minute in which it began
}

func claudeEnvironment(url string) []Variable {
	return []Variable{{"ANTHROPIC_BASE_URL", url}, {"ANTHROPIC_API_KEY", "sk-test"}, {"CLAUDE_CODE_MAX_RETRIES", "1"}, {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
		{"IS_SANDBOX", "1"}} // as root it starts only where it is told that root can harm nothing
}

func codexFiles(url string) map[string]string {
	return map[string]string{".codex/config.toml": `model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "` + url + `/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`}
}

func geminiEnvironment(url string) []Variable {
	return []Variable{{"GOOGLE_GEMINI_BASE_URL", url}, {"GEMINI_API_KEY", "g-test"}}
}

func geminiFiles(string) map[string]string {
	return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"sessionRetention":{"enabled":false}}}`}
}

func opencodeFiles(url string) map[string]string {
	return map[string]string{".config/opencode/opencode.json": `{"model":"scripted/m","small_model":"scripted/m","provider":{"scripted":{"npm":"@ai-sdk/openai-compatible","name":"scripted",
"options":{"baseURL":"` + url + `/v1","apiKey":"sk-test"},"models":{"m":{"name":"m","cost":{"input":3,"output":15,"cache_read":1},"limit":{"context":100000,"output":8000}}}}}}`}
}

var opencodeEnvironment = []Variable{{"OPENCODE_DISABLE_MODELS_FETCH", "1"}, {"OPENCODE_DISABLE_AUTOUPDATE", "1"}}

func realAgents() []realAgent {
	claude := realAgent{environment: claudeEnvironment, tool: `Read {"file_path":"notes.txt"}`, denied: `Bash {"command":"touch denied"}`, child: `Bash {"command":"%s"}`,
		badKey: "401 invalid x-api-key", limit: claudeLimit, limited: []Variable{{"ANTHROPIC_API_KEY", ""}, {"CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-test"}}}
	// Of a command that ends at once codex tells nothing.
	codex := realAgent{environment: func(string) []Variable { return []Variable{{"OPENAI_API_KEY", "sk-test"}} }, files: codexFiles, tool: `exec_command {"cmd":"sleep 1; cat notes.txt"}`,
		denied: `exec_command {"cmd":"sleep 1; touch /etc/denied"}`, child: `exec_command {"cmd":"%s"}`, badKey: "401 Incorrect API key provided", limit: codexLimit}
	gemini := realAgent{arguments: []string{"-m", "gemini-2.5-pro"}, environment: geminiEnvironment, files: geminiFiles, tool: `read_file {"file_path":"notes.txt"}`,
		denied: `run_shell_command {"command":"touch denied"}`, child: `run_shell_command {"command":"%s"}`, badKey: "400 API key not valid. Please pass a valid API key.", limit: geminiLimit}
	opencode := realAgent{environment: func(string) []Variable { return opencodeEnvironment }, files: opencodeFiles, tool: `read {"filePath":"notes.txt"}`,
		denied: `read {"filePath":"/etc/hostname"}`, child: `bash {"command":"%s","description":"x"}`, badKey: "401 Incorrect API key provided", limit: headerLimit}
	qwen := realAgent{environment: func(url string) []Variable {
		return []Variable{{"OPENAI_BASE_URL", url + "/v1"}, {"OPENAI_API_KEY", "sk-test"}, {"OPENAI_MODEL", "scripted"}}
	}, files: func(string) map[string]string {
		return map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}}}`}
	}, tool: `read_file {"file_path":"notes.txt"}`, denied: `run_shell_command {"command":"touch denied","is_background":false}`, child: `run_shell_command {"command":"%s","is_background":false}`,
		badKey: "401 Incorrect API key provided", limit: headerLimit}
	copilot := realAgent{environment: func(url string) []Variable {
		return []Variable{{"COPILOT_OFFLINE", "true"}, {"COPILOT_PROVIDER_BASE_URL", url + "/v1"}, {"COPILOT_PROVIDER_API_KEY", "sk-test"}, {"COPILOT_MODEL", "gpt-4.1"}}
	}, tool: `view {"path":"notes.txt"}`, denied: `bash {"command":"touch denied","description":"x"}`, child: `bash {"command":"%s","description":"x"}`, badKey: "401 Incorrect API key provided", limit: headerLimit}
	return []realAgent{
		claude.as("claude", "2.1.332", "", "--allowedTools", "Bash"), codex.as("codex", "0.171.0", "", "-s", "danger-full-access"),
		gemini.as("gemini", "0.61.0", "", "--approval-mode", "yolo"), opencode.as("opencode", "1.18.33", ""),
		claude.as("claude-agent-acp", "0.101.0", "acp"), codex.as("codex-acp", "2.6.0", "acp"), gemini.slow().as("gemini --acp", "0.61.0", "acp"),
		opencode.as("opencode acp", "1.18.33", "acp"), qwen.as("qwen --acp", "0.24.4", "acp"), copilot.as("copilot --acp", "1.0.102", "acp"),
	}
}

// slow is a program whose sessions are loaded a minute later.
func (a realAgent) slow() realAgent {
	a.minute = true
	return a
}

// as is the program as a preset's command, or as an agent of the protocol.
func (a realAgent) as(name, version, protocol string, free ...string) realAgent {
	a.name, a.version, a.free = name, version, free
	if first, _, _ := strings.Cut(name, " "); protocol != "" {
		a.acp = first
	} else {
		a.preset = first
	}
	return a
}

func (a realAgent) program() string { return cmp.Or(a.preset, a.acp) }

// agentHome is where one program lives: a home and a folder to work in.
type agentHome struct {
	realAgent
	t     *testing.T
	c     *Command
	home  string
	url   string
	model *modelserver.Server
}

// scripted starts a model on a loopback address.
func scripted(t *testing.T) (url string, model *modelserver.Server) {
	t.Helper()
	model = &modelserver.Server{}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: model, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close() // what is still asked is answered to nobody
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String(), model
}

func (a realAgent) settle(t *testing.T, url string, model *modelserver.Server) agentHome {
	t.Helper()
	home, err := os.MkdirTemp("/var/tmp", "agent-") // codex wants its home outside of the temporary folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	h := agentHome{a, t, newCommand(t, Options{}), home, url, model}
	files := map[string]string{"work/notes.txt": "a note\n"}
	if a.files != nil {
		for name, text := range a.files(url) {
			files[name] = text
		}
	}
	for name, text := range files {
		path := filepath.Join(h.home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h agentHome) work() string { return filepath.Join(h.home, "work") }

// given is one run of a program.
type given struct {
	session   string
	prompt    string
	arguments []string
	allow     bool          // an agent of the protocol gets leave for all
	timeout   time.Duration // 0: long
	variables []Variable
}

// binaries is the folder of the programs that npm installed.
func (h agentHome) binaries() string {
	folder, err := filepath.Abs(cmp.Or(os.Getenv("ROUSE_AGENTS_FOLDER"), filepath.Join("testdata", "agents")))
	if err != nil {
		h.t.Fatal(err)
	}
	return filepath.Join(folder, "node_modules", ".bin")
}

func (h agentHome) run(ctx context.Context, g given, sink *recorder) (Result, error) {
	h.t.Helper()
	program := filepath.Join(h.binaries(), h.program())
	if _, err := os.Stat(program); err != nil {
		h.t.Fatalf("the program is not installed (make test-agents does that): %v", err)
	}
	argv := slices.Concat([]string{program}, h.arguments, g.arguments)
	timeout := cmp.Or(g.timeout, 3*time.Minute)
	req := Request{RunID: "run_1", AgentID: "agt_1", WorkspaceID: "wsp_1", Attempt: 1, Prompt: g.prompt, FullPrompt: g.prompt, ResumeSessionID: g.session,
		Environment: append([]Variable{{"HOME", h.home}, {"PATH", h.binaries() + ":" + os.Getenv("PATH")}}, append(h.environment(h.url), g.variables...)...)}
	if h.preset != "" {
		req.Spec.Command = &domain.CommandSpec{Preset: h.preset, Argv: argv, WorkingDirectory: h.work(), Timeout: timeout, Grace: time.Second}
		return h.c.Run(ctx, req, sink)
	}
	policy := domain.AcpPermissionPolicyReadOnly
	if g.allow {
		policy = domain.AcpPermissionPolicyAllow
	}
	req.Spec.ACP = &domain.ACPSpec{Preset: h.acp, Argv: argv, WorkingDirectory: h.work(), Timeout: timeout, Permissions: policy}
	return NewACP(h.c).Run(ctx, req, sink)
}
