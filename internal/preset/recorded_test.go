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

// What an agent was not allowed to do, and which tools failed, stands in the log, and is none of its words.
func TestDenialsAndFailedToolsAreShown(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "recorded", "claude-denied.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := Find("claude")
	r := p.NewReader(strings.Clone)
	var shown []string
	for line := range strings.Lines(string(raw)) {
		lines, ok := r.Read([]byte(line))
		if !ok {
			t.Errorf("not read: %s", line)
		}
		for _, l := range lines {
			if !l.Said {
				shown = append(shown, l.Text)
			}
		}
	}
	for _, want := range []string{"was not allowed to use the tool Bash", "the tool failed: touch in "} {
		if !slices.ContainsFunc(shown, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%q is not among %q", want, shown)
		}
	}
	if r.Report().Text != `{"summary":"denied"}` {
		t.Errorf("the last words are %q", r.Report().Text)
	}
}

// Requests that the program makes again are shown, and what it writes in the model's place is not the model's word.
func TestTheRetriesOfAProgramAreShown(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "recorded", "claude-401.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := Find("claude")
	r := p.NewReader(strings.Clone)
	var shown []Line
	for line := range strings.Lines(string(raw)) {
		lines, _ := r.Read([]byte(line))
		shown = append(shown, lines...)
	}
	if want := []Line{{Text: "the model's provider refused a request (401 authentication_failed): try 1 of 1 follows"}}; !slices.Equal(shown, want) {
		t.Errorf("shown %+v, want %+v", shown, want)
	}
}
