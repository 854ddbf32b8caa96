//go:build unix

package executor

import (
	"context"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// echoSummary says in every result that nothing was thought or done.
const echoSummary = "Echo answered with its own prompt; no agent ran. Set a command executor on the agent to do real work."

// maxEcho bounds the prompt in the result; the log holds it by line.
const maxEcho = 64 << 10

// Echo answers with its prompt. It is for the first five minutes and for tests, and its result says so (SPEC S7.1).
type Echo struct{}

// Run waits for the spec's delay and answers. A cancelled context ends the wait. An answer that comes at once brings its session
// along: nobody could see an attempt at work that has one already.
func (Echo) Run(ctx context.Context, req Request, sink Sink) (Result, error) {
	if ctx.Err() != nil {
		return Result{ExitCode: -1}, endedFromOutside(ctx)
	}
	result := Result{Launched: true, SessionID: xid.New("ses").String(), ExitCode: -1}
	if result.SessionUntold = req.Spec.AnswersAtOnce(); !result.SessionUntold {
		result.SessionError = sink.Session(result.SessionID)
		if err := wait(ctx, req.Spec.Echo); err != nil {
			return result, err
		}
	}
	out := newOutput(req, sink)
	out.copyLines(domain.LogStreamStdout, strings.NewReader(req.Prompt))
	result.Tail = out.tailText()
	result.Object = map[string]any{
		"summary": echoSummary,
		"message": cutText(req.mask(domain.StorableText(req.Prompt)), maxEcho),
		"echo":    true,
	}
	return result, nil
}

// wait waits for the spec's delay.
func wait(ctx context.Context, spec *domain.EchoSpec) error {
	var delay time.Duration
	if spec != nil {
		delay = spec.Delay
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return endedFromOutside(ctx)
	}
}

// endedFromOutside is the failure of an attempt whose context was cancelled.
func endedFromOutside(ctx context.Context) *Failure {
	cause := context.Cause(ctx)
	return &Failure{Code: domain.RunErrorCodeOther, Message: "the attempt was ended before it finished: " + cause.Error(), Cause: cause}
}
