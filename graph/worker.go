package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Launches opens what a launch seals.
type Launches interface {
	// Environment is what the agent of a launch is given, in plain text. Its error names the variable and holds no secret.
	Environment(l *store.Launch) ([]*model.EnvironmentVariable, error)
	// Mask hides sealed values in a text.
	Mask(sets []domain.SealedSet) func(string) string
}

// Bounds of what workers send, and of how long they wait.
const (
	acquireAgentsMax = 100
	linesMax         = 500
	progressBytesMax = 16 << 10
	messageBytesMax  = 8 << 10
	unreadBytesMax   = 1 << 10
	answerReserve    = 3 * time.Second // of the mutation's time that is left for the answer
)

// acquire waits for a run of the queue and leases it to the caller; nil when none came in time.
func (r *Resolver) acquire(ctx context.Context, in model.AcquireRunInput) (*model.RunLease, error) {
	if err := r.checkAcquire(ctx, in); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	offers := r.Signals.WatchOffers(ctx, in.WorkspaceID) // before the first look, so that no offer falls in between
	defer r.Store.AwaitOffers(in.WorkspaceID, in.Queue)()
	patience := time.NewTimer(patienceOf(ctx, in.WaitUpTo))
	defer patience.Stop()
	poll := time.NewTicker(r.Poll)
	defer poll.Stop()
	for {
		lease, err := r.acquireNow(ctx, in)
		if err != nil || lease != nil {
			return lease, err
		}
		select {
		case <-offers:
		case <-poll.C:
		case <-patience.C:
			return nil, nil
		case <-r.Leaving:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *Resolver) checkAcquire(ctx context.Context, in model.AcquireRunInput) error {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return err
	}
	p := &report{}
	checkQueue(p, in.Queue, []string{"queue"})
	if len(in.AgentIds) > acquireAgentsMax {
		p.add([]string{"agentIds"}, domain.UserErrorCodeTooLong, "must be at most %d agents; leave it out for all", acquireAgentsMax)
	}
	if key := in.IdempotencyKey; key != nil && (*key == "" || len([]rune(*key)) > keyMax || !plain(*key)) {
		p.add([]string{"idempotencyKey"}, domain.UserErrorCodeInvalid, "must be 1..%d characters without NUL (U+0000); leave it out to have none", keyMax)
	}
	if in.WaitUpTo != nil {
		p.duration([]string{"waitUpTo"}, *in.WaitUpTo, 0, domain.MaxAcquireWait)
	}
	return domain.AsUserError(p.problems)
}

// patienceOf is how long to wait: what was asked for, or what the operation's time leaves.
func patienceOf(ctx context.Context, asked *time.Duration) time.Duration {
	wait := valueOf(asked)
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)-answerReserve)
	}
	return max(wait, 0)
}

// acquireNow takes a run that is offered. One whose environment cannot be opened fails, and the next is looked at; one
// whose worker has gone meanwhile is handed back.
func (r *Resolver) acquireNow(ctx context.Context, in model.AcquireRunInput) (*model.RunLease, error) {
	for {
		lease, err := r.Store.Acquire(ctx, store.Acquire{WorkspaceID: in.WorkspaceID, Queue: in.Queue, Agents: in.AgentIds, Key: valueOf(in.IdempotencyKey)})
		if err != nil || lease == nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), r.Store.HandBack(context.WithoutCancel(ctx), lease.Attempt, store.Unfinished{}))
		}
		environment, err := r.Launches.Environment(lease.Launch)
		if err == nil {
			return r.showLease(ctx, lease, environment)
		}
		failure := store.Failure{Code: domain.RunErrorCodeLaunch, Message: err.Error(), Permanent: true}
		if err := r.Store.Fail(ctx, lease.Attempt, failure); err != nil {
			return nil, err
		}
	}
}

func (r *Resolver) showLease(ctx context.Context, lease *store.Lease, environment []*model.EnvironmentVariable) (*model.RunLease, error) {
	run, err := r.Reader.Run.Get(ctx, lease.RunID)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	out := &model.RunLease{Run: run, Attempt: lease.Number, LeaseToken: lease.Token.Reveal(), ExpiresAt: lease.Until, Duration: lease.Executor.Pull.Lease,
		Prompt: lease.Prompt, Environment: environment}
	if c := lease.Executor.Pull.Command; c != nil {
		out.Command = commandOf(c)
	}
	if lease.ResumeSessionID != "" {
		out.ResumeSessionID, out.FullPrompt = &lease.ResumeSessionID, &lease.FullPrompt
	}
	return out, nil
}

// reported is an attempt that the caller proved to be its own.
type reported struct {
	store.Attempt
	run *ent.Run
}

// attemptOf finds the live attempt that a lease stands for. A run token stands for its own attempt alone.
func (r *Resolver) attemptOf(ctx context.Context, in *model.RunLeaseInput) (reported, error) {
	run, err := visible(r.Reader.Run.Get(ctx, in.RunID))
	if err != nil {
		return reported{}, fmt.Errorf("look for run: %w", err)
	}
	if run == nil {
		return reported{}, domain.RefuseField([]string{"lease", "runId"}, domain.UserErrorCodeNotFound, "there is no such run in this workspace")
	}
	caller, _ := auth.FromContext(ctx)
	token, err := auth.ParseToken(in.LeaseToken)
	if err != nil || caller.Kind == auth.KindRun && (caller.RunID != run.ID || caller.Attempt != in.Attempt) {
		return reported{}, staleLease()
	}
	a, err := r.Store.LeasedAttempt(ctx, run.ID, in.Attempt, token.Digest().String())
	return reported{a, run}, fenced(err)
}

func staleLease() error {
	return domain.RefuseField([]string{"lease"}, domain.UserErrorCodeStaleLease,
		"this lease does not stand any more: the attempt has ended, or another one owns the run; end the agent and acquire another run")
}

// fenced tells a reporter that its attempt is over.
func fenced(err error) error {
	if errors.Is(err, store.ErrFenced) {
		return staleLease()
	}
	return err
}

// maskOf hides in what is reported about a run the secrets that its agent was launched with, those of its executor as it is set now, and
// whatever looks like a token of ours.
func (r *Resolver) maskOf(ctx context.Context, runID xid.ID) (func(string) string, error) {
	sets, err := r.Store.SecretsOf(ctx, runID)
	if err != nil {
		return nil, err
	}
	values := r.Launches.Mask(sets)
	return func(text string) string { return ownTokens.ReplaceAllString(values(text), "***") }, nil
}

// agentMask hides in what an agent writes by its run's token what is hidden in its output and its result (SPEC S7.6). What
// others write stays as it is.
func (r *Resolver) agentMask(ctx context.Context) (func(string) string, error) {
	caller, _ := auth.FromContext(ctx)
	if caller.Kind != auth.KindRun {
		return func(text string) string { return text }, nil
	}
	return r.maskOf(ctx, caller.RunID)
}

// ownTokens are API, run and lease tokens.
var ownTokens = regexp.MustCompile(`\brs[erl]_[0-9A-Za-z_-]{43,86}`)

func (r *Resolver) reportStarted(ctx context.Context, in model.ReportRunStartedInput) (*ent.Run, error) {
	if !domain.SessionIDFits(in.SessionID) {
		return nil, domain.RefuseField([]string{"sessionId"}, domain.UserErrorCodeInvalid, "must be 1 to %d printable characters", domain.MaxSessionID)
	}
	a, err := r.attemptOf(ctx, in.Lease)
	if err != nil {
		return nil, err
	}
	mask, err := r.maskOf(ctx, a.run.ID)
	if err != nil {
		return nil, err
	}
	if mask(in.SessionID) != in.SessionID {
		return nil, domain.RefuseField([]string{"sessionId"}, domain.UserErrorCodeInvalid, "holds a secret of the executor, which would be stored and shown: name the session by another id")
	}
	if err := r.Store.RecordSession(ctx, a.Attempt, in.SessionID); err != nil {
		if !errors.Is(err, store.ErrFenced) { // the launch goes on without it, and nobody tries again
			r.Store.SessionNotStored(a.run.WorkspaceID)
			r.Log.WarnContext(ctx, "a session could not be recorded", "run_id", a.RunID, "attempt", a.Number, "agent_id", a.run.AgentID,
				"workspace_id", a.run.WorkspaceID, "causation_id", a.run.CausationID, "session_id", in.SessionID, "error", err)
		}
		return nil, fenced(err)
	}
	return r.Reader.Run.Get(ctx, a.RunID)
}

func (r *Resolver) reportHeartbeat(ctx context.Context, in model.ReportRunHeartbeatInput) (store.AttemptState, error) {
	a, err := r.attemptOf(ctx, in.Lease)
	if err != nil {
		return store.AttemptState{}, err
	}
	state, err := r.Store.Renew(ctx, a.Attempt)
	return state, fenced(err)
}

// reportProgress stores lines and details, and returns the number of the newest stored line.
func (r *Resolver) reportProgress(ctx context.Context, in model.ReportRunProgressInput) (*int, error) {
	p := &report{}
	if in.FirstSequence < 1 || in.FirstSequence > 1<<31 {
		p.add([]string{"firstSequence"}, domain.UserErrorCodeOutOfRange, "lines are numbered from 1")
	}
	if len(in.Lines) > linesMax {
		p.add([]string{"lines"}, domain.UserErrorCodeTooLong, "must be at most %d lines; send the rest with the next call", linesMax)
	}
	details, err := json.Marshal(in.Progress)
	if err != nil || len(details) > progressBytesMax {
		p.add([]string{"progress"}, domain.UserErrorCodeTooLong, "must be at most %d KiB", progressBytesMax>>10)
	}
	if err := domain.AsUserError(p.problems); err != nil {
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
	var step map[string]any
	if in.Progress != nil {
		step = domain.CleanResult(in.Progress, mask).(map[string]any)
	}
	newest, err := r.Store.ReportProgress(ctx, a.Attempt, step, int64(in.FirstSequence), linesOf(in.Lines, mask))
	return new(int(newest)), fenced(err)
}

func linesOf(lines []*model.RunLogLineInput, mask func(string) string) []store.LogLine {
	now := time.Now().UTC()
	out := make([]store.LogLine, len(lines))
	for i, line := range lines {
		out[i] = store.LogLine{Stream: line.Stream, Text: domain.LogLineText(mask(line.Text)), At: now}
		if line.At != nil && line.At.Before(now) {
			out[i].At = *line.At
		}
	}
	return out
}

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

// endWell ends an attempt that its worker calls a success. A result that reports an error as its outcome is none, whoever
// brings it.
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

var decimalCost = regexp.MustCompile(`^\d{1,9}(\.\d{1,6})?$`)

// usageOf reads what a worker says of its use; nil when it says nothing.
func usageOf(in *model.RunUsageInput) (*store.Usage, error) {
	if in == nil {
		return nil, nil
	}
	p := &report{}
	for _, of := range []struct {
		name string
		n    int
	}{{"inputTokens", in.InputTokens}, {"outputTokens", in.OutputTokens}} {
		if of.n < 0 { // and at most MaxTokens, as any Int
			p.add([]string{"usage", of.name}, domain.UserErrorCodeOutOfRange, "must be from 0 to %d", domain.MaxTokens)
		}
	}
	if !decimalCost.MatchString(in.CostUsd) {
		p.add([]string{"usage", "costUsd"}, domain.UserErrorCodeInvalid, "must be a decimal of at least 0 with at most six decimals, e.g. \"0.25\"")
	}
	if len(valueOf(in.Unread)) > unreadBytesMax {
		p.add([]string{"usage", "unread"}, domain.UserErrorCodeTooLong, "must be at most %d bytes", unreadBytesMax)
	}
	usage := &store.Usage{InputTokens: int64(in.InputTokens), OutputTokens: int64(in.OutputTokens), CostUSD: in.CostUsd, CostUnread: in.CostUnread, Unread: valueOf(in.Unread)}
	if in.CostUnread {
		usage.CostUSD = ""
	}
	return usage, domain.AsUserError(p.problems)
}
