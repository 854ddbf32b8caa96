//go:build unix

package executor

import (
	"context"
	"io"
	"os"
	"strings"

	"rouse.dev/rouse/internal/preset"
)

// dialect is how a command is talked to: plainly, or as its preset wants it. It serves one launch.
type dialect interface {
	// again is the dialect for another launch of the same command.
	again(req Request) dialect
	// environment is what the command needs besides its own; variables of the executor with these names go before.
	environment() []Variable
	// commandLine is the command's arguments and what it gets on standard input. cleanUp is to be called after its end.
	commandLine(req Request, o Options) (argv []string, prompt string, cleanUp func(), _ *Failure)
	// reading is how standard output is read. named is told each session that the agent names.
	reading(out *output, mask func(string) string, named func(session string)) func(io.Reader)
	// conclude makes the result and decides whether the attempt succeeded; nil is success.
	conclude(ctx context.Context, result *Result, e ended) *Failure
	// resumeFailed reports whether an attempt seems to have failed because its session is gone.
	resumeFailed(req Request, f *Failure) bool
}

// ended is a command that has ended, and what it left.
type ended struct {
	req    Request
	sink   Sink
	out    *output
	how    ending
	state  *os.ProcessState
	limits limits
}

// dialectOf finds the preset of a request's command.
func dialectOf(req Request) (dialect, *Failure) {
	name := req.Spec.Command.Preset
	if name == "" {
		return plainDialect{}, nil
	}
	found, ok := preset.Find(name)
	if !ok {
		return nil, permanentLaunch("the preset %q is not known to this version of rouse; it knows %s", name, strings.Join(preset.Names(), ", "))
	}
	return &presetDialect{found, found.NewReader(req.mask)}, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
