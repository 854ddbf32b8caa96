package graph

import (
	"context"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// messageBytesMax bounds why a run failed.
const messageBytesMax = 8 << 10

func (r *Resolver) reportSucceeded(ctx context.Context, in model.ReportRunSucceededInput) (*ent.Run, error) {
	usage, err := usageOf(in.Usage)
	if err := joinProblems(err, checkObject([]string{"result"}, in.Result, resultBytesMax)); err != nil {
		return nil, err
	}
	a, err := r.attemptOf(ctx, in.Lease)
	if err != nil {
		return nil, err
	}
	mask, err := r.maskOf(ctx, a.run.ID)
	if err != nil {
		return nil, err
	}
	ok := store.Success{Usage: usage.Masked(mask), Fresh: in.FreshSession}
	if in.Result != nil {
		ok.Result = domain.CleanResult(in.Result, mask).(map[string]any)
		ok.Summary, ok.SessionID = domain.ResultSummary(ok.Result), openSession(domain.ResultSession(in.Result), mask)
		ok.Resumable = ok.SessionID != ""
		if usage == nil {
			ok.Usage = domain.ResultUsage(ok.Result)
		}
	}
	if err := r.endWell(ctx, a.Attempt, ok); err != nil {
		return nil, fenced(err)
	}
	return r.Reader.Run.Get(ctx, a.RunID)
}

// endWell ends an attempt that its worker calls a success. A result that reports an error as its outcome is not a
// success, whoever brings it.
func (r *Resolver) endWell(ctx context.Context, a store.Attempt, ok store.Success) error {
	reported := domain.ReportedError(ok.Result)
	if reported == "" {
		return r.Store.Finish(ctx, a, ok)
	}
	return r.Store.Fail(ctx, a, store.Failure{Code: domain.RunErrorCodeOther, Message: domain.CutText("the agent reported an error: "+reported, messageBytesMax, " [… cut]"),
		Words: reported, Result: ok.Result, SessionID: ok.SessionID, Resumable: ok.Resumable, Fresh: ok.Fresh, Usage: ok.Usage})
}

func (r *Resolver) reportFailed(ctx context.Context, in model.ReportRunFailedInput) (*ent.Run, error) {
	parts := unfinished{result: in.Result, usage: in.Usage, sessionID: in.SessionID, fresh: in.FreshSession}
	a, u, mask, err := r.readUnfinished(ctx, in.Lease, parts)
	if err != nil {
		return nil, err
	}
	message := domain.CutText(mask(domain.StorableText(in.Message)), messageBytesMax, " [… cut]")
	if message == "" {
		message = "the worker gave no reason"
	}
	failure := store.Failure{Code: in.Code, Message: message, Words: message, RetryAfter: valueOf(in.RetryAfter), Permanent: in.Permanent, Result: u.Result, SessionID: u.SessionID, Resumable: u.Resumable, Usage: u.Usage, Fresh: u.Fresh}
	if in.Evidence != nil {
		failure.Words = domain.CutText(*in.Evidence, messageBytesMax, "")
	}
	if err := r.Store.Fail(ctx, a.Attempt, failure); err != nil {
		return nil, fenced(err)
	}
	return r.Reader.Run.Get(ctx, a.RunID)
}

func (r *Resolver) reportHandedBack(ctx context.Context, in model.ReportRunHandedBackInput) (*ent.Run, error) {
	a, u, _, err := r.readUnfinished(ctx, in.Lease, unfinished{result: in.Result, usage: in.Usage, sessionID: in.SessionID})
	if err != nil {
		return nil, err
	}
	if err := r.Store.HandBack(ctx, a.Attempt, u); err != nil {
		return nil, fenced(err)
	}
	return r.Reader.Run.Get(ctx, a.RunID)
}

// unfinished is what a worker reports of an attempt that did not succeed, beside its end.
type unfinished struct {
	result    map[string]any
	usage     *model.RunUsageInput
	sessionID *string
	fresh     bool
}

// readUnfinished checks what is reported and whose it is, and hides secrets in it.
func (r *Resolver) readUnfinished(ctx context.Context, lease *model.RunLeaseInput, in unfinished) (a reported, u store.Unfinished, mask func(string) string, err error) {
	usage, err := usageOf(in.usage)
	if err := joinProblems(err, checkObject([]string{"result"}, in.result, resultBytesMax), checkSession(in.sessionID)); err != nil {
		return a, u, nil, err
	}
	if a, err = r.attemptOf(ctx, lease); err != nil {
		return a, u, nil, err
	}
	if mask, err = r.maskOf(ctx, a.run.ID); err != nil {
		return a, u, nil, err
	}
	u = store.Unfinished{Usage: usage.Masked(mask), Fresh: in.fresh, SessionID: valueOf(in.sessionID)}
	if in.result != nil {
		u.Result = domain.CleanResult(in.result, mask).(map[string]any)
		if u.SessionID == "" {
			u.SessionID = domain.ResultSession(in.result)
		}
		if u.Usage == nil {
			u.Usage = domain.ResultUsage(u.Result)
		}
	}
	u.SessionID = openSession(u.SessionID, mask)
	u.Resumable = u.SessionID != ""
	return a, u, mask, nil
}

// openSession is a session's id, or "" for one that holds a secret: it is not stored, and masked it names nothing.
func openSession(id string, mask func(string) string) string {
	if mask(id) != id {
		return ""
	}
	return id
}

func checkSession(id *string) error {
	if id == nil || domain.SessionIDFits(*id) {
		return nil
	}
	return domain.RefuseField([]string{"sessionId"}, domain.UserErrorCodeInvalid, "must be 1 to %d printable characters", domain.MaxSessionID)
}
