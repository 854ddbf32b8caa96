package preset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/retry"
)

// What today's programs print, recorded against internal/modelserver: Claude Code 2.1.332, codex 0.171.0, Gemini CLI 0.61.0 and opencode 1.18.33. A model's
// answer took 100 tokens, 40 of them from the cache, and gave 11.
func TestWhatTodaysProgramsPrint(t *testing.T) {
	auth, billing := domain.RunErrorCodeAuth, domain.RunErrorCodeBilling
	one := domain.AttemptUsage{InputTokens: 100, OutputTokens: 11, CostUSD: "0.000468"}
	tokens := func(input, output int64) domain.AttemptUsage {
		return domain.AttemptUsage{InputTokens: input, OutputTokens: output, CostUSD: "0", SessionTokens: true}
	}
	for file, want := range map[string]struct {
		text    string
		usage   domain.AttemptUsage
		failed  string // in the error
		refusal domain.RunErrorCode
		limited bool
		status  int
		unknown bool // the session is not known
		begun   bool
	}{
		"claude-first":      {text: `{"summary":"first"}`, usage: one, begun: true},
		"claude-resume":     {text: `{"summary":"second"}`, usage: one, begun: true},     // its total_cost_usd is that of both runs
		"claude-structured": {text: `{"summary":"structured"}`, usage: one, begun: true}, // of --json-schema
		"claude-unknown":    {failed: "No conversation found", unknown: true},
		"claude-401":        {failed: "Invalid API key", refusal: auth, status: 401, usage: domain.AttemptUsage{CostUSD: "0"}},
		"claude-login":      {failed: "Not logged in", refusal: auth, usage: domain.AttemptUsage{CostUSD: "0"}},
		"claude-billing":    {failed: "Credit balance is too low", refusal: billing, status: 400, usage: domain.AttemptUsage{CostUSD: "0"}},
		"claude-limit":      {failed: "Request rejected (429)", limited: true, status: 429, usage: domain.AttemptUsage{CostUSD: "0"}},
		"claude-529":        {failed: "529 Overloaded", status: 529, usage: domain.AttemptUsage{CostUSD: "0"}},
		"codex-first":       {text: `{"summary":"first"}`, usage: tokens(100, 11), begun: true},
		"codex-resume":      {text: `{"summary":"second"}`, usage: tokens(200, 22), begun: true},
		"codex-401":         {failed: "401 Unauthorized", refusal: auth},
		"codex-429":         {failed: "429 Too Many Requests", limited: true},
		"codex-quota":       {failed: "Quota exceeded. Check your plan", refusal: billing, limited: true}, // who refuses an account goes before a limit
		"codex-limit":       {failed: "hit your usage limit", limited: true},
		"codex-503":         {failed: "503 Service Unavailable"},
		"opencode-first":    {text: `{"summary":"first"}`, usage: domain.AttemptUsage{InputTokens: 100, OutputTokens: 11, CostUSD: "0.000385"}, begun: true},
		"opencode-401":      {failed: "Incorrect API key", refusal: auth, status: 401},
		"opencode-429":      {failed: "Rate limit reached", limited: true, status: 429},
		"gemini-first":      {text: `{"summary":"first"}`, usage: domain.AttemptUsage{InputTokens: 200, OutputTokens: 22, CostUSD: "0"}, begun: true}, // two models were asked
		"opencode-retry":    {failed: "Rate limit reached", limited: true, status: 429},
		"gemini-quota":      {failed: "exhausted your daily quota", limited: true, usage: domain.AttemptUsage{CostUSD: "0"}},
		"codex-reconnect":   {failed: "unexpected status 503"},
		"gemini-401":        {failed: "API key not valid", refusal: auth, usage: domain.AttemptUsage{CostUSD: "0"}},
	} {
		program, _, _ := strings.Cut(file, "-")
		p, r := replay(t, program, file)
		type facts struct {
			text    string
			usage   domain.AttemptUsage
			refusal domain.RunErrorCode
			limited bool
			status  int
			unknown bool
			begun   bool
		}
		got := facts{r.Text, domain.AttemptUsage{}, retry.Refusal(r.Error), retry.IsRateLimit(r.Error), r.Status, p.SessionUnknown(r.Error), r.Begun}
		if r.Usage != nil {
			got.usage = *r.Usage
		}
		if file == "claude-unknown" {
			want.usage = domain.AttemptUsage{CostUSD: "0"}
		}
		if expected := (facts{want.text, want.usage, want.refusal, want.limited, want.status, want.unknown, want.begun}); got != expected {
			t.Errorf("%s: %+v,\nwant %+v", file, got, expected)
		}
		if !strings.Contains(r.Error, want.failed) || (r.Error == "") != (want.failed == "") {
			t.Errorf("%s: the error is %q", file, r.Error)
		}
	}
}

// replay reads a recorded output.
func replay(t *testing.T, program, file string) (Preset, Report) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "recorded", file+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	p, known := Find(program)
	if !known {
		t.Fatalf("%s is no preset", program)
	}
	r := p.NewReader(strings.Clone)
	for line := range strings.Lines(string(raw)) {
		if _, ok := r.Read([]byte(line)); !ok {
			t.Errorf("%s: not read: %s", file, line)
		}
	}
	return p, r.Report()
}

// Codex writes the date of a limit in the zone of its machine, without naming it.
func TestTheDateOfCodexIsReadInTheMachinesZone(t *testing.T) {
	_, r := replay(t, "codex", "codex-limit-date")
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 17, 0, 0, 0, time.UTC)
	at, ok := retry.ResetAt(now, r.Error, zone)
	if want := time.Date(2026, 12, 5, 8, 6, 0, 0, zone); !ok || !at.Equal(want) {
		t.Errorf("%q ends at %s, %t; want %s", r.Error, at, ok, want)
	}
}

// What the program's own words for an unknown session are; no other error is taken for one.
func TestWhatAnUnknownSessionIsCalled(t *testing.T) {
	for program, words := range map[string]string{
		"claude":   "No conversation found with session ID: 5f1c0000-0000-4000-8000-000000000001",
		"codex":    "Error: thread/resume: thread/resume failed: no rollout found for thread id 0199a213-81c0-7800-8aa1-bbab2a035a53 (code -32600)",
		"gemini":   `Error resuming session: Invalid session identifier "5f1c0000-0000-4000-8000-000000000001".`,
		"opencode": "Error: Session not found",
	} {
		p, _ := Find(program)
		if !p.SessionUnknown(words) {
			t.Errorf("%s: %q is no unknown session", program, words)
		}
		for _, other := range []string{"API Error: 529 Overloaded", "Invalid API key · Fix external API key", "You've hit your weekly limit · resets Dec 3, 5:36am (UTC)", "unexpected status 503 Service Unavailable", "bad argument: --nonsense", ""} {
			if p.SessionUnknown(other) {
				t.Errorf("%s: %q is taken for an unknown session", program, other)
			}
		}
	}
}

// shown are the lines that are no words of the agent, of a recorded output without the lines that hold leftOut.
func shown(t *testing.T, file, leftOut string) (lines []Line, r Report) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "recorded", file+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	program, _, _ := strings.Cut(file, "-")
	p, _ := Find(program)
	reader := p.NewReader(strings.Clone)
	for line := range strings.Lines(string(raw)) {
		if leftOut != "" && strings.Contains(line, leftOut) {
			continue
		}
		read, ok := reader.Read([]byte(line))
		if !ok && !strings.Contains(line, "auto-rejecting") {
			t.Errorf("%s: not read: %s", file, line)
		}
		for _, l := range read {
			if !l.Said {
				lines = append(lines, l)
			}
		}
	}
	return lines, reader.Report()
}

// What an agent was not allowed to do, and which tools failed, stands in the log once, and is none of its words.
func TestDenialsAndFailedToolsAreShown(t *testing.T) {
	for _, c := range []struct {
		name, file, leftOut string
		text                string
		want                []string
	}{
		{"Claude Code", "claude-denied", "", `{"summary":"x"}`, []string{"was not allowed to use the tool Bash", "the tool failed: touch in ", "was not allowed to use the tool Read", "the tool failed: "}},
		{"a version of it that tells of denials at the end", "claude-denied", `"permission_denied"`, `{"summary":"x"}`, []string{"was not allowed to use the tool Bash", "was not allowed to use the tool Read"}},
		{"codex", "codex-denied", "", `{"summary":"denied"}`, []string{"exit code 1: /bin/bash -lc 'touch /etc/denied': touch: cannot touch '/etc/denied': Read-only file system"}},
		{"Gemini CLI", "gemini-denied", "", `{"summary":"x"}`, []string{`the tool failed: Tool "run_shell_command" not found.`}},
		{"opencode", "opencode-denied", "", "", []string{`uses a tool: read {"filePath":"/etc/hostname"}: The user rejected permission`}},
	} {
		lines, r := shown(t, c.file, c.leftOut)
		for _, want := range c.want {
			n := 0
			for _, l := range lines {
				if strings.HasPrefix(l.Text, want) {
					n++
				}
			}
			if n == 0 || n > 1 && strings.HasPrefix(want, "was not") {
				t.Errorf("%s: %q is %d times among %+v", c.name, want, n, lines)
			}
		}
		if r.Text != c.text {
			t.Errorf("%s: the last words are %q", c.name, r.Text)
		}
	}
}

// What codex tells of a command, a tool and a change of files that failed or were declined.
func TestWhatCodexTellsOfFailures(t *testing.T) {
	for item, want := range map[string]string{
		`{"type":"command_execution","command":"rm x","status":"declined","exit_code":null}`:                                   "was not allowed to run: rm x",
		`{"type":"command_execution","command":"rm x","status":"failed","aggregated_output":"one\ntwo\n"}`:                     "failed: rm x: two",
		`{"type":"command_execution","command":"rm x","status":"completed","exit_code":0}`:                                     "",
		`{"type":"mcp_tool_call","server":"rouse","tool":"get_task","status":"failed","error":{"message":"no such task"}}`:     "the tool failed: rouse.get_task: no such task",
		`{"type":"mcp_tool_call","server":"rouse","tool":"get_task","status":"completed"}`:                                     "",
		`{"type":"file_change","status":"failed","changes":[{"path":"a.go","kind":"update"}]}`:                                 "could not change files: update a.go",
		`{"type":"file_change","status":"declined","changes":[{"path":"a.go","kind":"update"}]}`:                               "was not allowed to change files: update a.go",
		`{"type":"file_change","status":"completed","changes":[{"path":"a.go","kind":"update"},{"path":"b.go","kind":"add"}]}`: "changes files: update a.go, add b.go",
	} {
		p, _ := Find("codex")
		lines, ok := p.NewReader(strings.Clone).Read([]byte(`{"type":"item.completed","item":` + item + `}`))
		got := ""
		if len(lines) > 0 {
			got = lines[0].Text
		}
		if !ok || got != want || len(lines) > 1 {
			t.Errorf("%s: %t %+v, want %q", item, ok, lines, want)
		}
	}
}

// Requests that a program makes again are shown and noticed. What it writes in the model's place is not the model's word, and a
// warning begins nothing.
func TestTheRetriesOfAProgramAreShown(t *testing.T) {
	for file, want := range map[string][]string{
		"claude-401":      {"the model's provider refused a request (401 authentication_failed): try 1 of 1 follows"},
		"codex-reconnect": {"error: Reconnecting... 1/2 (unexpected status 503", "error: Reconnecting... 2/2 (unexpected status 503", "error: unexpected status 503"},
		"opencode-retry":  {"error: Rate limit reached"},
	} {
		lines, r := shown(t, file, "")
		var noticed []string
		for _, l := range lines {
			if l.Notice {
				noticed = append(noticed, l.Text)
			}
		}
		if !slices.EqualFunc(noticed, want, strings.HasPrefix) || r.Begun {
			t.Errorf("%s: noticed %q, want %q; begun: %t", file, noticed, want, r.Begun)
		}
	}
}

// Some programs tell of them on standard error alone.
func TestTheRetriesThatStandardErrorTells(t *testing.T) {
	for file, want := range map[string]string{"opencode-retry": "AI_APICallError: Rate limit reached", "gemini-retry": "Attempt 3 failed with status 503. Retrying with backoff..."} {
		raw, err := os.ReadFile(filepath.Join("testdata", "recorded", file+".stderr"))
		if err != nil {
			t.Fatal(err)
		}
		program, _, _ := strings.Cut(file, "-")
		p, _ := Find(program)
		last, n := "", 0
		for line := range strings.Lines(string(raw)) {
			if notice := p.Notice(strings.TrimSuffix(line, "\n")); notice != "" {
				last, n = notice, n+1
			}
		}
		if !strings.HasPrefix(last, want) || n < 3 || n > 4 {
			t.Errorf("%s: %d notices, the last is %q", file, n, last)
		}
	}
	for _, name := range []string{"aider", "claude", "codex"} {
		if p, _ := Find(name); p.Notice("Attempt 1 failed with status 503.") != "" {
			t.Errorf("%s tells of them in events", name)
		}
	}
}

// The provider's Retry-After stands in opencode's last event.
func TestTheRetryAfterOfOpencode(t *testing.T) {
	if _, r := replay(t, "opencode", "opencode-retry"); r.LimitedFor != 2*time.Second {
		t.Errorf("limited for %s", r.LimitedFor)
	}
	for value, want := range map[string]either{
		"90":                            {Wait: 90 * time.Second},
		"Mon, 30 Nov 2026 12:00:00 GMT": {Until: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)},
		"soon":                          {},
		"":                              {},
		"-5":                            {},
	} {
		var got either
		if got.readRetryAfter(value); got != want {
			t.Errorf("%q: %+v, want %+v", value, got, want)
		}
	}
}
