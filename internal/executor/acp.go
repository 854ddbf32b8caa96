//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/preset"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/xid"
)

// How an ACP agent is ended.
const (
	acpGrace = 10 * time.Second // between TERM and KILL
	acpQuit  = 5 * time.Second  // for ending by itself when it has answered and its input is closed
	acpBreak = 3 * time.Second  // for obeying session/cancel, within the grace
)

// ACP runs an agent that speaks the Agent Client Protocol over stdio (SPEC S7.1). Its process lives as long as one attempt,
// in a group of its own like a command's.
type ACP struct{ *launcher }

// NewACP makes the executor. It starts its agents as command does its programs, and is closed with it.
func NewACP(command *Command) *ACP { return &ACP{command.launcher} }

// Run starts the agent, opens or loads a session, prompts it once and returns when its group is gone.
//
// A result object in the agent's last message counts as a command's does; without one that message is the result. When the context is cancelled, the agent is asked to stop (session/cancel) before its group is ended.
func (a *ACP) Run(ctx context.Context, req Request, sink Sink) (Result, error) {
	if !a.enter() {
		return Result{ExitCode: -1}, launchFailure(errClosed, "rouse is shutting down: the run will be launched after the next start")
	}
	defer a.live.Done()
	if ctx.Err() != nil {
		return Result{ExitCode: -1}, endedFromOutside(ctx)
	}
	if req.Spec.ACP == nil {
		return Result{ExitCode: -1}, permanentLaunch("the executor is not an ACP agent: set argv and workingDirectory")
	}
	result, failure := a.run(ctx, req, &oneAtATime{sink: sink})
	if failure != nil {
		failure.Local = true
		return result, req.tell(failure)
	}
	return result, nil
}

func (a *ACP) run(ctx context.Context, req Request, sink *oneAtATime) (Result, *Failure) {
	result := Result{ExitCode: -1}
	spec := req.Spec.ACP
	o, failure := a.options.of(req.WorkspaceID)
	if failure != nil {
		return result, failure
	}
	tools := o.toolServers(req)
	known, argv, failure := commandLineOf(spec)
	if failure != nil {
		return result, failure
	}
	req.Environment = append(variablesOf(known.Environment), req.Environment...)
	l, failure := o.prepare(req, argv, spec.WorkingDirectory)
	if failure != nil {
		return result, failure
	}
	folder, err := openFolder(l.directory, o.Credential)
	if err != nil {
		return result, launchFailure(err, "the agent's folder cannot be opened: %v", err)
	}
	defer folder.close()
	p, failure := a.start(l)
	if failure != nil {
		return result, failure
	}
	result.Launched = true
	bounds := limits{spec.Timeout, acpGrace}
	out := newOutput(req, sink)
	out.hear, out.deadline = known.Notice, time.Now().Add(bounds.wait())
	out.told(tools.note)
	if err := sink.Process(p.group); err != nil {
		p.end(a.options.Drain, out)
		a.reap(p, &result)
		return result, launchFailure(err, "the process was ended at once because it could not be recorded: %v", err)
	}
	talk := newConversation(p, out, folder, spec.Permissions)
	talk.tools, talk.known, talk.transcript.ownWords = tools, known, known.OwnWords
	p.readers.Go(func() { talk.wire.pump(p.stdout) })
	p.readers.Go(func() { out.copyLines(domain.LogStreamStderr, p.stderr) })
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go talk.untilAnswered(work, req, func(session string) {
		result.SessionID, result.Resumable = session, true
		if req.mask(session) != session { // an id that holds a secret is not stored, and masked it names nothing
			result.SessionID, result.Resumable = xid.New("ses").String(), false
		}
		result.SessionError = sink.Session(result.SessionID)
		result.Fresh = req.ResumeSessionID != "" && session != req.ResumeSessionID
	})
	end := a.attend(ctx, p, talk, bounds)
	answered := talk.answered()
	stop()
	p.end(a.options.Drain, out)
	talk.wire.close()
	<-talk.done
	state := a.reap(p, &result)
	talk.fill(&result, req, answered)
	return result, talk.judge(ctx, result, answered, end, state, bounds)
}

// commandLineOf is the agent's command line: its own, or that of its preset, which is zero where it has none.
func commandLineOf(spec *domain.ACPSpec) (preset.ACP, []string, *Failure) {
	if spec.Preset == "" {
		return preset.ACP{}, spec.Argv, nil
	}
	known, ok := preset.FindACP(spec.Preset)
	if !ok {
		return known, nil, permanentLaunch("the ACP preset %q is not known to this version of rouse; it knows %s", spec.Preset, strings.Join(preset.ACPNames(), ", "))
	}
	return known, known.Argv(spec.Argv), nil
}

// attend waits for the answer and sees the agent off: its input is closed, and what does not end then is ended.
func (a *ACP) attend(ctx context.Context, p *process, talk *conversation, l limits) ending {
	timeout := time.NewTimer(l.wait())
	defer timeout.Stop()
	var end ending
	select {
	case <-talk.done:
	case <-p.exited:
		waitFor(talk.done, a.options.Drain) // what it wrote last is still read
	case <-ctx.Done():
		end = ending{forced: true, stopped: true}
	case <-talk.out.hopeless:
		end = ending{forced: true, timedOut: true}
	case <-timeout.C:
		end = ending{forced: true, timedOut: true}
	}
	quit := acpQuit
	if end.forced {
		talk.cancel()
		quit = min(acpBreak, graceOf(ctx, l)/2)
		waitFor(talk.done, quit)
	}
	closeFiles(p.stdin)
	if p.awaitExit(ctx, quit) {
		return end
	}
	left := p.terminate(ctx, l, ending{forced: true})
	end.forced = true
	end.stopped = end.stopped || left.stopped
	return end
}

// awaitExit waits for the leader's end, at most d, or until ctx ends, and reports whether it ended.
func (p *process) awaitExit(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	over := ctx.Done()
	if ctx.Err() != nil {
		over = nil
	}
	select {
	case <-p.exited:
		return true
	case <-timer.C:
	case <-over:
	}
	return false
}

// answered reports whether the prompt was answered.
func (c *conversation) answered() bool {
	select {
	case <-c.done:
		return c.failure == nil
	default:
		return false
	}
}

// fill makes the result of what the agent said.
func (c *conversation) fill(result *Result, req Request, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	result.Tail = c.out.tailText()
	if object, ok := c.out.resultIn(string(c.transcript.answer)); ok {
		result.Object = domain.CleanResult(object, req.mask).(map[string]any)
	} else if text := c.transcript.text(); answered && text != "" {
		result.Object = map[string]any{"message": text, "stop_reason": cutText(req.mask(domain.StorableText(string(c.answer.StopReason))), maxStepWord)}
	}
	result.Usage = c.usage().Masked(req.mask)
}

// judge decides whether the attempt succeeded; nil is success. Some agents answer that their turn has come to its end also where they were
// told to break it off: it has when they spoke last.
func (c *conversation) judge(ctx context.Context, result Result, answered bool, end ending, state *os.ProcessState, l limits) *Failure {
	said := ""
	if result.Object != nil {
		said = domain.ReportedError(result.Object)
	}
	_, isMessage := result.Object["stop_reason"]
	finished := answered && c.answer.StopReason == acp.StopReasonEndTurn && (!end.stopped && !end.timedOut || c.transcript.spoke)
	switch {
	case end.stopped && !finished:
		return endedFromOutside(ctx)
	case said != "":
		return reported(said)
	case result.Object != nil && hasOutcome(result.Object) && !isMessage:
		return nil
	case c.out.cutResult() != nil:
		return c.out.cutResult()
	case answered && c.toldFailure() != "":
		f := reported(c.toldFailure())
		return refusedAs(f, retry.Refusal(f.Words))
	case end.timedOut && !finished:
		return late("the agent did not answer", c.out, l)
	case c.failure != nil && errors.Is(c.failure, errAgentGone) && state != nil:
		c.failure.Words = c.out.errorText()
		c.failure.Message = withTail(fmt.Sprintf("%s (it ended with code %d)", c.failure.Message, exitCode(state)), c.out)
		return refusedAs(c.failure, retry.Refusal(c.failure.Words))
	case c.failure != nil:
		return c.failure
	}
	return stopFailure(c.answer.StopReason)
}

// toldFailure is why the turn failed by the words of the agent's program, masked; "" when it did not. Such words are its model's where the
// model has answered, unless they tell that a provider refused.
func (c *conversation) toldFailure() string {
	words := c.out.mask(domain.StorableText(c.transcript.failure))
	if c.answer.Usage != nil && !retry.IsRateLimit(words) && retry.Refusal(words) == "" {
		return ""
	}
	return words
}

// stopFailure says why a turn that did not come to its end is not a success.
func stopFailure(reason acp.StopReason) *Failure {
	why := ""
	switch reason {
	case acp.StopReasonEndTurn:
		return nil
	case acp.StopReasonMaxTokens:
		why = "it reached its limit of tokens"
	case acp.StopReasonMaxTurnRequests:
		why = "it reached its limit of requests in one turn"
	case acp.StopReasonRefusal:
		why = "it refused to go on"
	case acp.StopReasonCancelled:
		why = "it says that the turn was cancelled, which rouse did not ask for"
	default:
		why = fmt.Sprintf("it stopped for the reason %q", reason)
	}
	return &Failure{Code: domain.RunErrorCodeOther, Message: "the agent did not finish: " + why}
}
