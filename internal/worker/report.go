package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store"
)

type reportKind int

const (
	reportNothing  reportKind = iota // the store has ended the attempt by itself
	reportDrop                       // another attempt owns the run
	reportFinish                     // success
	reportFail                       // failure
	reportCancel                     // a cancel was obeyed
	reportHandBack                   // due again, neither failed nor abandoned
	reportAccept                     // an agent service has it, and reports the end
)

// report is how an attempt ended, in the form in which it goes to the store.
type report struct {
	kind       reportKind
	success    store.Success
	failure    store.Failure
	unfinished store.Unfinished // of one that was ended from here
	accepted   store.Acceptance
	cause      error // for the log
}

// reportOf decides what the executor's answer comes to. What ended the launch from here counts only when the executor
// says that it did: a run that succeeded as the cancel came has succeeded.
func reportOf(ctx context.Context, result executor.Result, err error) report {
	switch {
	case err == nil && result.Accepted != nil:
		of := result.Accepted
		return report{kind: reportAccept, accepted: store.Acceptance{Fresh: result.Fresh, Left: of.Left, Timeout: of.Time, Grace: of.Grace}}
	case err == nil:
		return report{kind: reportFinish, success: successOf(result)}
	case errors.Is(err, store.ErrFenced):
		return report{kind: reportDrop, cause: err}
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		end := stopped(ctx)
		end.unfinished = unfinishedOf(result)
		return end
	}
	failure := store.Failure{Code: domain.RunErrorCodeOther, Message: err.Error(), Result: result.Object, SessionID: recordedSession(result), Resumable: result.Resumable, Fresh: result.Fresh, Usage: result.Usage}
	if f, ok := errors.AsType[*executor.Failure](err); ok {
		failure.Code, failure.Permanent, failure.RetryAfter, failure.Words = f.Code, f.Permanent, f.RetryAfter, f.Words
		if f.Local {
			failure.Zone = time.Local
		}
	}
	return report{kind: reportFail, failure: failure}
}

// stopped is the report of an attempt that was ended from here. One whose lease could not be kept is handed back, should
// the database answer in time; should somebody else have it by then, the store refuses.
func stopped(ctx context.Context) report {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errCancel):
		return report{kind: reportCancel}
	case errors.Is(cause, errLost):
		return report{kind: reportDrop, cause: cause}
	}
	return report{kind: reportHandBack, cause: cause}
}

func unfinishedOf(result executor.Result) store.Unfinished {
	return store.Unfinished{Result: result.Object, SessionID: recordedSession(result), Resumable: result.Resumable, Fresh: result.Fresh, Usage: result.Usage}
}

func successOf(result executor.Result) store.Success {
	return store.Success{Result: result.Object, Summary: domain.ResultSummary(result.Object), SessionID: recordedSession(result), Named: result.SessionUntold, Resumable: result.Resumable, Fresh: result.Fresh, Usage: result.Usage}
}

// recordedSession is "" for a session whose recording failed: it must not be written later (SPEC S7.8).
func recordedSession(result executor.Result) string {
	if result.SessionError != nil {
		return ""
	}
	return result.SessionID
}

func processGroup(g executor.ProcessGroup) store.ProcessGroup {
	return store.ProcessGroup{Host: g.Host, BootID: g.BootID, PGID: g.PGID, Started: int64(g.StartTime)}
}

// send reports to the store how the attempt ended, and tries until that is stored, because the work is done. The store
// refuses the report when another attempt has taken over. Only the end of a drain gives up.
func (p *Pool) send(a *attempt, end report) {
	if end.kind == reportNothing {
		return
	}
	if end.kind == reportDrop {
		p.log.Warn("a run is no longer ours; its attempt here was dropped", a.keys(), "cause", cmp.Or(errText(end.cause), "fenced"))
		return
	}
	if end.cause != nil {
		p.log.Warn("a run ended early", a.keys(), "cause", end.cause)
	}
	err := p.persistReport(a.Attempt, end)
	if end.kind == reportFinish && unexpected(err) && (end.success.Named || len(end.success.Lines) > 0) {
		end.success = p.reportApart(a, end.success)
		err = p.persistReport(a.Attempt, end)
	}
	if end.kind == reportFinish && unexpected(err) {
		p.log.Error("the success of a run could not be stored; it is recorded as a failure", a.keys(), "error", err)
		end = report{kind: reportFail, failure: store.Failure{Code: domain.RunErrorCodeOther, SessionID: end.success.SessionID, Usage: end.success.Usage,
			Message: "the agent succeeded, but rouse could not store its result; the cause is in its log"}}
		err = p.persistReport(a.Attempt, end)
	}
	switch {
	case errors.Is(err, store.ErrFenced) && end.kind == reportAccept: // its service has reported the end already, or it was taken over
	case errors.Is(err, store.ErrFenced):
		p.log.Warn("the report of a run came too late and was dropped", a.keys())
	case err != nil:
		p.log.Error("the end of a run could not be recorded; it is tried again when its lease has run out", a.keys(), "error", err)
	}
}

// reportApart stores by themselves the session and the lines that a success brings along, because one of them may be what kept it
// from being stored, and returns the rest.
func (p *Pool) reportApart(a *attempt, ok store.Success) store.Success {
	s := &sink{pool: p, attempt: a}
	if ok.Named && s.Session(ok.SessionID) != nil {
		ok.SessionID = "" // it must not be written later (SPEC S7.8)
	}
	if len(ok.Lines) > 0 {
		err := persist(p.giveUp, func(ctx context.Context) error { return p.options.Store.AppendLog(ctx, a.Attempt, ok.Lines) })
		if err != nil {
			p.log.Error(linesLost, a.keys(), "count", len(ok.Lines), "error", err)
		}
	}
	ok.Named, ok.Lines = false, nil
	return ok
}

// unexpected reports whether a write failed by its content and not because the database is away or the run taken over.
func unexpected(err error) bool {
	return err != nil && !postgres.MayPass(err) && !errors.Is(err, store.ErrFenced) && !errors.Is(err, context.Canceled)
}

func (p *Pool) persistReport(a store.Attempt, end report) error {
	return persist(p.giveUp, func(ctx context.Context) error { return p.write(ctx, a, end) })
}

func (p *Pool) write(ctx context.Context, a store.Attempt, end report) error {
	switch end.kind {
	case reportFinish:
		return p.options.Store.Finish(ctx, a, end.success)
	case reportFail:
		return p.options.Store.Fail(ctx, a, end.failure)
	case reportCancel:
		return p.options.Store.Cancelled(ctx, a, end.unfinished)
	case reportHandBack:
		return p.options.Store.HandBack(ctx, a, end.unfinished)
	case reportAccept:
		return p.options.Store.Accept(ctx, a, end.accepted)
	}
	return fmt.Errorf("unknown report %d", end.kind)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
