//go:build unix

package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/preset"
)

// presetRequest runs the stub of a preset, which speaks the format that the preset's documentation describes.
func presetRequest(t *testing.T, name, prompt string, arguments ...string) Request {
	t.Helper()
	stub, err := filepath.Abs(filepath.Join("testdata", "presets", name))
	if err != nil {
		t.Fatal(err)
	}
	req := presetRequestOf(name, append([]string{stub}, arguments...)...)
	req.Prompt = prompt
	return req
}

// presetRequestOf runs another program as a preset.
func presetRequestOf(name string, argv ...string) Request {
	return Request{RunID: "run_1", AgentID: "agt_1", WorkspaceID: "wsp_1", Attempt: 1, Prompt: "hello", Spec: domain.ExecutorSpec{
		Command: &domain.CommandSpec{Preset: name, Argv: argv, Timeout: time.Minute, Grace: time.Second}}}
}

func TestPresets(t *testing.T) {
	for _, test := range []struct {
		name, session string
		usage         Usage
		notes         []string
	}{
		{"claude", "5f1c0000-0000-4000-8000-000000000001", Usage{InputTokens: 1110, OutputTokens: 7, CostUSD: "0.0425"}, []string{"thinks: Let me look.", `uses a tool: Bash {"command":"ls"}`}},
		{"codex", "0199a213-81c0-7800-8aa1-bbab2a035a53", Usage{InputTokens: 24763, OutputTokens: 122, CostUSD: "0", SessionTokens: true}, []string{"thinks: **Searching**", "runs: bash -lc ls", "changes files: update a.go"}},
		{"gemini", "3f2e0000-0000-4000-8000-000000000002", Usage{InputTokens: 120, OutputTokens: 10, CostUSD: "0"}, []string{`uses a tool: run_shell_command {"command":"ls"}`}},
		{"opencode", "ses_494719016ffe85dkDMj0FPRbHK", Usage{InputTokens: 691, OutputTokens: 15, CostUSD: "0.003"}, []string{`uses a tool: bash {"command":"ls"}`}},
		{"aider", "", Usage{InputTokens: 2100, OutputTokens: 118, CostUSD: "0.0123"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, sink := newCommand(t, Options{}), &recorder{}
			result, err := c.Run(t.Context(), presetRequest(t, test.name, "hello"), sink)
			message, _ := result.Object["message"].(string)
			if err != nil || !strings.Contains(message, "You said: hello\nAll done.") || *result.Usage != test.usage {
				t.Fatalf("got %+v, usage %+v, %v\n%s", result, result.Usage, err, sink.text())
			}
			for _, note := range append(test.notes, "You said: hello", "All done.") {
				if !strings.Contains(sink.text(), note) {
					t.Errorf("%q is missing in\n%s", note, sink.text())
				}
			}
			if strings.Contains(sink.text(), `{"type"`) {
				t.Errorf("raw events reached the log:\n%s", sink.text())
			}
			if found, _ := preset.Find(test.name); found.CanResume() {
				testPresetSession(t, c, test.name, test.session, result, sink)
			} else if result.Resumable {
				t.Error("its session is called resumable")
			}

			_, err = c.Run(t.Context(), presetRequest(t, test.name, "hit the limit"), &recorder{})
			if failure := failureOf(t, err); !strings.Contains(failure.Message, "ry again in 5 minutes") {
				t.Errorf("got %+v", failure)
			}
			said, err := c.Run(t.Context(), presetRequest(t, test.name, `x\n{\"summary\":\"made it\"}`), &recorder{})
			if test.name != "aider" && (err != nil || said.Usage == nil) {
				t.Errorf("got %+v, %v", said, err)
			}
		})
	}
}

func testPresetSession(t *testing.T, c *Command, name, session string, first Result, sink *recorder) {
	if first.SessionID != session || !first.Resumable || len(sink.sessions) != 2 || sink.sessions[1] != session {
		t.Errorf("session %q, resumable %v, told %v", first.SessionID, first.Resumable, sink.sessions)
	}
	req := presetRequest(t, name, "the news")
	req.ResumeSessionID, req.FullPrompt = session, "from the start"
	if again, err := c.Run(t.Context(), req, &recorder{}); err != nil || again.SessionID != session || again.Fresh || !strings.Contains(again.Object["message"].(string), "the news") {
		t.Errorf("resumed: %+v, %v", again, err)
	}
	req.Prompt = "hit the limit"
	sink = &recorder{}
	if limited, err := c.Run(t.Context(), req, sink); failureOf(t, err) == nil || limited.Fresh || strings.Contains(sink.text(), "could not be resumed") {
		t.Errorf("a limit is taken for a lost session: %+v, %v\n%s", limited, err, sink.text())
	}
	req.Prompt, req.ResumeSessionID = "the news", "gone"
	sink = &recorder{}
	again, err := c.Run(t.Context(), req, sink)
	if err != nil || again.SessionID != session || !again.Fresh || !strings.Contains(again.Object["message"].(string), "from the start") {
		t.Errorf("not resumed: %+v, %v", again, err)
	}
	if !strings.Contains(sink.text(), "SYSTEM the session gone could not be resumed") {
		t.Errorf("the fallback is not told:\n%s", sink.text())
	}
}

func TestAPresetTakesMoreArgumentsAndWhatBreaksItOffIsAFailure(t *testing.T) {
	c := newCommand(t, Options{})
	result, err := c.Run(t.Context(), presetRequest(t, "claude", "hello", "--model", "opus"), &recorder{})
	if err != nil || result.Object["message"] == nil {
		t.Errorf("got %+v, %v", result, err)
	}
	_, err = c.Run(t.Context(), presetRequest(t, "claude", "too many turns"), &recorder{})
	if failure := failureOf(t, err); !strings.Contains(failure.Message, "error_max_turns") {
		t.Errorf("got %+v", failure)
	}
	_, err = c.Run(t.Context(), presetRequest(t, "claude", "hello", "--nonsense"), &recorder{})
	if failure := failureOf(t, err); failure.Code != domain.RunErrorCodeCrash || !strings.Contains(failure.Message, "--nonsense") {
		t.Errorf("got %+v", failure)
	}
	unknown := presetRequest(t, "claude", "hello")
	unknown.Spec.Command.Preset = "clippy"
	if failure := failureOf(t, second(c.Run(t.Context(), unknown, &recorder{}))); !failure.Permanent || !strings.Contains(failure.Message, "codex") {
		t.Errorf("got %+v", failure)
	}
	missing := presetRequest(t, "codex", "hello")
	missing.Spec.Command.Argv = nil
	missing.Environment = []Variable{{"PATH", t.TempDir()}}
	if failure := failureOf(t, second(c.Run(t.Context(), missing, &recorder{}))); !strings.Contains(failure.Message, `"codex" was not found`) {
		t.Errorf("got %+v", failure)
	}
}

func second[T any](_ T, err error) error { return err }

func TestThePromptFileOfAPresetIsGoneAfterwards(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if _, err := newCommand(t, Options{}).Run(t.Context(), presetRequest(t, "aider", "hello"), &recorder{}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestThePromptFileOfAKilledServersRunIsRemovedWithItsLeftovers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	first, second := Options{}, Options{}
	for _, attempt := range []int{1, 2} {
		if _, err := first.launchFile(promptFile, "run_1", attempt, "hello"); err != nil {
			t.Fatal(err)
		}
	}
	other, err := second.launchFile(promptFile, "run_2", 1, "hello")
	if err != nil {
		t.Fatal(err)
	}
	host, boot := here("")
	if _, err := EndLeftover("", ProcessGroup{Host: host, BootID: boot, Launch: LaunchesOf("", "run_1", 1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := EndLeftover("", ProcessGroup{Host: host, BootID: boot, Launch: LaunchesOf("", "run_1", 2) + "lch_1"}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 1 || filepath.Join(os.Getenv("TMPDIR"), left[0].Name()) != other {
		t.Errorf("left %v, %v", left, err)
	}
}
