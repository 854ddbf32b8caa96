package preset

import (
	"regexp"
	"slices"
)

// ACP is an agent of the Agent Client Protocol whose command line rouse knows.
type ACP struct {
	Name          string
	Program       string            // its usual name in PATH
	Documentation string            // where its command line is described
	args          []string          // after the program
	Environment   map[string]string // variables that it needs to run by itself; those of the executor go before
	Asks          string            // the mode of a session in which it asks for leave, where it has one in which a model decides that (decides)
	LateHistory   bool              // it sends the history of a session that it loads after it has answered, against the protocol
	notice        notice            // what it writes to standard error when it tries again by itself
	own           *regexp.Regexp    // parts of a message that are the program's and not its model's
	failure       *regexp.Regexp    // such a part that says, by its group, why the turn failed
}

// decides is the mode of a session in which a model decides what its agent may do.
const decides = "auto"

// AsksIn is the mode that a session is to be put into, so that its agent asks for leave. current is the mode that it has, and modes are
// those that it offers; "" when it is to be left as it is.
func (a ACP) AsksIn(current string, modes []string) string {
	if current != decides || !slices.Contains(modes, a.Asks) {
		return ""
	}
	return a.Asks
}

// Notice is what a line of standard error tells of a request that the program makes again by itself; "" for any other line.
func (a ACP) Notice(line string) string { return a.notice.in(line) }

// OwnWords says whether a part of a message is the program's, and which failure of the turn it tells of; "" for none.
func (a ACP) OwnWords(part string) (own bool, failure string) {
	if a.failure != nil {
		if m := a.failure.FindStringSubmatch(part); m != nil {
			return true, m[1]
		}
	}
	return a.own != nil && a.own.MatchString(part), ""
}

// acps are in the order of ACPNames.
var acps = []ACP{
	{Name: "amp", Program: "amp-acp", Documentation: "https://agentclientprotocol.com/get-started/registry"},
	{
		Name: "auggie", Program: "auggie", args: []string{"--acp"}, Documentation: "https://docs.augmentcode.com/cli/acp",
		Environment: map[string]string{"AUGMENT_DISABLE_AUTO_UPDATE": "1"},
	},
	{Name: "claude-agent-acp", Program: "claude-agent-acp", Documentation: "https://github.com/agentclientprotocol/claude-agent-acp", Asks: "default"},
	{Name: "codex-acp", Program: "codex-acp", Documentation: "https://github.com/agentclientprotocol/codex-acp"},
	{
		Name: "copilot", Program: "copilot", args: []string{"--acp", "--stdio"}, Documentation: "https://docs.github.com/en/copilot/reference/copilot-cli-reference/acp-server",
		own:     regexp.MustCompile(`^Info: (?:Request failed due to |Operation cancelled by user)`),
		failure: regexp.MustCompile(`^Error: ((?s:.+))`),
	},
	{Name: "cursor", Program: "cursor-agent", args: []string{"acp"}, Documentation: "https://cursor.com/docs/cli/acp"},
	{
		Name: "droid", Program: "droid", args: []string{"exec", "--output-format", "acp"}, Documentation: "https://github.com/agentclientprotocol/registry",
		Environment: map[string]string{"DROID_DISABLE_AUTO_UPDATE": "true", "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false"},
	},
	{
		Name: "gemini", Program: "gemini", args: []string{"--acp"}, Documentation: "https://geminicli.com/docs/cli/acp-mode/",
		Environment: map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"}, notice: geminiNotice, LateHistory: true,
	},
	{Name: "goose", Program: "goose", args: []string{"acp"}, Documentation: "https://block.github.io/goose/docs/guides/acp-clients"},
	{Name: "kilocode", Program: "kilo", args: []string{"acp"}, Documentation: "https://zed.dev/acp/agent/kilo"},
	{Name: "kiro", Program: "kiro-cli", args: []string{"acp"}, Documentation: "https://kiro.dev/docs/acp/"},
	{
		Name: "opencode", Program: "opencode", args: []string{"acp", "--print-logs", "--log-level", "ERROR"}, Documentation: "https://opencode.ai/docs/acp/",
		notice: opencodeNotice, // without those arguments it says nothing while it waits for a limit
	},
	{
		Name: "qwen", Program: "qwen", args: []string{"--acp"}, Documentation: "https://github.com/QwenLM/qwen-code", Asks: "default",
		Environment: map[string]string{"QWEN_CODE_UNATTENDED_RETRY": "1"}, notice: qwenNotice, // without it, it says nothing while it waits for a limit
	},
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
