// Package preset knows agent command lines by name (SPEC S7.1): how each is started, how it gets its prompt, how it
// resumes a session, and what the events mean that it prints. It starts nothing: arguments and lines go in, arguments
// and words come out. Each preset follows the documentation that it names.
package preset

import (
	"regexp"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// Preset is one agent command line.
type Preset struct {
	Name          string
	Program       string            // its usual name in PATH
	Documentation string            // where its arguments and its output are described
	args          []string          // after the program
	last          []string          // at the very end
	resume        []string          // before the session's id; none: it cannot resume
	PromptFile    string            // the argument that names a file with the prompt; "": it reads standard input
	Environment   map[string]string // variables that it needs to run by itself; those of the executor go before
	Version       []string          // arguments that make it print its version
	LoginStatus   []string          // arguments that make it tell, at no cost, whether it is logged in; none: it has no such command
	LoginExit     int               // the exit code with which it says that it is not; 0: none
	unknown       *regexp.Regexp    // what it says of a session that it does not know
	notice        notice            // what it writes to standard error when it tries again by itself
	reader        func(state) Reader
}

// presets are in the order of Names.
var presets = []Preset{
	{
		Name: "aider", Program: "aider", Documentation: "https://aider.chat/docs/scripting.html",
		args:       []string{"--yes-always", "--no-pretty", "--no-stream", "--no-check-update", "--no-show-release-notes", "--no-suggest-shell-commands"},
		PromptFile: "--message-file", Version: []string{"--version"}, reader: func(s state) Reader { return &aider{state: s} },
	},
	{
		Name: "claude", Program: "claude", Documentation: "https://code.claude.com/docs/en/headless",
		args:   []string{"-p", "--output-format", "stream-json", "--verbose"},
		resume: []string{"--resume"}, unknown: regexp.MustCompile(`(?i)no conversation found with session id`), LoginStatus: []string{"auth", "status"},
		Version: []string{"--version"}, reader: func(s state) Reader { return &claude{state: s} },
	},
	{
		Name: "codex", Program: "codex", Documentation: "https://github.com/openai/codex/blob/main/docs/exec.md",
		args:   []string{"exec", "--json", "--skip-git-repo-check"},
		resume: []string{"resume"}, unknown: regexp.MustCompile(`(?i)no rollout found|no (?:saved )?(?:session|conversation|thread) found|thread/resume failed|thread not found`), LoginStatus: []string{"login", "status"},
		last: []string{"-"}, Version: []string{"--version"}, reader: func(s state) Reader { return &codex{state: s} },
	},
	{
		Name: "gemini", Program: "gemini", Documentation: "https://geminicli.com/docs/cli/headless/",
		args:   []string{"--output-format", "stream-json"},
		resume: []string{"--resume"}, unknown: regexp.MustCompile(`(?i)error resuming session|invalid session identifier|no previous sessions? found`),
		Environment: map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"}, // else it refuses to run where nobody can be asked
		notice:      geminiNotice,
		LoginExit:   41, Version: []string{"--version"}, reader: func(s state) Reader { return &gemini{state: s} },
	},
	{
		Name: "opencode", Program: "opencode", Documentation: "https://opencode.ai/docs/cli/",
		args:   []string{"run", "--format", "json", "--print-logs", "--log-level", "ERROR"}, // without them it says nothing while it waits for a limit
		notice: opencodeNotice,
		resume: []string{"--session"}, unknown: regexp.MustCompile(`(?i)session not found|notfounderror.{0,40}session|unknown session`), Version: []string{"--version"}, reader: func(s state) Reader { return &opencode{state: s} },
	},
}

// Names lists the presets by name.
func Names() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.Name)
	}
	return names
}

// Find is the preset of a name.
func Find(name string) (Preset, bool) {
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return presets[i], true
}

// Argv is the program and its arguments. given is the executor's argv. It is empty, or names the program to use instead
// of the usual one, then arguments to add, such as --model. session is the session to resume, or "".
func (p Preset) Argv(given []string, session string) []string {
	argv := []string{p.Program}
	if len(given) > 0 {
		argv[0] = given[0]
		given = given[1:]
	}
	argv = append(append(argv, p.args...), given...)
	if p.CanResume() && session != "" && session[0] != '-' { // an id is no flag
		argv = append(append(argv, p.resume...), session)
	}
	return append(argv, p.last...)
}

// CanResume reports whether the agent goes on with an earlier session.
func (p Preset) CanResume() bool { return len(p.resume) > 0 }

// SessionUnknown says whether the words of an error are those that the program has for a session that it does not know. Any other
// error, such as a limit or a bad key, leaves the session as it is.
func (p Preset) SessionUnknown(words string) bool {
	return p.unknown != nil && p.unknown.MatchString(words)
}

// Notice is what a line of standard error tells of a request that the program makes again by itself; "" for any other line.
func (p Preset) Notice(line string) string {
	return p.notice.in(line)
}

// NewReader reads the output of one launch. What its lines show in part is masked before it is cut.
func (p Preset) NewReader(mask func(string) string) Reader { return p.reader(state{mask: mask}) }

// Reader understands the lines of an agent's standard output, in order.
type Reader interface {
	// Read takes one line. ok is false for a line that is not an event of the agent: show it as it is.
	Read(line []byte) (out []Line, ok bool)
	// Report is what the lines so far say.
	Report() Report
}

// Line is a line for people.
type Line struct {
	Said   bool // the agent's words, rather than what it does
	Notice bool // something stands in the way of the work, such as a refused request that is made again
	Text   string
}

// Report is what an agent's events say about its work.
type Report struct {
	Session      string               // "" until it was named
	Begun        bool                 // the agent has said or done something
	Ended        bool                 // the event that ends the work was there
	Text         string               // the agent's last words, as they were said; their beginning when they are long
	Error        string               // why the work failed; "" when it did not
	LimitedFor   time.Duration        // how long the limit holds from the end of the work on, as an event has it as data; 0 when none does
	LimitedUntil time.Time            // when the limit ends that the agent met, as an event has it as data; zero when none does
	Status       int                  // the status with which the model's provider refused the work, as an event has it; 0 when none does
	Usage        *domain.AttemptUsage // nil until it was told; what cannot be read of it is not masked
}
