package preset

import (
	"slices"
	"strings"
	"testing"
)

func TestArgumentsOfAgentsOfTheProtocol(t *testing.T) {
	for name, want := range map[string]string{
		"amp": "amp-acp --x", "auggie": "auggie --acp --x", "claude-agent-acp": "claude-agent-acp --x", "codex-acp": "codex-acp --x", "copilot": "copilot --acp --stdio --x",
		"cursor": "cursor-agent acp --x", "droid": "droid exec --output-format acp --x", "gemini": "gemini --acp --x", "goose": "goose acp --x", "kilocode": "kilo acp --x",
		"kiro": "kiro-cli acp --x", "opencode": "opencode acp --print-logs --log-level ERROR --x", "qwen": "qwen --acp --x",
	} {
		a, known := FindACP(name)
		if !known {
			t.Errorf("%s is not known", name)
			continue
		}
		if got := strings.Join(a.Argv([]string{a.Program, "--x"}), " "); got != want {
			t.Errorf("%s is started as %q, want %q", name, got, want)
		}
		if got := a.Argv(nil); got[0] != a.Program || strings.Contains(strings.Join(got, " "), "--x") {
			t.Errorf("%s without arguments is started as %q", name, got)
		}
		if got := a.Argv([]string{"/opt/agent"}); got[0] != "/opt/agent" || len(got) != len(a.Argv(nil)) {
			t.Errorf("another program is started as %q", got)
		}
	}
	if _, known := FindACP("clippy"); known || !slices.IsSorted(ACPNames()) || len(ACPNames()) != 13 {
		t.Errorf("names are %v", ACPNames())
	}
}
