//go:build unix

package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// acpAgent is an agent of the tests, and the folder it works in.
type acpAgent struct {
	argv   []string
	folder string
}

// npmAgent installs the agent on the protocol's npm library.
func npmAgent(t *testing.T) acpAgent {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "agent.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata", "acpagent", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("these tests need Node 20 with npm (Debian: apt-get install nodejs npm): %v\n%s", err, out)
	}
	return acpAgent{[]string{"node", filepath.Join(dir, "agent.mjs")}, t.TempDir()}
}

func (a acpAgent) request(policy domain.AcpPermissionPolicy, prompt ...string) Request {
	return Request{
		RunID: "run_1", AgentID: "agt_1", WorkspaceID: "wsp_1", Attempt: 1, Prompt: strings.Join(prompt, "\n"),
		Spec: domain.ExecutorSpec{ACP: &domain.ACPSpec{Argv: a.argv, WorkingDirectory: a.folder, Timeout: time.Minute, Permissions: policy}},
	}
}

// spoken are the lines of a stream.
func (r *recorder) spoken(stream domain.LogStream) []string {
	var out []string
	for _, line := range r.lines {
		if text, ok := strings.CutPrefix(line, string(stream)+" "); ok {
			out = append(out, text)
		}
	}
	return out
}

func TestExampleAgentOfTheGoLibrary(t *testing.T) {
	program := filepath.Join(t.TempDir(), "agent")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	agent := acpAgent{[]string{program}, t.TempDir()}
	for policy, want := range map[domain.AcpPermissionPolicy]string{
		domain.AcpPermissionPolicyAllow:    "Perfect! I've successfully updated the configuration.",
		domain.AcpPermissionPolicyReadOnly: "I understand you prefer not to make that change.",
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			sink := &recorder{}
			result, err := newACP(t, Options{}).Run(t.Context(), agent.request(policy, "do it"), sink)
			message, _ := result.Object["message"].(string)
			if err != nil || !strings.Contains(message, want) || result.Object["stop_reason"] != "end_turn" {
				t.Fatalf("got %+v, %v, lines\n%s", result, err, sink.text())
			}
			if len(sink.sessions) != 1 || sink.sessions[0] != result.SessionID || !result.Resumable || result.Survivors != nil {
				t.Errorf("got %+v, sessions %v", result, sink.sessions)
			}
			if len(sink.spoken(domain.LogStreamSystem)) < 3 {
				t.Errorf("tools left no lines:\n%s", sink.text())
			}
		})
	}
}

func newACP(t testing.TB, options Options) *ACP { return NewACP(newCommand(t, options)) }

func TestAgentOnTheNpmLibrary(t *testing.T) {
	agent := npmAgent(t)
	for name, test := range map[string]func(*testing.T, acpAgent){
		"the last message is the result, chunks become lines":          testMessages,
		"a session is loaded, its history is no output":                testLoad,
		"a history that comes late is no output":                       testLateHistory,
		"a session is resumed where it cannot be loaded":               testResume,
		"a session that is gone falls back to the full prompt":         testFallback,
		"a preset gives the arguments and variables":                   testACPPreset,
		"permissions are answered by the policy":                       testPermissions,
		"files stay inside the folder, symlinks too":                   testFiles,
		"a cancel is told to the agent and ends its group":             testACPCancel,
		"an agent that does not answer in time is ended":               testACPTimeout,
		"a secret is masked in lines, results and errors (C229)":       testACPSecrets,
		"what comes faster than it is stored makes the agent wait":     testFlood,
		"ends that are no success":                                     testACPFailures,
		"an agent that is killed while its output is held has crashed": testACPHeld,
		"a session in which a model decides is made to ask":            testACPAsks,
		"a child of the agent does not outlive the attempt":            testACPChild,
		"C222 a result object on the last line wins over the reason":   testACPResult,
	} {
		t.Run(name, func(t *testing.T) {
			agent.folder = t.TempDir()
			test(t, agent)
		})
	}
}

func testMessages(t *testing.T, agent acpAgent) {
	sink := &recorder{}
	result, err := newACP(t, Options{}).Run(t.Context(), agent.request(domain.AcpPermissionPolicyReject,
		"part one ", "part line", "say", "think deep", "say done", "noise a warning of a library"), sink)
	if err != nil || result.Object["message"] != "done" {
		t.Fatalf("got %+v, %v", result, err)
	}
	if got := sink.spoken(domain.LogStreamStdout); !slices.Equal(got, []string{"one line", "done"}) {
		t.Errorf("said %q", got)
	}
	if got := sink.spoken(domain.LogStreamSystem); !slices.Equal(got, []string{"thinks: deep"}) {
		t.Errorf("noted %q", got)
	}
	if got := sink.spoken(domain.LogStreamStderr); !slices.Equal(got, []string{"a warning of a library"}) {
		t.Errorf("beside the protocol came %q", got)
	}
}

func testLoad(t *testing.T, agent acpAgent) {
	a := newACP(t, Options{})
	first, err := a.Run(t.Context(), agent.request(domain.AcpPermissionPolicyReject, "history"), &recorder{})
	if err != nil || first.Object["message"] != "prompts 1" {
		t.Fatalf("got %+v, %v", first, err)
	}
	req := agent.request(domain.AcpPermissionPolicyReject, "history")
	req.ResumeSessionID, req.FullPrompt = first.SessionID, "say from the start"
	sink := &recorder{}
	second, err := a.Run(t.Context(), req, sink)
	if err != nil || second.SessionID != first.SessionID || second.Object["message"] != "prompts 2" || second.Fresh {
		t.Fatalf("got %+v, %v", second, err)
	}
	if sink.text() != "STDOUT prompts 2" {
		t.Errorf("the log is %q", sink.text())
	}
}

func testLateHistory(t *testing.T, agent acpAgent) {
	a := newACP(t, Options{})
	program := filepath.Join(t.TempDir(), "agent")                                                                           // which takes the preset's arguments
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec "+strings.Join(agent.argv, " ")+" late\n"), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	agent.argv = []string{program}
	req := agent.request(domain.AcpPermissionPolicyReject, "say one")
	first, err := a.Run(t.Context(), req, &recorder{})
	if err != nil {
		t.Fatal(err)
	}
	req.ResumeSessionID, req.Prompt, req.Spec.ACP.Preset = first.SessionID, "stop refusal", "gemini"
	sink := &recorder{}
	if second, err := a.Run(t.Context(), req, sink); failureOf(t, err).Code != domain.RunErrorCodeOther || second.Fresh || second.Object["message"] == "replayed" || strings.Contains(sink.text(), "replayed") {
		t.Fatalf("got %+v, %v\n%s", second, err, sink.text())
	}
}

func testResume(t *testing.T, agent acpAgent) {
	a := newACP(t, Options{})
	agent.argv = append(slices.Clone(agent.argv), "resumes")
	first, err := a.Run(t.Context(), agent.request(domain.AcpPermissionPolicyReject, "history"), &recorder{})
	if err != nil || first.Object["message"] != "prompts 1" {
		t.Fatalf("got %+v, %v", first, err)
	}
	req := agent.request(domain.AcpPermissionPolicyReject, "history")
	req.ResumeSessionID, req.FullPrompt = first.SessionID, "say from the start"
	if second, err := a.Run(t.Context(), req, &recorder{}); err != nil || second.SessionID != first.SessionID || second.Object["message"] != "prompts 2" || second.Fresh {
		t.Errorf("got %+v, %v", second, err)
	}
	req.ResumeSessionID = "gone"
	if anew, err := a.Run(t.Context(), req, &recorder{}); err != nil || !anew.Fresh || anew.Object["message"] != "from the start" {
		t.Errorf("one that is gone: %+v, %v", anew, err)
	}
}

// testACPPreset starts the agent as a preset: what the executor names goes before the preset's own variables.
func testACPPreset(t *testing.T, agent acpAgent) {
	program := filepath.Join(t.TempDir(), "gemini")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$*\" = \"--acp --model x\" ] || exit 9\nexec %s\n", strings.Join(agent.argv, " "))
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	agent.argv = []string{program, "--model", "x"}
	req := agent.request(domain.AcpPermissionPolicyReject, "env GEMINI_CLI_TRUST_WORKSPACE")
	req.Spec.ACP.Preset = "gemini"
	if result, err := newACP(t, Options{}).Run(t.Context(), req, &recorder{}); err != nil || result.Object["message"] != "true" {
		t.Errorf("got %+v, %v", result, err)
	}
	req.Environment = []Variable{{"GEMINI_CLI_TRUST_WORKSPACE", "no"}}
	if result, err := newACP(t, Options{}).Run(t.Context(), req, &recorder{}); err != nil || result.Object["message"] != "no" {
		t.Errorf("got %+v, %v", result, err)
	}
	req.Spec.ACP.Preset = "clippy"
	if _, err := newACP(t, Options{}).Run(t.Context(), req, &recorder{}); !strings.Contains(failureOf(t, err).Message, "it knows amp, auggie") {
		t.Errorf("got %v", err)
	}
}

func testFallback(t *testing.T, agent acpAgent) {
	req := agent.request(domain.AcpPermissionPolicyReject, "say only the news")
	req.ResumeSessionID, req.FullPrompt = "gone", "say from the start"
	sink := &recorder{}
	result, err := newACP(t, Options{}).Run(t.Context(), req, sink)
	if err != nil || result.Object["message"] != "from the start" || !result.Fresh || result.SessionID == "gone" || !slices.Equal(sink.sessions, []string{result.SessionID}) {
		t.Fatalf("got %+v, %v, sessions %v", result, err, sink.sessions)
	}
	if got := sink.spoken(domain.LogStreamSystem); len(got) != 1 || !strings.Contains(got[0], "gone could not be loaded") {
		t.Errorf("noted %q", got)
	}
}

func testPermissions(t *testing.T, agent acpAgent) {
	for policy, want := range map[domain.AcpPermissionPolicy][]string{
		domain.AcpPermissionPolicyAllow:    {"read yes", "edit yes", "fetch yes"},
		domain.AcpPermissionPolicyReadOnly: {"read yes", "edit no", "fetch no"},
		domain.AcpPermissionPolicyReject:   {"read no", "edit no", "fetch no"},
	} {
		sink := &recorder{}
		_, err := newACP(t, Options{}).Run(t.Context(), agent.request(policy, "tool read", "tool edit", "tool fetch"), sink)
		if got := sink.spoken(domain.LogStreamStdout); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v", policy, got, err)
		}
		if got := sink.spoken(domain.LogStreamSystem); !slices.Contains(got, "uses a tool: tool edit (edit): pending") ||
			!strings.Contains(strings.Join(got, "\n"), "asks for permission: tool edit (edit): ") {
			t.Errorf("%s: noted %q", policy, got)
		}
		allowed := policy == domain.AcpPermissionPolicyAllow
		steps, err := json.Marshal(sink.steps[2:4])
		if want := fmt.Sprintf(`[{"tool":{"id":"t-edit","kind":"edit","status":"pending","title":"tool edit"}},`+
			`{"permission":{"allowed":%v,"kind":"edit","policy":%q,"title":"tool edit","tool":"t-edit"}}]`, allowed, policy); err != nil || string(steps) != want {
			t.Errorf("%s: steps %s, want %s", policy, steps, want)
		}
	}
}

func testFiles(t *testing.T, agent acpAgent) {
	outside := t.TempDir()
	in := func(name string) string { return filepath.Join(agent.folder, name) }
	for name, text := range map[string]string{in("a.txt"): "inside", filepath.Join(outside, "secret.txt"): "outside"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": filepath.Join(outside, "secret.txt"), "folder": outside, "good": "a.txt"} {
		if err := os.Symlink(to, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	sink := &recorder{}
	_, err := newACP(t, Options{}).Run(t.Context(), agent.request(domain.AcpPermissionPolicyAllow,
		"read "+in("a.txt"), "read "+in("good"), "read "+in("link"), "read "+in("folder/secret.txt"), "read "+in("../"+filepath.Base(outside)+"/secret.txt"),
		"read a.txt", "write "+in("link")+"=x", "write "+in("folder/new")+"=x", "write "+in("new/deep/b.txt")+"=new", "read "+in("new/deep/b.txt"), "read "+in("new")), sink)
	if err != nil {
		t.Fatal(err)
	}
	got := sink.spoken(domain.LogStreamStdout)
	for i, want := range []string{"read inside", "read inside", "not read", "not read", "not read", "not read", "not written", "not written", "wrote", "read new", "not read"} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Fatalf("answer %d: want %q in\n%s", i, want, strings.Join(got, "\n"))
		}
	}
	if text, err := os.ReadFile(filepath.Join(outside, "secret.txt")); err != nil || string(text) != "outside" {
		t.Errorf("outside is %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made outside: %v", err)
	}
	sink = &recorder{}
	if _, err := newACP(t, Options{}).Run(t.Context(), agent.request(domain.AcpPermissionPolicyReadOnly, "read "+in("a.txt"), "write "+in("c")+"=x"), sink); err != nil {
		t.Fatal(err)
	}
	if got := sink.spoken(domain.LogStreamStdout); got[0] != "read inside" || !strings.Contains(got[1], "READ_ONLY") {
		t.Errorf("READ_ONLY: %q", got)
	}
}

// cancelWhen is a context that ends when a line comes.
func cancelWhen(t *testing.T, sink *recorder, line string, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	sink.onLine = func(text string) {
		if text == line {
			cancel(cause)
		}
	}
	return ctx
}

func testACPCancel(t *testing.T, agent acpAgent) {
	sink, asked := &recorder{}, errors.New("somebody asked")
	ctx := cancelWhen(t, sink, "ready", asked)
	result, err := newACP(t, Options{}).Run(ctx, agent.request(domain.AcpPermissionPolicyReject, "say ready", "wait", "say never"), sink)
	if !errors.Is(err, asked) || result.ExitCode != 0 || result.Survivors != nil || result.SessionID == "" {
		t.Fatalf("got %+v, %v", result, err)
	}
	// One that does not obey is ended by force.
	sink = &recorder{}
	ctx = cancelWhen(t, sink, "ready", &Stop{Reason: asked, Grace: 100 * time.Millisecond})
	stubborn := acpAgent{append([]string{"/bin/sh", "-c", `trap "" TERM; "$0" "$@"; sleep 1000`}, agent.argv...), agent.folder}
	result, err = newACP(t, Options{}).Run(ctx, stubborn.request(domain.AcpPermissionPolicyReject, "say ready", "wait"), sink)
	if !errors.Is(err, asked) || result.Survivors != nil || result.ExitCode != 137 {
		t.Fatalf("got %+v, %v", result, err)
	}
}

func testACPTimeout(t *testing.T, agent acpAgent) {
	req := agent.request(domain.AcpPermissionPolicyReject, "wait")
	req.Spec.ACP.Timeout = 2 * time.Second
	_, err := newACP(t, Options{}).Run(t.Context(), req, &recorder{})
	if failure := failureOf(t, err); failure.Code != domain.RunErrorCodeTimeout || !strings.Contains(failure.Message, "timeout") {
		t.Fatalf("got %+v", failure)
	}
}

func testACPSecrets(t *testing.T, agent acpAgent) {
	req := agent.request(domain.AcpPermissionPolicyReject, "env KEY", "part hun", "part ter2", "say", "noise hunter2", "say last hunter2")
	req.Environment = []Variable{{"KEY", "hunter2"}}
	req.Mask = func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
	sink := &recorder{}
	result, err := newACP(t, Options{}).Run(t.Context(), req, sink)
	if err != nil || result.Object["message"] == "" || strings.Contains(fmt.Sprint(result, sink.lines), "hunter2") || !strings.Contains(sink.text(), "STDOUT ***") {
		t.Fatalf("got %+v, %v\n%s", result, err, sink.text())
	}
	req.Prompt = "fail with hunter2"
	_, err = newACP(t, Options{}).Run(t.Context(), req, sink)
	if failure := failureOf(t, err); strings.Contains(failure.Message, "hunter2") || !strings.Contains(failure.Message, "with ***") {
		t.Fatalf("got %+v", failure)
	}
}

func testFlood(t *testing.T, agent acpAgent) {
	const lines = 5000
	release := make(chan struct{})
	sink := &recorder{}
	first := true
	sink.onLine = func(string) { // the store takes nothing until the agent has filled every buffer on the way
		if first {
			first = false
			<-release
		}
	}
	time.AfterFunc(time.Second, func() { close(release) })
	result, err := newACP(t, Options{}).Run(t.Context(), agent.request(domain.AcpPermissionPolicyReject, fmt.Sprintf("flood %d", lines)), sink)
	if err != nil || len(sink.lines) != lines || sink.lines[lines-1] != fmt.Sprintf("STDOUT line %d", lines-1) {
		t.Fatalf("got %d lines, %+v, %v", len(sink.lines), result.ExitCode, err)
	}
}

func testACPFailures(t *testing.T, agent acpAgent) {
	for _, test := range []struct {
		name, prompt string
		code         domain.RunErrorCode
		says         string
	}{
		{"an error of the agent", "fail usage limit reached", domain.RunErrorCodeOther, "usage limit reached"},
		{"an agent that ends", "say bye\nexit 7", domain.RunErrorCodeCrash, "code 7"},
		{"a limit of tokens", "say half\nstop max_tokens", domain.RunErrorCodeOther, "limit of tokens"},
		{"a refusal", "stop refusal", domain.RunErrorCodeOther, "refused"},
		{"a bad key", "fail invalid x-api-key", domain.RunErrorCodeAuth, "rouse agent-shell"},
		{"no credit", "fail Credit balance is too low", domain.RunErrorCodeBilling, "has no credit"},
	} {
		result, err := newACP(t, Options{}).Run(t.Context(), agent.request(domain.AcpPermissionPolicyReject, test.prompt), &recorder{})
		failure := failureOf(t, err)
		if failure.Code != test.code || !strings.Contains(failure.Message, test.says) || result.SessionID == "" {
			t.Errorf("%s: got %+v", test.name, failure)
		}
	}
	quiet := acpAgent{[]string{"/bin/sh", "-c", "echo no such option >&2; exit 2"}, agent.folder}
	result, err := newACP(t, Options{}).Run(t.Context(), quiet.request(domain.AcpPermissionPolicyReject, "x"), &recorder{})
	if failure := failureOf(t, err); failure.Code != domain.RunErrorCodeCrash || !strings.Contains(failure.Message, "no such option") || result.SessionID != "" {
		t.Errorf("got %+v", failure)
	}
}

func testACPChild(t *testing.T, agent acpAgent) {
	sink := &recorder{}
	result, err := newACP(t, Options{}).Run(t.Context(), agent.request(domain.AcpPermissionPolicyReject, "child", "say done"), sink)
	if err != nil || result.Survivors != nil {
		t.Fatalf("got %+v, %v", result, err)
	}
	var leader, child int
	if _, err := fmt.Sscanf(sink.spoken(domain.LogStreamStdout)[0], "pids %d %d", &leader, &child); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/environ", child)); err == nil {
		if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child)); err == nil && strings.Contains(string(raw), "ROUSE_LAUNCH") {
			t.Errorf("the child %d lives on", child)
		}
	}
}

// A process that the agent has detached holds the output that the agent would have answered on.
func testACPHeld(t *testing.T, agent acpAgent) {
	result, err := newACP(t, Options{Drain: 50 * time.Millisecond}).Run(t.Context(), agent.request(domain.AcpPermissionPolicyReject, "hold"), &recorder{})
	if failure := failureOf(t, err); failure.Code != domain.RunErrorCodeCrash || !strings.Contains(failure.Message, "ended with code 137") || !result.Resumable || result.Survivors != nil {
		t.Fatalf("got %+v, %+v", result, failure)
	}
}

func testACPAsks(t *testing.T, agent acpAgent) {
	a := newACP(t, Options{})
	agent.argv = append(slices.Clone(agent.argv), "decides")
	req := agent.request(domain.AcpPermissionPolicyReject, "mode")
	plain, err := a.Run(t.Context(), req, &recorder{})
	if err != nil || plain.Object["message"] != "mode auto" {
		t.Fatalf("without a preset: %+v, %v", plain, err)
	}
	req.Spec.ACP.Preset = "claude-agent-acp"
	first, err := a.Run(t.Context(), req, &recorder{})
	if err != nil || first.Object["message"] != "mode default" {
		t.Fatalf("a new session: %+v, %v", first, err)
	}
	req.ResumeSessionID = first.SessionID
	if second, err := a.Run(t.Context(), req, &recorder{}); err != nil || second.Fresh || second.Object["message"] != "mode default" {
		t.Fatalf("a session that is loaded: %+v, %v", second, err)
	}
}

func testACPResult(t *testing.T, agent acpAgent) {
	result, err := newACP(t, Options{}).Run(t.Context(), agent.request(domain.AcpPermissionPolicyReject,
		"say working", `say {"summary":"made it","usage":{"input_tokens":3,"output_tokens":4}}`, "stop max_tokens"), &recorder{})
	if err != nil || result.Object["summary"] != "made it" || result.Usage != nil {
		t.Fatalf("got %+v, %+v, %v", result, result.Usage, err)
	}
	result, err = newACP(t, Options{}).Run(t.Context(), agent.request(domain.AcpPermissionPolicyReject,
		"say ```json", "say {", `say "summary": "made it",`, `say "actions": [{"type": "complete_task"}]`, "say }", "say ```", "say I hope that helps."), &recorder{})
	if err != nil || result.Object["summary"] != "made it" || result.Object["actions"] == nil {
		t.Fatalf("in a fence: %+v, %v", result, err)
	}
	_, err = newACP(t, Options{}).Run(t.Context(), agent.request(domain.AcpPermissionPolicyReject, `say {"error":"no credit"}`), &recorder{})
	if failure := failureOf(t, err); !strings.Contains(failure.Message, "no credit") {
		t.Fatalf("got %+v", failure)
	}
}

func FuzzMessages(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"method":"session/update"}`, `[]`, `{"id":null,"method":"x"}`, "plain"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var object map[string]any
		isObject := json.Unmarshal(line, &object) == nil
		if kindOf(line) != messageNone && !isObject {
			t.Errorf("%q is taken for a message", line)
		}
	})
}
