package domain

import "testing"

func TestWhatAgentsCanCallWhileTheyWork(t *testing.T) {
	for name, c := range map[string]struct {
		spec *ExecutorSpec
		want AgentTools
	}{
		"a command has the API":                            {&ExecutorSpec{Command: &CommandSpec{}}, AgentToolsAPI},
		"a command of a preset that takes tools has them":  {&ExecutorSpec{Command: &CommandSpec{Preset: "claude"}}, AgentToolsMCP},
		"and the API where the executor says no":           {&ExecutorSpec{Command: &CommandSpec{Preset: "claude", NoTools: true}}, AgentToolsAPI},
		"a command of another preset has the API":          {&ExecutorSpec{Command: &CommandSpec{Preset: "aider"}}, AgentToolsAPI},
		"an ACP agent has the tools":                       {&ExecutorSpec{ACP: &ACPSpec{}}, AgentToolsMCP},
		"an ACP agent has the API where the executor says": {&ExecutorSpec{ACP: &ACPSpec{NoTools: true}}, AgentToolsAPI},
		"a preset elsewhere has the tools":                 {&ExecutorSpec{Pull: &PullSpec{Command: &CommandSpec{Preset: "codex"}}}, AgentToolsMCP},
		"an agent service has the API":                     {&ExecutorSpec{HTTP: &HTTPSpec{}}, AgentToolsAPI},
		"an agent elsewhere has the API":                   {&ExecutorSpec{Pull: &PullSpec{}}, AgentToolsAPI},
		"an echo calls nothing":                            {&ExecutorSpec{Echo: &EchoSpec{}}, AgentToolsNone},
	} {
		if got := c.spec.AgentTools(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
