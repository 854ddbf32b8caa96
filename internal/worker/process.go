package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"syscall"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
)

// process is the life of one attempt. A panic in it fails this attempt and no other.
func (p *Pool) process(a *attempt) {
	var end report
	func() {
		defer func() {
			if v := recover(); v != nil {
				p.log.Error("processing a run panicked", a.keys(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
				end = report{kind: reportFail, failure: store.Failure{Code: domain.RunErrorCodeOther,
					Message: "rouse failed while it processed this run; the cause is in its log. The run is tried again"}}
			}
		}()
		end = p.run(a)
	}()
	p.send(a, end)
}

// run launches the attempt, and says how it is to be reported.
func (p *Pool) run(a *attempt) report {
	if a.ctx.Err() != nil {
		return stopped(a.ctx)
	}
	if a.launch == nil || !a.launch.Executor.AnswersAtOnce() { // else nothing is at work that a cancel could end
		defer p.watchCancel(a)()
		if p.cancelledMeanwhile(a) {
			return stopped(a.ctx)
		}
	}
	launch, err := p.start(a)
	if err != nil {
		return notStarted(a, err)
	}
	if launch == nil {
		return report{kind: reportNothing} // the store settled it
	}
	request, err := p.request(launch)
	if err != nil {
		return report{kind: reportFail, failure: store.Failure{Code: domain.RunErrorCodeLaunch, Message: err.Error(), Permanent: true}}
	}
	request.Lease = a.until
	lines := newLogWriter(p.giveUp, a, p.options.Store, p.log, request.Spec.AnswersAtOnce())
	defer lines.close()
	result, err := p.options.Executor.Run(a.ctx, request, &sink{pool: p, attempt: a, lines: lines})
	if result.Survivors != nil {
		p.log.Warn("processes of a run could not be ended", a.keys(), "error", result.Survivors)
		lines.Line(domain.LogStreamSystem, "processes of this attempt could not be ended and may still run")
	}
	end := reportOf(a.ctx, result, err)
	if end.kind == reportFail && wasAskedToEnd(result, err) && p.endsToo() {
		return report{kind: reportHandBack, cause: errHandBack, unfinished: unfinishedOf(result)}
	}
	if end.kind == reportFinish {
		end.success.Lines = lines.rest()
	}
	return end
}

// wasAskedToEnd says that the agent was ended by a TERM from elsewhere. A service manager or a container that sends one to
// every process, this one included, ends the agent with its server.
func wasAskedToEnd(result executor.Result, err error) bool {
	f, ok := errors.AsType[*executor.Failure](err)
	return ok && f.Code == domain.RunErrorCodeCrash && result.ExitCode == 128+int(syscall.SIGTERM)
}

// cancelledMeanwhile says whether somebody asked to cancel a run between its claim, which started it, and the watch for that. A
// look that fails is no reason to wait: the heartbeat looks again.
func (p *Pool) cancelledMeanwhile(a *attempt) bool {
	if p.options.Watcher == nil || a.launch == nil {
		return false
	}
	asked, err := p.options.Store.CancelRequested(a.ctx, a.RunID)
	if err == nil && asked {
		a.stop(stopCancel())
	}
	return a.ctx.Err() != nil
}

// start is what the claim brought, or asks the store to start the run, which says what is wrong. That is not bound to a cancel:
// one in the middle of it would leave open whether it happened, and the store looks for it anyway. It is given up when the
// lease cannot be kept or the server stops.
func (p *Pool) start(a *attempt) (launch *store.Launch, err error) {
	if launch, a.launch = a.launch, nil; launch != nil {
		return launch, nil
	}
	ctx, cancel := context.WithCancel(p.giveUp)
	defer cancel()
	defer context.AfterFunc(a.ctx, func() {
		if !errors.Is(context.Cause(a.ctx), errCancel) {
			cancel()
		}
	})()
	err = persist(ctx, func(ctx context.Context) error {
		launch, err = p.options.Store.Start(ctx, a.Attempt)
		return err
	})
	return launch, err
}

// notStarted is the end of an attempt that the store did not start.
func notStarted(a *attempt, err error) report {
	switch {
	case errors.Is(err, store.ErrFenced):
		return report{kind: reportDrop}
	case a.ctx.Err() != nil:
		return stopped(a.ctx)
	}
	return report{kind: reportFail, cause: err, failure: store.Failure{Code: domain.RunErrorCodeOther,
		Message: "rouse could not prepare this run; the cause is in its log. The run is tried again"}}
}

// sink passes on what the agent yields.
type sink struct {
	pool    *Pool
	attempt *attempt
	lines   *logWriter
}

// Process records the group, so that a later start of rouse finds it should this one die. It waits while the database is
// away: the agent has not been given its prompt yet.
func (s *sink) Process(g executor.ProcessGroup) error {
	err := persist(s.attempt.ctx, func(ctx context.Context) error {
		return s.pool.options.Store.RecordProcess(ctx, s.attempt.Attempt, processGroup(g))
	})
	if err != nil && s.attempt.ctx.Err() != nil {
		return context.Cause(s.attempt.ctx) // ended from here while it waited, which is no failure of the launch
	}
	return err
}

// Session records the session in one try (SPEC S7.8): its failure is logged and never ends the attempt.
func (s *sink) Session(id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.attempt.ctx), tryLimit) // an attempt that ends had its session all the same
	defer cancel()
	err := s.pool.options.Store.RecordSession(ctx, s.attempt.Attempt, id)
	if err != nil {
		s.pool.options.Store.SessionNotStored(s.attempt.claimed.WorkspaceID)
		s.pool.log.Warn("a session could not be recorded", s.attempt.keys(), "session_id", id, "error", err)
	}
	return err
}

// WorkingCopy records it in one try, as Session does. An attempt that was ended has left it all the same.
func (s *sink) WorkingCopy(w domain.WorkingCopy) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.attempt.ctx), tryLimit)
	defer cancel()
	err := s.pool.options.Store.RecordWorkingCopy(ctx, s.attempt.Attempt, w)
	if err != nil {
		s.pool.log.Warn("a working copy could not be recorded", s.attempt.keys(), "path", w.Path, "error", err)
	}
	return err
}

// Line passes on one line.
func (s *sink) Line(stream domain.LogStream, text string) { s.lines.Line(stream, text) }

// Progress passes on one step.
func (s *sink) Progress(step map[string]any) { s.lines.Progress(step) }
