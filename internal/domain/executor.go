package domain

import "time"

// ExecutorKind names one of the ways a run is executed (SPEC S7.1).
type ExecutorKind string

// The kinds of executor. ExecutorPull offers its runs to workers. ExecutorEcho answers with its prompt, without an
// agent.
const (
	ExecutorCommand ExecutorKind = "command"
	ExecutorACP     ExecutorKind = "acp"
	ExecutorHTTP    ExecutorKind = "http"
	ExecutorPull    ExecutorKind = "pull"
	ExecutorEcho    ExecutorKind = "echo"
)

// ExecutorSpec says how runs are executed; exactly one member is set. It is stored as JSON on workspaces, projects,
// agents and tasks. Values of variables and headers in it are sealed, never plain.
type ExecutorSpec struct {
	Command *CommandSpec `json:"command,omitempty"`
	ACP     *ACPSpec     `json:"acp,omitempty"`
	HTTP    *HTTPSpec    `json:"http,omitempty"`
	Pull    *PullSpec    `json:"pull,omitempty"`
	Echo    *EchoSpec    `json:"echo,omitempty"`
}

// CommandSpec is any command-line agent: prompt on stdin, result in the last JSON line of stdout.
type CommandSpec struct {
	Preset           string        `json:"preset,omitempty"` // known agent command line, e.g. claude
	Argv             []string      `json:"argv"`             // program and arguments; no shell
	WorkingDirectory string        `json:"working_directory,omitempty"`
	Checkout         *CheckoutSpec `json:"checkout,omitempty"` // instead of a working directory
	Environment      []SealedValue `json:"environment,omitempty"`
	Timeout          time.Duration `json:"timeout"` // the process group gets TERM after this long
	Grace            time.Duration `json:"grace"`   // and KILL after this much longer
	NoTools          bool          `json:"no_tools,omitempty"`
	ToolServers      []ToolServer  `json:"tool_servers,omitempty"`
}

// ACPSpec is an Agent Client Protocol agent over stdio.
type ACPSpec struct {
	Preset           string              `json:"preset,omitempty"` // known agent of the protocol, e.g. gemini
	Argv             []string            `json:"argv"`
	WorkingDirectory string              `json:"working_directory"`
	Checkout         *CheckoutSpec       `json:"checkout,omitempty"` // instead of a working directory
	Environment      []SealedValue       `json:"environment,omitempty"`
	Timeout          time.Duration       `json:"timeout"`
	Permissions      AcpPermissionPolicy `json:"permissions"`
	NoTools          bool                `json:"no_tools,omitempty"` // the agent is not told of rouse's tools
	ToolServers      []ToolServer        `json:"tool_servers,omitempty"`
}

// HTTPSpec is an agent service reached by POST.
type HTTPSpec struct {
	URL     string         `json:"url"`
	Headers []SealedValue  `json:"headers,omitempty"`
	Secret  string         `json:"secret,omitempty"` // signs requests; sealed, "" for none
	Timeout time.Duration  `json:"timeout"`
	Grace   *time.Duration `json:"grace,omitempty"` // see EndGrace

	KeepSecret bool `json:"-"` // of a new spec: the secret that is stored, see KeepSecrets
}

// PullSpec is a queue that workers on other machines take runs from.
type PullSpec struct {
	Command  *CommandSpec  `json:"command,omitempty"`  // what the worker runs; nil: its own
	Checkout *CheckoutSpec `json:"checkout,omitempty"` // for the worker's own command
	Queue    string        `json:"queue"`
	Lease    time.Duration `json:"lease"`
}

// AnswersAtOnce says that an attempt is over as soon as it begins: there is nothing that could be watched or ended meanwhile.
func (s *ExecutorSpec) AnswersAtOnce() bool { return s.Echo != nil && s.Echo.Delay == 0 }

// EchoSpec answers with its prompt, for a first try and for tests.
type EchoSpec struct {
	Delay time.Duration `json:"delay,omitempty"` // pause before the answer
}

// Kind is the member that is set, or "" when none is.
func (s *ExecutorSpec) Kind() ExecutorKind {
	switch {
	case s == nil:
		return ""
	case s.Command != nil:
		return ExecutorCommand
	case s.ACP != nil:
		return ExecutorACP
	case s.HTTP != nil:
		return ExecutorHTTP
	case s.Pull != nil:
		return ExecutorPull
	case s.Echo != nil:
		return ExecutorEcho
	}
	return ""
}

// ResolveExecutor picks the spec a run uses: task, then agent, then project, then workspace default (SPEC S6.4); nil
// when none of them names one.
func ResolveExecutor(task, agent, project, workspace *ExecutorSpec) *ExecutorSpec {
	for _, s := range []*ExecutorSpec{task, agent, project, workspace} {
		if s.Kind() != "" {
			return s
		}
	}
	return nil
}
