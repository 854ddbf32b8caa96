package graph

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
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

// runByID reads a run. An agent at work reads its own by this, and no earlier one (SPEC S7.4).
func (r *Resolver) runByID(ctx context.Context, id xid.ID) (*ent.Run, error) {
	if caller, _ := auth.FromContext(ctx); caller.Kind == auth.KindRun && caller.RunID != id {
		return nil, nil
	}
	return r.singles.runs.find(ctx, id, shownColumns(ctx)...)
}

// runOf reads the run of a request. A mutation shows few of them, which other requests' may be read with; a page of a query reads its
// runs together.
func (r *Resolver) runOf(ctx context.Context, id xid.ID) (*ent.Run, error) {
	if l := load(ctx); l.expects || id == "" {
		return linked(ctx, l.runs, id)
	}
	return r.singles.runs.find(ctx, id, shownColumns(ctx)...)
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
