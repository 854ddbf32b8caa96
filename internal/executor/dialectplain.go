//go:build unix

package executor

import (
	"context"
	"errors"
	"io"

	"rouse.dev/rouse/internal/domain"
)

// plainDialect is that of any command: it gets the prompt on standard input, and may leave a result object on its last line.
type plainDialect struct{}

func (plainDialect) again(Request) dialect { return plainDialect{} }

func (plainDialect) environment() []Variable { return nil }

func (plainDialect) commandLine(req Request, _ Options) (argv []string, prompt string, cleanUp func(), _ *Failure) {
	return req.Spec.Command.Argv, req.Prompt, func() {}, nil
}

func (plainDialect) reading(out *output, _ func(string) string, _ func(string)) func(io.Reader) {
	return func(r io.Reader) { out.copyLines(domain.LogStreamStdout, r) }
}

func (plainDialect) conclude(ctx context.Context, result *Result, e ended) *Failure {
	readResult(result, e.out, e.req, e.sink)
	return judge(ctx, *result, e.out, e.how, e.state, e.limits)
}

func (plainDialect) resumeFailed(Request, *Failure) bool { return false }

// readResult takes the result object, usage and session from the last line of stdout. A line in which a program hands its model's
// last words on has the use and the session, while the words have the result.
func readResult(result *Result, out *output, req Request, sink Sink) {
	result.Tail = out.tailText()
	result.Usage = out.cutUsage(nil)
	object, ok := parseResult(out.last)
	if !ok {
		out.noteLostActions(nil, result.Tail)
		return
	}
	result.Object = domain.CleanResult(wordsWithin(object), req.mask).(map[string]any)
	out.noteLostActions(result.Object, string(out.last))
	result.Usage = usageOf(object, req.mask)
	session := domain.ResultSession(object)
	if session == "" || req.mask(session) != session { // an id that holds a secret is not stored, and masked it names nothing
		return
	}
	result.Resumable = true
	if session != result.SessionID {
		result.SessionID = session
		result.SessionError = errors.Join(result.SessionError, sink.Session(session))
	}
}
