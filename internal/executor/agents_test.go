//go:build unix && agents

package executor

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/modelserver"
)

// realAgent is a program from npm's registry, with what makes it ask the scripted model and nobody else.
type realAgent struct {
	name        string
	environment func(url string) []Variable
	files       func(url string) map[string]string // below its home
	cost        bool                               // it tells what it cost
}

var realAgents = []realAgent{
	{name: "claude", cost: true, environment: func(url string) []Variable {
		return []Variable{{"ANTHROPIC_BASE_URL", url}, {"ANTHROPIC_API_KEY", "sk-test"}, {"CLAUDE_CODE_MAX_RETRIES", "1"}, {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"}}
	}},
	{name: "codex", environment: func(string) []Variable { return []Variable{{"OPENAI_API_KEY", "sk-test"}} }, files: func(url string) map[string]string {
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
	}},
	{name: "gemini", environment: func(url string) []Variable {
		return []Variable{{"GOOGLE_GEMINI_BASE_URL", url}, {"GEMINI_API_KEY", "g-test"}}
	}, files: func(string) map[string]string {
		return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`}
	}},
	{name: "opencode", cost: true, environment: func(string) []Variable {
		return []Variable{{"OPENCODE_DISABLE_MODELS_FETCH", "1"}, {"OPENCODE_DISABLE_AUTOUPDATE", "1"}}
	}, files: func(url string) map[string]string {
		return map[string]string{".config/opencode/opencode.json": `{"model":"scripted/m","small_model":"scripted/m","provider":{"scripted":{"npm":"@ai-sdk/openai-compatible","name":"scripted",
"options":{"baseURL":"` + url + `/v1","apiKey":"sk-test"},"models":{"m":{"name":"m","cost":{"input":3,"output":15,"cache_read":1},"limit":{"context":100000,"output":8000}}}}}}`}
	}},
}

// agentHome is where one program lives: a home and a folder to work in.
type agentHome struct {
	realAgent
	t    *testing.T
	c    *Command
	home string
	url  string
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

func (a realAgent) settle(t *testing.T, url string) agentHome {
	t.Helper()
	h := agentHome{a, t, newCommand(t, Options{}), t.TempDir(), url}
	if a.files != nil {
		for name, text := range a.files(url) {
			path := filepath.Join(h.home, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(h.home, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h agentHome) run(session, prompt string, more ...Variable) (Result, error, *recorder) {
	h.t.Helper()
	program, err := filepath.Abs(filepath.Join("testdata", "agents", "node_modules", ".bin", h.name))
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		h.t.Fatalf("the program is not installed (make test-agents does that): %v", err)
	}
	sink := &recorder{}
	result, err := h.c.Run(h.t.Context(), Request{RunID: "run_1", AgentID: "agt_1", WorkspaceID: "wsp_1", Attempt: 1, Prompt: prompt, FullPrompt: prompt, ResumeSessionID: session,
		Environment: append(append([]Variable{{"HOME", h.home}, {"PATH", os.Getenv("PATH")}}, h.environment(h.url)...), more...),
		Spec:        domain.ExecutorSpec{Command: &domain.CommandSpec{Preset: h.name, Argv: []string{program}, WorkingDirectory: filepath.Join(h.home, "work"), Timeout: 2 * time.Minute, Grace: time.Second}}}, sink)
	return result, err, sink
}

// Today's programs run, go on with their sessions, tell their use, and say why they cannot, against a model that does what the prompt
// says. `make test-agents` installs them.
func TestRealAgents(t *testing.T) {
	for _, a := range realAgents {
		t.Run(a.name, func(t *testing.T) {
			url, model := scripted(t)
			h := a.settle(t, url)
			first, err, sink := h.run("", "@@say Done.\\n```json\\n{\\n  \"summary\": \"first\",\\n  \"actions\": [{\"type\": \"complete_task\"}],\\n  \"usage\": {\"cost_usd\": 9999}\\n}\\n```\\nThat is all.")
			if err != nil || first.Object["summary"] != "first" || first.Object["actions"] == nil || !first.Resumable {
				t.Fatalf("the first run: %+v, %v\n%s", first, err, sink.text())
			}
			h.wantUse("the first run", first)
			again, err, sink := h.run(first.SessionID, `@@say {"summary":"second"}`)
			if err != nil || again.Object["summary"] != "second" || again.SessionID != first.SessionID || again.Fresh {
				t.Fatalf("the second run: %+v, %v\n%s", again, err, sink.text())
			}
			if h.cost && (again.Usage == nil || *again.Usage != *first.Usage) {
				t.Errorf("the second run used %+v, and the first one, which did as much, %+v", again.Usage, first.Usage)
			}
			h.wantRefusals(first.SessionID)
			lost, err, sink := h.run("5f1c0000-0000-4000-8000-000000000001", `@@say {"summary":"anew"}`)
			if err != nil || !lost.Fresh || lost.Object["summary"] != "anew" {
				t.Errorf("a session that is not known: %+v, %v\n%s", lost, err, sink.text())
			}
			if calls := model.Calls(); len(calls) < 5 {
				t.Errorf("the model was asked %d times", len(calls))
			}
		})
	}
}

func (h agentHome) wantUse(name string, r Result) {
	h.t.Helper()
	if r.Usage == nil || r.Usage.InputTokens < 100 || r.Usage.OutputTokens < 11 || r.Usage.CostUSD == "9999" || h.cost && r.Usage.CostUSD == "0" {
		h.t.Errorf("%s used %+v", name, r.Usage)
	}
}

// wantRefusals resumes the session while the model's provider refuses: none of that is the session's fault.
func (h agentHome) wantRefusals(session string) {
	h.t.Helper()
	for _, test := range []struct {
		name, step string
		want       domain.RunErrorCode
	}{
		{"a bad key", map[string]string{"claude": "401 invalid x-api-key", "codex": "401 Incorrect API key provided", "opencode": "401 Incorrect API key provided", "gemini": "400 API key not valid. Please pass a valid API key."}[h.name], domain.RunErrorCodeAuth},
		{"no credit", map[string]string{"claude": "400 Your credit balance is too low to access the Anthropic API.", "codex": `429 {"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}`}[h.name], domain.RunErrorCodeBilling},
		{"a limit", map[string]string{
			"claude": fmt.Sprintf("429 anthropic-ratelimit-unified-status=rejected anthropic-ratelimit-unified-reset=%d Too many", time.Now().Add(26*time.Hour).Unix()),
			"codex":  `429 {"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_in_seconds":90000}`,
		}[h.name], domain.RunErrorCodeRateLimited},
		{"an overload", map[string]string{"claude": "529 Overloaded", "codex": "503 overloaded"}[h.name], domain.RunErrorCodeOther},
	} {
		if test.step == "" {
			continue // another program's refusal
		}
		result, err, sink := h.run(session, "@@status "+test.step)
		var f *Failure
		limited := errors.As(err, &f) && f.Code == domain.RunErrorCodeOther && test.want == domain.RunErrorCodeRateLimited && strings.Contains(f.Words, "limit")
		if f == nil || f.Code != test.want && !limited || result.Fresh {
			h.t.Errorf("%s: %+v, fresh %t\n%s", test.name, f, result.Fresh, sink.text())
		}
	}
}
