//go:build unix

package executor

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/preset"
	"rouse.dev/rouse/internal/retry"
)

// presetDialect is that of an agent's program that rouse knows: it has arguments of its own, tells what it does in events, and
// may resume sessions.
type presetDialect struct {
	spec   preset.Preset
	reader preset.Reader
}

func (d *presetDialect) again(req Request) dialect {
	return &presetDialect{d.spec, d.spec.NewReader(req.mask)}
}

func (d *presetDialect) environment() []Variable { return variablesOf(d.spec.Environment) }

// variablesOf are the variables of a map, by name.
func variablesOf(values map[string]string) (variables []Variable) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		variables = append(variables, Variable{name, values[name]})
	}
	return variables
}

func (d *presetDialect) commandLine(req Request, o Options) (argv []string, prompt string, cleanUp func(), _ *Failure) {
	argv = d.spec.Argv(withTools(req.Spec.Command.Argv, d.spec.Program, req.toolArgs), req.ResumeSessionID)
	if d.spec.PromptFile == "" {
		return argv, req.Prompt, func() {}, nil
	}
	file, err := o.launchFile(promptFile, req.RunID, req.Attempt, req.Prompt)
	if err != nil {
		return nil, "", func() {}, launchFailure(err, "the prompt could not be written to a file for the agent: %v", err)
	}
	return append(argv, d.spec.PromptFile, file), "", func() { _ = os.Remove(file) }, nil // a file in the temporary folder
}

func (d *presetDialect) reading(out *output, mask func(string) string, named func(session string)) func(io.Reader) {
	out.hear = d.spec.Notice
	return func(r io.Reader) {
		split(r, maxMessage, func(line []byte, total int64) { d.event(out, mask, named, line, total) })
	}
}

// event takes one line of the agent's output: its words go to the log as STDOUT, what it does as SYSTEM.
func (d *presetDialect) event(out *output, mask func(string) string, named func(session string), line []byte, total int64) {
	if total > int64(len(line)) {
		out.say(fmt.Sprintf("a line of the agent's output was longer than %d MiB and could not be read", maxMessage>>20))
		return
	}
	before := d.reader.Report().Session
	lines, ok := d.reader.Read(line)
	if !ok {
		out.emit(domain.LogStreamStdout, line, total)
		return
	}
	if now := d.reader.Report().Session; now != before && domain.SessionIDFits(now) && mask(now) == now {
		named(now)
	}
	for _, l := range lines {
		stream := domain.LogStreamSystem
		if l.Said {
			stream = domain.LogStreamStdout
		}
		out.emit(stream, []byte(l.Text), int64(len(l.Text)))
		if l.Notice {
			out.noticed(l.Text)
		}
	}
}

func (d *presetDialect) conclude(ctx context.Context, result *Result, e ended) *Failure {
	said := d.read(result, e.out, e.req)
	return d.judge(ctx, *result, said, e)
}

// read makes the result. said is true for a result object in the agent's last words; without one these are the result.
func (d *presetDialect) read(result *Result, out *output, req Request) (said bool) {
	report := d.reader.Report()
	result.Tail = out.tailText()
	result.Resumable = d.spec.CanResume() && report.Session != "" && result.SessionID == report.Session
	object, said := out.resultIn(report.Text)
	switch {
	case said:
		result.Object = domain.CleanResult(object, req.mask).(map[string]any)
	case report.Text != "":
		result.Object = map[string]any{"message": maskedText(report.Text, maxAnswer, req.mask)}
	}
	result.Usage = report.Usage.Masked(req.mask)
	return said
}

// judge decides whether the attempt succeeded; nil is success. What the agent's last event says counts more than the exit
// code, and a result object more than that.
func (d *presetDialect) judge(ctx context.Context, result Result, said bool, e ended) *Failure {
	report := d.reader.Report()
	switch {
	case e.how.stopped:
		return endedFromOutside(ctx)
	case said && domain.ReportedError(result.Object) == "" && hasOutcome(result.Object):
		return nil
	case said && domain.ReportedError(result.Object) != "":
		return reported(domain.ReportedError(result.Object))
	case e.how.timedOut && !report.Ended: // what it told before it was not its end
		f := late("the command did not end", e.out, e.limits)
		f.RetryAfter = limitOf(report)
		return f
	case report.Error != "":
		return d.refused(failedAs(report, e.out), e)
	case e.out.cutResult() != nil:
		return e.out.cutResult()
	case report.Ended && !e.how.timedOut:
		return nil
	}
	result.Object = nil // words alone do not excuse an exit code
	return d.refused(judge(ctx, result, e.out, e.how, e.state, e.limits), e)
}

// limitOf is how long the limit still holds that the agent met, as its events have it as data; 0 when they have none.
func limitOf(report preset.Report) time.Duration {
	return max(0, report.LimitedFor, time.Until(report.LimitedUntil))
}

// failedAs is the failure that the agent's events tell of.
func failedAs(report preset.Report, out *output) *Failure {
	f := reported(maskedText(report.Error, maxTail, out.mask))
	if report.Status == http.StatusTooManyRequests {
		f.Code = domain.RunErrorCodeRateLimited
	}
	if wait := limitOf(report); wait > 0 {
		f.Code, f.RetryAfter = domain.RunErrorCodeRateLimited, wait
	}
	return f
}

// refused is the failure with its class when a provider refuses the agent's account, as the program's words, its events and its exit
// code tell.
func (d *presetDialect) refused(f *Failure, e ended) *Failure {
	if f == nil || f.Code != domain.RunErrorCodeOther && f.Code != domain.RunErrorCodeCrash {
		return f
	}
	code := retry.Refusal(f.Words)
	switch {
	case code != "":
	case d.reader.Report().Status == http.StatusUnauthorized, d.spec.LoginExit != 0 && exitCode(e.state) == d.spec.LoginExit:
		code = domain.RunErrorCodeAuth
	case d.reader.Report().Status == http.StatusPaymentRequired:
		code = domain.RunErrorCodeBilling
	}
	return refusedAs(f, code)
}

// refusedAs says of a failure that it is an account's, and what to do; code "" leaves it as it is.
func refusedAs(f *Failure, code domain.RunErrorCode) *Failure {
	if code == "" {
		return f
	}
	f.Code, f.Permanent = code, true
	if code == domain.RunErrorCodeAuth {
		f.Message += "; log the agent in as the account that agents run as (rouse agent-shell), or give it its key in the executor's environment, then retry the run"
	} else {
		f.Message += "; the account that the agent uses has no credit, or its plan does not cover this: change that, or give the agent another key, then retry the run"
	}
	return f
}

// resumeFailed is true where the program says, before its agent said or did anything, that it does not know the session.
func (d *presetDialect) resumeFailed(req Request, f *Failure) bool {
	return req.ResumeSessionID != "" && d.spec.CanResume() && !d.reader.Report().Begun && d.spec.SessionUnknown(f.Words)
}
