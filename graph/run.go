package graph

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// streamBatch is how many events, and how many log lines, a LOG stream reads at once.
const streamBatch = 200

// ended says whether a run's status is an end.
func ended(s domain.RunStatus) bool {
	return s != domain.RunStatusQueued && s != domain.RunStatusClaimed
}

func shapeFacts(x *ent.Run, activated *time.Time) domain.ShapeFacts {
	return domain.ShapeFacts{
		Status: x.Status, Outcome: valueOf(x.Outcome), EndReason: valueOf(x.EndReason), SessionID: valueOf(x.SessionID),
		RequestedAt: x.RequestedAt, ActivatedAt: activated,
	}
}

// cancelRun cancels a queued run, or asks the owner of a live one to end it, and reads what became of it.
func (r *Resolver) cancelRun(ctx context.Context, in model.CancelRunInput) (*model.CancelRunPayload, error) {
	out := &model.CancelRunPayload{WakeupRequests: noWakeups()}
	x, err := visible(r.Reader.Run.Get(ctx, in.RunID))
	if err != nil {
		return out, fmt.Errorf("look for run: %w", err)
	}
	if x == nil {
		return out, notFound("runId", "run")
	}
	if !plain(valueOf(in.Note)) {
		return out, domain.RefuseField([]string{"note"}, domain.UserErrorCodeInvalid, "must be text without NUL (U+0000)")
	}
	resent, err := r.Store.CancelRun(ctx, x.WorkspaceID, x.ID, valueOf(in.Note))
	if err != nil {
		return out, err
	}
	if out.WakeupRequests, err = r.routed(ctx, resent); err != nil {
		return out, err
	}
	out.Run, err = r.Reader.Run.Get(ctx, x.ID)
	return out, err
}

// retryRun lets a run be tried now, routes what is sent again before it answers, and reads what became of it.
func (r *Resolver) retryRun(ctx context.Context, in model.RetryRunInput) (*model.RetryRunPayload, error) {
	out := &model.RetryRunPayload{WakeupRequests: noWakeups()}
	x, err := visible(r.Reader.Run.Get(ctx, in.RunID))
	if err != nil {
		return out, fmt.Errorf("look for run: %w", err)
	}
	if x == nil {
		return out, notFound("runId", "run")
	}
	once, onceErr := idempotency(in, in.IdempotencyKey)
	if err := joinProblems(checkTexts(in), onceErr); err != nil {
		return out, err
	}
	done, err := r.Store.RetryRun(ctx, store.RetryRun{WorkspaceID: x.WorkspaceID, RunID: x.ID, Note: valueOf(in.Note), Idempotency: once})
	if err != nil {
		return out, err
	}
	out.Replayed = done.Replayed
	if done.RunID != "" {
		out.Run, err = r.Reader.Run.Get(ctx, done.RunID)
		return out, err
	}
	r.route(ctx, done.AgentID)
	if out.WakeupRequests, err = r.wakeups(ctx, done.Requests); err != nil || len(out.WakeupRequests) == 0 {
		return out, err
	}
	if runID := out.WakeupRequests[0].RunID; runID != "" {
		out.Run, err = r.Reader.Run.Get(ctx, runID)
	}
	return out, err
}

// tailOf watches a run that the caller sees. It watches before anything is read, so that no change falls in between.
func (r *Resolver) tailOf(ctx context.Context, runID xid.ID) (tail, error) {
	t := tail{look: r.Signals.WatchRun(ctx, runID), poll: r.Poll, log: r.Log.With("run_id", runID)}
	t.run = func(ctx context.Context) (*ent.Run, error) { return r.Reader.Run.Get(ctx, runID) }
	switch _, err := t.run(ctx); {
	case ent.IsNotFound(err):
		return tail{}, gone()
	case err != nil:
		return tail{}, fmt.Errorf("read run: %w", err)
	}
	return t, nil
}

func (r *Resolver) streamRun(ctx context.Context, runID xid.ID) (<-chan *ent.Run, error) {
	t, err := r.tailOf(ctx, runID)
	if err != nil {
		return nil, err
	}
	return stream(ctx, r, t.states), nil
}

func (r *Resolver) streamEvents(ctx context.Context, runID xid.ID, after *ent.Cursor, includeLogs bool) (<-chan model.RunStreamItem, error) {
	at, err := positionOf(after, runID)
	if err != nil {
		return nil, err
	}
	t, err := r.tailOf(ctx, runID)
	if err != nil {
		return nil, err
	}
	if at, err = r.found(ctx, at); err != nil {
		return nil, fmt.Errorf("find the place of a cursor: %w", err)
	}
	f := feed{tail: t, patience: r.Patience, batch: streamBatch}
	f.events = func(ctx context.Context, seq int64, limit int) ([]reads.RunEvent, error) {
		return r.Store.RunEventsAfter(ctx, runID, seq, limit)
	}
	if includeLogs {
		f.lines = func(ctx context.Context, line reads.LogPosition, limit int) ([]reads.LogRow, error) {
			return r.Store.LogAfter(ctx, runID, line, limit)
		}
	}
	return stream(ctx, r, func(ctx context.Context, out chan<- model.RunStreamItem) error { return f.items(ctx, at, out) }), nil
}

// stream runs a source of items until it ends, and tells the edge why when that is not its proper end. A panic of the
// source ends its stream, not the process.
func stream[T any](ctx context.Context, r *Resolver, source func(context.Context, chan<- T) error) <-chan T {
	out := make(chan T)
	go func() {
		defer close(out)
		defer func() {
			if p := recover(); p != nil {
				r.EndStream(ctx, fmt.Errorf("panic in a stream: %v\n%s", p, debug.Stack()))
			}
		}()
		if err := source(ctx, out); err != nil && ctx.Err() == nil {
			r.EndStream(ctx, err)
		}
	}()
	return out
}
