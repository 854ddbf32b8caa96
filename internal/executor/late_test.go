//go:build unix

package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/preset"
)

// recordedRun has a preset's dialect read what a program printed: the first lines of its events, and its standard error.
func recordedRun(t *testing.T, program, file string, lines int) (*presetDialect, *output) {
	t.Helper()
	spec, known := preset.Find(program)
	if !known {
		t.Fatalf("%s is no preset", program)
	}
	d := &presetDialect{spec, spec.NewReader(strings.Clone)}
	out := newOutput(Request{}, &recorder{})
	d.reading(out, strings.Clone, func(string) {})(strings.NewReader(firstLines(t, file+".jsonl", lines)))
	out.copyLines(domain.LogStreamStderr, strings.NewReader(firstLines(t, file+".stderr", -1)))
	return d, out
}

// firstLines are the first lines of a recorded file, all of them for a negative number; "" for one that there is not.
func firstLines(t *testing.T, file string, lines int) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "preset", "testdata", "recorded", file))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(raw)) {
		if lines == 0 {
			break
		}
		lines--
		kept.WriteString(line)
	}
	return kept.String()
}

// An attempt that was ended at its timeout is a TIMEOUT that tells what stood in the agent's way, whatever the agent said of it before.
func TestATimeoutTellsWhatStoodInTheWay(t *testing.T) {
	for _, c := range []struct {
		name, program, file string
		lines               int // of the events
		tells               string
		limited             bool // its words are those of a limit
	}{
		{"Claude Code asks again", "claude", "claude-529", 2, "the model's provider refused a request (529 overloaded): try 1 of", false},
		{"codex connects again", "codex", "codex-reconnect", 5, "error: Reconnecting... 2/2 (unexpected status 503", false},
		{"Gemini CLI tells standard error alone", "gemini", "gemini-retry", 0, "Attempt 3 failed with status 503. Retrying with backoff...", false},
		{"opencode awaits the end of a limit", "opencode", "opencode-retry", 0, "AI_APICallError: Rate limit reached", true},
	} {
		d, out := recordedRun(t, c.program, c.file, c.lines)
		f := d.judge(t.Context(), Result{}, false, ended{out: out, how: ending{forced: true, timedOut: true}, limits: limits{timeout: time.Minute}})
		if f == nil || f.Code != domain.RunErrorCodeTimeout || !strings.Contains(f.Message, "within its timeout of 1m0s") || !strings.Contains(f.Message, "stood in its way: "+c.tells) {
			t.Errorf("%s: %+v", c.name, f)
			continue
		}
		if limited := strings.Contains(f.Words, "Rate limit"); limited != c.limited {
			t.Errorf("%s: the words are %q", c.name, f.Words)
		}
	}
}

// A program that has told of its end, and then hangs, failed as it said.
func TestAnEndThatWasToldGoesBeforeATimeout(t *testing.T) {
	for program, want := range map[string]domain.RunErrorCode{"codex-401": domain.RunErrorCodeAuth, "opencode-429": domain.RunErrorCodeRateLimited, "claude-billing": domain.RunErrorCodeBilling} {
		name, _, _ := strings.Cut(program, "-")
		d, out := recordedRun(t, name, program, -1)
		f := d.judge(t.Context(), Result{}, false, ended{out: out, how: ending{forced: true, timedOut: true}, limits: limits{timeout: time.Minute}})
		if f == nil || f.Code != want {
			t.Errorf("%s: %+v", program, f)
		}
	}
}

// What an agent tells of a tool when it asks leave counts for the updates that follow and say less.
func TestAPermissionRequestNamesItsToolForLater(t *testing.T) {
	sink := &recorder{}
	c := &conversation{policy: domain.AcpPermissionPolicyReadOnly, transcript: newTranscript(newOutput(Request{Mask: hidden}, sink))}
	title, kind, done := "Write notes hunter2", acp.ToolKindEdit, acp.ToolCallStatusFailed
	if _, err := c.permission(acp.RequestPermissionRequest{ToolCall: acp.ToolCallUpdate{ToolCallId: "call-1", Title: &title, Kind: &kind}, Options: []acp.PermissionOption{{OptionId: "no", Kind: acp.PermissionOptionKindRejectOnce}}}); err != nil {
		t.Fatal(err)
	}
	c.transcript.update(acp.SessionUpdate{ToolCallUpdate: &acp.SessionToolCallUpdate{ToolCallId: "call-1", Status: &done}})
	got := sink.spoken(domain.LogStreamSystem)
	if len(got) != 2 || got[0] != "asks for permission: Write notes *** (edit): rejected by the policy READ_ONLY" || got[1] != "uses a tool: Write notes *** (edit): failed" {
		t.Errorf("noted %q", got)
	}
	if step, _ := sink.steps[1]["tool"].(map[string]any); step["title"] != "Write notes ***" || step["kind"] != "edit" || step["status"] != "failed" {
		t.Errorf("steps %v", sink.steps)
	}
}

// What an agent's program says beside the agent's messages, as adapters do of warnings, is no part of the last message.
func TestWarningsOfAnAdapterAreNoPartOfTheMessage(t *testing.T) {
	type part struct{ id, text string }
	for _, c := range []struct {
		name  string
		parts []part
		want  string
	}{
		{"codex-acp 2.6.0 warns before", []part{{"", "Warning: Model metadata for `scripted` not found.\n\n"}, {"msg_2", "done"}}, "done"},
		{"claude-agent-acp 0.101.0 warns behind", []part{{"msg_3", "do"}, {"msg_3", "ne"}, {"", "**Warning:** We're changing auto mode."}}, "done"},
		{"two messages", []part{{"msg_1", "I look first."}, {"msg_2", "done"}}, "done"},
		{"an agent that gives no ids", []part{{"", "do"}, {"", "ne"}}, "done"},
	} {
		sink := &recorder{}
		talk := newTranscript(newOutput(Request{}, sink))
		for _, p := range c.parts {
			chunk := &acp.SessionUpdateAgentMessageChunk{Content: acp.TextBlock(p.text)}
			if p.id != "" {
				chunk.MessageId = &p.id
			}
			talk.update(acp.SessionUpdate{AgentMessageChunk: chunk})
		}
		talk.flush()
		if got := talk.text(); got != c.want {
			t.Errorf("%s: the last message is %q", c.name, got)
		}
		if !strings.Contains(sink.text(), "STDOUT done") || strings.Contains(c.name, "warns") && !strings.Contains(sink.text(), "Warning:") {
			t.Errorf("%s: the log is %q", c.name, sink.text())
		}
	}
}
