package preset

import "slices"

// ACP is an agent of the Agent Client Protocol whose command line rouse knows.
type ACP struct {
	Name          string
	Program       string            // its usual name in PATH
	Documentation string            // where its command line is described
	args          []string          // after the program
	Environment   map[string]string // variables that it needs to run by itself; those of the executor go before
}

// acps are in the order of ACPNames.
var acps = []ACP{
	{Name: "amp", Program: "amp-acp", Documentation: "https://agentclientprotocol.com/get-started/registry"},
	{
		Name: "auggie", Program: "auggie", args: []string{"--acp"}, Documentation: "https://docs.augmentcode.com/cli/acp",
		Environment: map[string]string{"AUGMENT_DISABLE_AUTO_UPDATE": "1"},
	},
	{Name: "claude-agent-acp", Program: "claude-agent-acp", Documentation: "https://github.com/agentclientprotocol/claude-agent-acp"},
	{Name: "codex-acp", Program: "codex-acp", Documentation: "https://github.com/agentclientprotocol/codex-acp"},
	{Name: "copilot", Program: "copilot", args: []string{"--acp", "--stdio"}, Documentation: "https://docs.github.com/en/copilot/reference/copilot-cli-reference/acp-server"},
	{Name: "cursor", Program: "cursor-agent", args: []string{"acp"}, Documentation: "https://cursor.com/docs/cli/acp"},
	{
		Name: "droid", Program: "droid", args: []string{"exec", "--output-format", "acp"}, Documentation: "https://github.com/agentclientprotocol/registry",
		Environment: map[string]string{"DROID_DISABLE_AUTO_UPDATE": "true", "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false"},
	},
	{
		Name: "gemini", Program: "gemini", args: []string{"--acp"}, Documentation: "https://geminicli.com/docs/cli/acp-mode/",
		Environment: map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"},
	},
	{Name: "goose", Program: "goose", args: []string{"acp"}, Documentation: "https://block.github.io/goose/docs/guides/acp-clients"},
	{Name: "kilocode", Program: "kilo", args: []string{"acp"}, Documentation: "https://zed.dev/acp/agent/kilo"},
	{Name: "kiro", Program: "kiro-cli", args: []string{"acp"}, Documentation: "https://kiro.dev/docs/acp/"},
	{Name: "opencode", Program: "opencode", args: []string{"acp"}, Documentation: "https://opencode.ai/docs/acp/"},
	{Name: "qwen", Program: "qwen", args: []string{"--acp"}, Documentation: "https://github.com/QwenLM/qwen-code"},
}

// ACPNames lists the agents of the protocol by name.
func ACPNames() []string {
	var names []string
	for _, a := range acps {
		names = append(names, a.Name)
	}
	return names
}

// FindACP is the agent of a name.
func FindACP(name string) (ACP, bool) {
	i := slices.IndexFunc(acps, func(a ACP) bool { return a.Name == name })
	if i < 0 {
		return ACP{}, false
	}
	return acps[i], true
}

// Argv is the program and its arguments. given is the executor's argv, as for Preset.Argv.
func (a ACP) Argv(given []string) []string {
	program := a.Program
	if len(given) > 0 {
		program, given = given[0], given[1:]
	}
	return slices.Concat([]string{program}, a.args, given)
}
