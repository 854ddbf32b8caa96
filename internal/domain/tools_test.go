package domain

import "testing"

func TestWhatAgentsCanCallWhileTheyWork(t *testing.T) {
	for name, c := range map[string]struct {
		spec *ExecutorSpec
		want AgentTools
	}{
		"a command has the API":          {&ExecutorSpec{Command: &CommandSpec{}}, AgentToolsAPI},
		"an ACP agent has the API":       {&ExecutorSpec{ACP: &ACPSpec{}}, AgentToolsAPI},
		"an agent service has the API":   {&ExecutorSpec{HTTP: &HTTPSpec{}}, AgentToolsAPI},
		"an agent elsewhere has the API": {&ExecutorSpec{Pull: &PullSpec{}}, AgentToolsAPI},
		"an echo calls nothing":          {&ExecutorSpec{Echo: &EchoSpec{}}, AgentToolsNone},
	} {
		if got := c.spec.AgentTools(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
