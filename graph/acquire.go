package graph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// Bounds of a worker's call for a run.
const (
	acquireAgentsMax = 100
	answerReserve    = 3 * time.Second // of the mutation's time that is left for the answer
)

// acquire waits for a run of the queue and leases it to the caller; nil when none came in time.
func (r *Resolver) acquire(ctx context.Context, in model.AcquireRunInput) (*model.AcquireRunPayload, error) {
	none := &model.AcquireRunPayload{}
	if err := r.checkAcquire(ctx, in); err != nil {
		return none, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	offers := r.Signals.WatchOffers(ctx, in.WorkspaceID) // before the first look, so that no offer falls in between
	defer r.Store.AwaitOffers(in.WorkspaceID, in.Queue)()
	if err := r.Store.WorkerAsks(ctx, in.WorkspaceID, in.Queue, workerOf(in.Worker)); err != nil {
		return none, err
	}
	patience := time.NewTimer(patienceOf(ctx, in.WaitUpTo))
	defer patience.Stop()
	poll := time.NewTicker(r.Poll)
	defer poll.Stop()
	for {
		taken, err := r.acquireNow(ctx, in)
		if err != nil {
			return none, err
		}
		if taken != nil {
			return taken, nil
		}
		select {
		case <-offers:
		case <-poll.C:
		case <-patience.C:
			return none, nil
		case <-r.Leaving:
			return none, nil
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

func (r *Resolver) checkAcquire(ctx context.Context, in model.AcquireRunInput) error {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return err
	}
	p := &inputProblems{}
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
	checkWorkerInfo(p, in.Worker)
	return domain.AsUserError(p.list)
}

// Most characters of what a worker says of itself.
const (
	workerNameMax    = 200
	workerVersionMax = 64
)

func checkWorkerInfo(p *inputProblems, w *model.WorkerInfoInput) {
	if w == nil {
		return
	}
	for _, x := range []struct {
		field string
		text  *string
		most  int
	}{{"name", w.Name, workerNameMax}, {"host", w.Host, workerNameMax}, {"version", w.Version, workerVersionMax}} {
		if text := valueOf(x.text); len([]rune(text)) > x.most || !plain(text) {
			p.add([]string{"worker", x.field}, domain.UserErrorCodeInvalid, "must be at most %d characters without NUL (U+0000); leave it out to say nothing", x.most)
		}
	}
}

// workerOf is what a worker says of itself; nothing of one that says nothing.
func workerOf(w *model.WorkerInfoInput) store.Worker {
	if w == nil {
		return store.Worker{}
	}
	return store.Worker{Name: valueOf(w.Name), Host: valueOf(w.Host), Version: valueOf(w.Version)}
}

// patienceOf is how long to wait: as long as was asked for, or as the operation's time allows.
func patienceOf(ctx context.Context, asked *time.Duration) time.Duration {
	wait := valueOf(asked)
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)-answerReserve)
	}
	return max(wait, 0)
}

// acquireNow takes a run that is offered. A run whose environment cannot be opened fails, and the next one is tried. A
// run whose worker has gone by then is handed back.
func (r *Resolver) acquireNow(ctx context.Context, in model.AcquireRunInput) (*model.AcquireRunPayload, error) {
	for {
		lease, err := r.Store.Acquire(ctx, store.Acquire{WorkspaceID: in.WorkspaceID, Queue: in.Queue, Agents: in.AgentIds, Key: valueOf(in.IdempotencyKey), Worker: workerOf(in.Worker)})
		if err != nil || lease == nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), r.Store.HandBack(context.WithoutCancel(ctx), lease.Attempt, store.Unfinished{}))
		}
		environment, err := r.Launches.Environment(lease.Launch)
		if err == nil {
			shown, err := r.showLease(ctx, lease, environment)
			return &model.AcquireRunPayload{Lease: shown, Replayed: lease.Again}, err
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
	out.Checkout = checkoutShown(lease.Executor.Checkout())
	if lease.TaskID != "" {
		out.TaskID = &lease.TaskID
	}
	if lease.ResumeSessionID != "" {
		out.ResumeSessionID, out.FullPrompt = &lease.ResumeSessionID, &lease.FullPrompt
	}
	return out, nil
}
