package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// TestPresets runs each known agent command line, as a stub that speaks the format of its documentation.
func TestPresets(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	j := newJourney(start(t, pgtest.Installed(t), nil, "--drain", "1s"))
	for _, name := range []string{"aider", "claude", "codex", "gemini", "opencode"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "..", "internal", "executor", "testdata", "presets", name))
			if err == nil {
				// A prompt of several lines does not fit into the stubs' JSON.
				text := strings.ReplaceAll(string(text), `"content":"'$prompt'"`, `"content":""`)
				err = os.WriteFile(w.path(name), []byte(strings.ReplaceAll(text, "You said: $prompt", "You said: hello")), 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
			j := j.on(t, j.program)
			view := j.end(j.wake(j.agent(name, map[string]any{"command": map[string]any{"preset": name, "argv": []string{w.path(name)}}})))
			if view.Status != "FINISHED" || !strings.Contains(view.Summary, "You said: hello\nAll done.") || view.attempts() != "SUCCEEDED" {
				t.Errorf("%+v", view)
			}
			if lines := view.lines(); len(lines) < 2 || strings.Contains(strings.Join(lines, "\n"), `{"type"`) {
				t.Errorf("it said %q", lines)
			}
		})
	}
}
