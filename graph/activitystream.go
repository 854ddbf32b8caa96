package graph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// heldPoll is how soon a stream looks again for entries that wait for an older transaction to end.
const heldPoll = 100 * time.Millisecond

// log is a tail of a workspace's log.
type log struct {
	tail
	workspaceID xid.ID
	patience    time.Duration
	batch       int
	filter      *model.ActivityFilter
	read        func(ctx context.Context, after reads.ActivityPosition, limit int) (entries []*ent.Activity, held bool, err error)
}

// streamActivity follows a workspace that the caller sees. It watches before it reads the head, so that nothing falls
// between.
func (r *Resolver) streamActivity(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, filter *model.ActivityFilter) (<-chan *model.Activity, error) {
	w, err := visible(r.Reader.Workspace.Get(ctx, workspaceID))
	if err != nil {
		return nil, fmt.Errorf("look for workspace: %w", err)
	}
	if w == nil {
		return nil, &Error{Code: CodeNotFound, Message: "there is no such workspace for this caller"}
	}
	f := log{tail: tail{look: r.Signals.WatchActivity(ctx, workspaceID), poll: r.Poll, log: r.Log.With("workspace_id", workspaceID)},
		workspaceID: workspaceID, patience: r.Patience, batch: streamBatch, filter: filter}
	f.read = func(ctx context.Context, at reads.ActivityPosition, limit int) ([]*ent.Activity, bool, error) {
		return r.Store.ActivityAfter(ctx, workspaceID, at, limit)
	}
	at, err := r.activityStart(ctx, workspaceID, after)
	if err != nil {
		return nil, err
	}
	return stream(ctx, r, func(ctx context.Context, out chan<- *model.Activity) error { return f.items(ctx, at, out) }), nil
}

// activityStart is where a stream begins: after the cursor, or at the log's head.
func (r *Resolver) activityStart(ctx context.Context, workspaceID xid.ID, after *ent.Cursor) (reads.ActivityPosition, error) {
	if after == nil {
		return r.Store.ActivityHead(ctx)
	}
	return activityPosition(*after, workspaceID)
}

// items sends every entry after a position that the filter lets through, each once and in order. It returns an Error
// SUBSCRIPTION_LAGGED when the reader left one untaken for too long.
func (f *log) items(ctx context.Context, at reads.ActivityPosition, out chan<- *model.Activity) error {
	ticker := time.NewTicker(f.poll)
	defer ticker.Stop()
	for {
		entries, held, err := f.read(ctx, at, f.batch)
		if err == nil {
			at, err = f.send(ctx, at, entries, out)
		}
		switch _, lagged := errors.AsType[*Error](err); {
		case lagged:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			f.log.WarnContext(ctx, "activity not read, the stream tries again", "error", err)
		case len(entries) == f.batch:
			continue
		}
		if !f.rest(ctx, ticker.C, held) {
			return ctx.Err()
		}
	}
}

// send hands entries out; at is the position of the last one that was taken or passed.
func (f *log) send(ctx context.Context, at reads.ActivityPosition, entries []*ent.Activity, out chan<- *model.Activity) (reads.ActivityPosition, error) {
	for _, a := range entries {
		if letsThrough(f.filter, a) {
			if err := hand(ctx, f.patience, &model.Activity{Activity: a}, out, activityCursor(f.workspaceID, at)); err != nil {
				return at, err
			}
		}
		at = reads.ActivityPosition{Tx: a.Tx, ID: a.ID}
	}
	return at, nil
}

// rest waits for the next look; not for long while entries are held back, since nobody signals when they may be read.
func (f *log) rest(ctx context.Context, ticks <-chan time.Time, held bool) bool {
	if !held {
		return f.wait(ctx, ticks)
	}
	timer := time.NewTimer(heldPoll)
	defer timer.Stop()
	return f.wait(ctx, timer.C)
}
