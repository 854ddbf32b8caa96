//go:build unix

package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Command runs any command line as an agent: prompt on stdin, lines on stdout and stderr, the result as the last line of
// stdout (SPEC S7.1, S7.5). Every launch has a session, hence a process group, of its own that ends with the attempt
// and with the server.
type Command struct{ *launcher }

// NewCommand makes the executor. Close it when no run is wanted any more.
func NewCommand(options Options) *Command { return &Command{newLauncher(options)} }

// Run launches the command and returns when its group is gone.
//
// The session is named by rouse when the process runs, or is the one to resume; a session_id in the result object
// replaces it and makes it resumable. A result that says what was achieved counts more than exit code and timeout. A
// result that reports an error is a failure, whatever the exit code. A run that was ended through ctx is always a
// failure; its result is kept.
func (c *Command) Run(ctx context.Context, req Request, sink Sink) (Result, error) {
	if !c.enter() {
		return Result{ExitCode: -1}, launchFailure(errClosed, "rouse is shutting down: the run will be launched after the next start")
	}
	defer c.live.Done()
	if ctx.Err() != nil {
		return Result{ExitCode: -1}, endedFromOutside(ctx)
	}
	if req.Spec.Command == nil {
		return Result{ExitCode: -1}, permanentLaunch("the executor is not a command: set argv")
	}
	result, failure := c.run(ctx, req, sink)
	if failure != nil {
		failure.Local = true
		return result, req.tell(failure)
	}
	return result, nil
}

// run launches the command; a preset's session that cannot be resumed is tried without it.
func (c *Command) run(ctx context.Context, req Request, sink Sink) (Result, *Failure) {
	d, failure := dialectOf(req)
	if failure != nil {
		return Result{ExitCode: -1}, failure
	}
	one := &oneAtATime{sink: sink}
	if req.log == nil {
		req.log = newLogBudget(req)
	}
	result, failure := c.launch(ctx, req, one, d)
	if failure == nil || ctx.Err() != nil || !d.resumeFailed(req, failure) {
		return result, failure
	}
	out := newOutput(req, one)
	out.say(fmt.Sprintf("the session %s could not be resumed, a new one is opened with the full prompt: %s", req.ResumeSessionID, firstLine(failure.Message)))
	req.Prompt, req.ResumeSessionID = req.fullPrompt(), ""
	result, failure = c.launch(ctx, req, one, d.again(req))
	result.Fresh = result.Launched
	return result, failure
}

func (c *Command) launch(ctx context.Context, req Request, sink Sink, d dialect) (Result, *Failure) {
	result := Result{ExitCode: -1}
	spec := req.Spec.Command
	bounds := limits{spec.Timeout, spec.Grace}
	req.Environment = append(d.environment(), req.Environment...)
	o, failure := c.options.of(req.WorkspaceID)
	if failure != nil {
		return result, failure
	}
	tools := o.handTools(&req)
	defer tools.cleanUp()
	req.toolArgs = tools.args
	argv, prompt, cleanUp, failure := d.commandLine(req, o)
	if failure != nil {
		return result, failure
	}
	defer cleanUp()
	l, failure := o.prepare(req, argv, spec.WorkingDirectory)
	if failure != nil {
		return result, failure
	}
	p, failure := c.start(l)
	if failure != nil {
		return result, failure
	}
	result.Launched = true
	out := newOutput(req, sink)
	out.deadline = time.Now().Add(bounds.wait())
	out.told(tools.note)
	if err := sink.Process(p.group); err != nil {
		p.end(c.options.Drain, out)
		c.reap(p, &result)
		return result, launchFailure(err, "the process was ended at once because it could not be recorded: %v", err)
	}
	result.SessionID = cmp.Or(req.ResumeSessionID, xid.New("ses").String())
	result.SessionError = sink.Session(result.SessionID)
	p.communicate(prompt, out, d.reading(out, req.mask, func(session string) {
		result.SessionID = session
		result.SessionError = errors.Join(result.SessionError, sink.Session(session))
	}))
	end := p.supervise(ctx, bounds, out.hopeless)
	p.end(c.options.Drain, out)
	state := c.reap(p, &result)
	failure = d.conclude(ctx, &result, ended{req, sink, out, end, state, bounds})
	return result, failure
}

// exitCode is the code, or 128+n for signal n as shells have it; -1 when unknown.
func exitCode(state *os.ProcessState) int {
	if state == nil {
		return -1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// judge decides whether the attempt succeeded (SPEC S7.5); nil is success.
func judge(ctx context.Context, result Result, out *output, end ending, state *os.ProcessState, l limits) *Failure {
	switch {
	case end.stopped:
		return endedFromOutside(ctx)
	case result.Object != nil && domain.ReportedError(result.Object) != "":
		return reported(domain.ReportedError(result.Object))
	case result.Object != nil && hasOutcome(result.Object):
		return nil
	case out.cutResult() != nil:
		return out.cutResult()
	case end.timedOut:
		return late("the command did not end", out, l)
	case state == nil || !state.Success():
		return &Failure{Code: domain.RunErrorCodeCrash, Words: out.errorText(), Message: withTail(describeExit(state), out)}
	}
	return nil
}

// reported is the failure of an attempt whose agent says why it failed.
func reported(text string) *Failure {
	text = cutText(text, maxTail)
	return &Failure{Code: domain.RunErrorCodeOther, Words: text, Message: "the agent reported an error: " + text}
}

func describeExit(state *os.ProcessState) string {
	if state == nil {
		return "the command hangs in the operating system and could not be ended: look at the process, its disk or network"
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("the command was ended by signal %d (%s) and left no result", int(status.Signal()), status.Signal())
	}
	return fmt.Sprintf("the command exited with code %d and left no result", state.ExitCode())
}

// late is the failure of an attempt that was ended at its timeout, with what stood in its way as far as it told. One that awaited a
// limit's end in vain was ended before, and met that limit.
func late(what string, out *output, l limits) *Failure {
	if limit := out.inVain(); limit != "" {
		message := fmt.Sprintf("the agent awaited the end of a limit that comes after its timeout of %s, and was ended: %s", l.wait(), limit)
		return &Failure{Code: domain.RunErrorCodeRateLimited, Words: limit, Message: withTail(message, out)}
	}
	message := fmt.Sprintf("%s within its timeout of %s and was ended: raise the executor's timeout if the work takes longer", what, l.wait())
	words := out.errorText()
	if notice := out.lastNotice(); notice != "" {
		message += "; the last that stood in its way: " + notice
		words = notice + "\n" + words
	}
	return &Failure{Code: domain.RunErrorCodeTimeout, Words: words, Message: withTail(message, out)}
}

func withTail(message string, out *output) string {
	tail := out.tailText()
	if tail == "" {
		return message + "; it printed nothing"
	}
	return message + "; its last output:\n" + tail
}
