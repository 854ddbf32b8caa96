package preset

import (
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

func TestArguments(t *testing.T) {
	for _, test := range []struct {
		name    string
		given   []string
		session string
		want    string
	}{
		{"claude", nil, "", "claude -p --output-format stream-json --verbose"},
		{"claude", []string{"/opt/claude", "--model", "opus"}, "s1", "/opt/claude -p --output-format stream-json --verbose --model opus --resume s1"},
		{"codex", nil, "t1", "codex exec --json --skip-git-repo-check resume t1 -"},
		{"codex", []string{"codex", "--full-auto"}, "", "codex exec --json --skip-git-repo-check --full-auto -"},
		{"gemini", nil, "g1", "gemini --output-format stream-json --resume g1"},
		{"opencode", nil, "--dangerous", "opencode run --format json --print-logs --log-level ERROR"},
		{"aider", nil, "s1", "aider --yes-always --no-pretty --no-stream --no-check-update --no-show-release-notes --no-suggest-shell-commands"},
	} {
		p, ok := Find(test.name)
		if got := strings.Join(p.Argv(test.given, test.session), " "); !ok || got != test.want {
			t.Errorf("%s %v %q: got %s", test.name, test.given, test.session, got)
		}
	}
	if _, ok := Find("clippy"); ok || !slices.IsSorted(Names()) || len(Names()) != 5 {
		t.Errorf("names are %v", Names())
	}
}

func TestArgumentsShareNoMemory(t *testing.T) {
	p, _ := Find("claude")
	first := p.Argv([]string{"a", "--x"}, "")
	_ = p.Argv([]string{"b", "--y"}, "s")
	if first[5] != "--x" {
		t.Errorf("got %v", first)
	}
}

func TestWhatIsNoEventIsShownAsItIs(t *testing.T) {
	for _, name := range Names() {
		p, _ := Find(name)
		for _, line := range []string{"plain", "[]", `{"type":"never heard of"}`, "{", ""} {
			if out, ok := p.NewReader(hide).Read([]byte(line)); ok && name != "aider" || len(out) > 1 {
				t.Errorf("%s: %q became %v", name, line, out)
			}
		}
	}
}

// hide masks one word.
func hide(text string) string { return strings.ReplaceAll(text, "hunter2hunter2", "***") }

func TestASecretThatCrossesACutDoesNotShowItsFirstHalf(t *testing.T) {
	secret := strings.Repeat("x", maxDetail-15) + "hunter2hunter2"
	for name, line := range map[string]string{
		"claude":   `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"c":"` + secret + `"}}]}}`,
		"codex":    `{"type":"item.started","item":{"type":"command_execution","command":"` + secret + `"}}`,
		"gemini":   `{"type":"tool_result","status":"error","error":"` + secret + `"}`,
		"opencode": `{"type":"tool_use","part":{"tool":"bash","state":{"input":{"c":"` + secret + `"}}}}`,
	} {
		p, _ := Find(name)
		if out, ok := p.NewReader(hide).Read([]byte(line)); !ok || len(out) != 1 || strings.Contains(out[0].Text, "hunter") || !strings.Contains(out[0].Text, "xxx") {
			t.Errorf("%s: %v", name, out)
		}
	}
}

func TestWordsWithoutAnEndAreNotKeptWithoutBound(t *testing.T) {
	p, _ := Find("gemini")
	r := p.NewReader(hide)
	for range 10 {
		if _, ok := r.Read([]byte(`{"type":"message","role":"assistant","delta":true,"content":"` + strings.Repeat("x", maxText/2) + `"}`)); !ok {
			t.Fatal("a part of a message is no event")
		}
	}
	if kept := len(r.(*gemini).partial); kept > maxText {
		t.Errorf("%d bytes wait for the end of their line", kept)
	}
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]any{"118": 118.0, "1,234": 1234.0, "2.1k": 2100.0, "1.5M": 1.5e6, "..": ".."} {
		if got := amount(text); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

// Amounts come as text or as nonsense, too: the event is read all the same, and what cannot be read of its amounts is told.
func TestAmountsOfEventsInEveryForm(t *testing.T) {
	for _, c := range []struct {
		preset, name, line string
		want               domain.AttemptUsage
	}{
		{"claude", "text", `{"type":"result","subtype":"success","total_cost_usd":"0.5","usage":{"input_tokens":"7","output_tokens":2}}`, domain.AttemptUsage{InputTokens: 7, OutputTokens: 2, CostUSD: "0.5"}},
		{"claude", "below nothing", `{"type":"result","subtype":"success","total_cost_usd":-1}`, domain.AttemptUsage{CostUnread: true, Unread: `total_cost_usd "-1" is below nothing`}},
		{"claude", "beyond all numbers", `{"type":"result","subtype":"success","total_cost_usd":1e400}`, domain.AttemptUsage{CostUnread: true, Unread: `total_cost_usd "1e400" is beyond all numbers`}},
		{"codex", "text", `{"type":"turn.completed","usage":{"input_tokens":"7","output_tokens":"x"}}`, domain.AttemptUsage{InputTokens: 7, CostUSD: "0", Unread: `usage.output_tokens "x" is no number`, SessionTokens: true}},
		{"gemini", "text", `{"type":"result","stats":{"input_tokens":"7","output_tokens":1}}`, domain.AttemptUsage{InputTokens: 7, OutputTokens: 1, CostUSD: "0"}},
		{"opencode", "text", `{"type":"step_finish","part":{"cost":"0.25","tokens":{"input":"7","output":1}}}`, domain.AttemptUsage{InputTokens: 7, OutputTokens: 1, CostUSD: "0.25"}},
		{"opencode", "a list", `{"type":"step_finish","part":{"cost":[],"tokens":{}}}`, domain.AttemptUsage{CostUnread: true, Unread: `cost "[]" is no number`}},
		{"aider", "more points than one", `Tokens: 2.1k sent, 118 received. Cost: $0.0082 message, $0.0.123 session.`, domain.AttemptUsage{InputTokens: 2100, OutputTokens: 118, CostUnread: true, Unread: `the session's cost "0.0.123" is no number`}},
	} {
		p, _ := Find(c.preset)
		r := p.NewReader(strings.Clone)
		_, ok := r.Read([]byte(c.line))
		if got := r.Report().Usage; !ok || got == nil || *got != c.want {
			t.Errorf("%s, %s: %v, %+v", c.preset, c.name, ok, got)
		}
	}
}

// What a terminal would obey before an event does not hide it.
func TestAnEventBehindATerminalSequence(t *testing.T) {
	for name, line := range map[string]string{
		"claude":   `{"type":"result","subtype":"success","result":"done","total_cost_usd":5}`,
		"codex":    `{"type":"item.completed","item":{"type":"agent_message","text":"done"}}`,
		"gemini":   `{"type":"message","role":"assistant","content":"done"}`,
		"opencode": `{"type":"text","part":{"text":"done"}}`,
	} {
		p, _ := Find(name)
		for _, before := range []string{"\x1b]0;working\x07", "\ufeff", "\x1b[?25l", "\r\x1b[K"} {
			r := p.NewReader(strings.Clone)
			if _, ok := r.Read([]byte(before + line + "\x1b[0m")); !ok || r.Report().Text != "done" {
				t.Errorf("%s behind %q: %v, %+v", name, before, ok, r.Report())
			}
		}
	}
}

// An event that says until when a limit holds is data, but only when the limit was met.
func TestTheLimitThatAnEventTellsOf(t *testing.T) {
	for line, want := range map[string]int64{
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1752624000}}`:        1752624000,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1752624000}}`: 0,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}`:                              0,
		`{"type":"rate_limit_event"}`: 0,
	} {
		p, _ := Find("claude")
		r := p.NewReader(strings.Clone)
		if _, ok := r.Read([]byte(line)); !ok {
			t.Errorf("%s is not read", line)
		}
		if at := r.Report().LimitedUntil; want == 0 && !at.IsZero() || want != 0 && at.Unix() != want {
			t.Errorf("%s: %s", line, at)
		}
	}
}

func FuzzReaders(f *testing.F) {
	for _, seed := range []string{
		`{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}`, `{"type":"result","subtype":"success","usage":{"input_tokens":1}}`,
		`{"type":"item.completed","item":{"type":"agent_message","text":"x"}}`, `{"type":"turn.failed","error":{"message":"x"}}`, `{"type":"error","error":"x"}`,
		`{"type":"message","role":"assistant","content":"a\nb","delta":true}`, `{"type":"step_finish","part":{"tokens":{"input":1}}}`, "Tokens: 2k sent, 1 received.",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range Names() {
			p, _ := Find(name)
			r := p.NewReader(hide)
			for line := range strings.SplitSeq(text, "\n") {
				out, _ := r.Read([]byte(line))
				for _, l := range out {
					if strings.Contains(l.Text, "\n") {
						t.Errorf("%s: a line of several lines: %q", name, l.Text)
					}
				}
			}
			if report := r.Report(); len(report.Text) > maxText {
				t.Errorf("%s: kept %d bytes", name, len(report.Text))
			}
		}
	})
}
