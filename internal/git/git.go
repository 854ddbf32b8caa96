// Package git runs git for working copies, with bounded output and time. What runs it, and as whom, is the caller's matter. It asks
// nobody for a password, runs no hooks, and reads nothing of the caller's environment.
package git

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Bounds of one call.
const (
	quick    = 2 * time.Minute  // for what stays on this machine
	slow     = 20 * time.Minute // for what comes over a network, or fills a folder
	textMost = 1 << 20          // bytes of an answer
)

// Command is one call of git.
type Command struct {
	Dir   string
	Argv  []string
	Env   []string // NAME=value, which come last
	Limit time.Duration
	Most  int // bytes of standard output that are kept
}

// Output is what a call printed.
type Output struct {
	Stdout string
	Cut    bool   // there was more
	Stderr string // its end
	Code   int    // exit code; -1 when it was ended
}

// Runner runs a command to its end. Its error says that the program could not be run, or was ended.
type Runner func(ctx context.Context, c Command) (Output, error)

// Git calls git in one repository or working copy.
type Git struct {
	Run   Runner
	Dir   string
	Trust []string // repositories of other accounts that git may work in
}

// Error is a call that ended badly.
type Error struct {
	Argv []string
	Said string // the end of standard error
	Code int
}

// Error is what git said.
func (e *Error) Error() string {
	return fmt.Sprintf("git %s ended with code %d: %s", strings.Join(e.Argv, " "), e.Code, e.Said)
}

// environment is set for each call; a caller's runner adds what the account needs, and never what names another repository.
var environment = []string{"GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "LC_ALL=C", "GIT_ALLOW_PROTOCOL=https:http:ssh:git:file"}

// Foreign says whether a variable would lead git to another repository than the one that it is called in.
func Foreign(name string) bool {
	switch name {
	case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
		"GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES", "GIT_PREFIX", "GIT_TRACE", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR":
		return true
	}
	return false
}

// settings hold for each call: no hooks, no helper programs of a repository's own, nothing in the background.
var settings = []string{"core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false", "advice.detachedHead=false", "core.pager=cat"}

// In is git in another folder.
func (g Git) In(dir string) Git { g.Dir = dir; return g }

// Trusting is git that also works in a repository which may belong to another account.
func (g Git) Trusting(dir string) Git {
	g.Trust = append(g.Trust[:len(g.Trust):len(g.Trust)], dir)
	return g
}

// call runs git; what it prints is cut to most bytes.
func (g Git) call(ctx context.Context, limit time.Duration, most int, args ...string) (Output, error) {
	argv := []string{"git"}
	for _, s := range settings {
		argv = append(argv, "-c", s)
	}
	for _, dir := range g.Trust {
		argv = append(argv, "-c", "safe.directory="+dir)
	}
	out, err := g.Run(ctx, Command{Dir: g.Dir, Argv: append(argv, args...), Env: environment, Limit: limit, Most: most})
	if err != nil {
		return out, err
	}
	if out.Code != 0 {
		return out, &Error{Argv: args, Said: strings.TrimSpace(out.Stderr), Code: out.Code}
	}
	return out, nil
}

// text is what a quick call printed, without the line's end.
func (g Git) text(ctx context.Context, args ...string) (string, error) {
	out, err := g.call(ctx, quick, textMost, args...)
	return strings.TrimRight(out.Stdout, "\n"), err
}

// do is a quick call whose answer does not matter.
func (g Git) do(ctx context.Context, args ...string) error {
	_, err := g.call(ctx, quick, textMost, args...)
	return err
}

// Version is what git says of itself.
func (g Git) Version(ctx context.Context) (string, error) { return g.text(ctx, "--version") }
