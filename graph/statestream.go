package graph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/xid"
)

// state is what a state stream sends about a workspace. same says whether only time has passed between two readings.
type state[T any] struct {
	name string
	beat time.Duration
	read func(ctx context.Context, workspaceID xid.ID) (*T, error)
	same func(a, b *T) bool
}

// streamState sends a workspace's state at once and then, looking at each beat, at each change.
func streamState[T any](ctx context.Context, r *Resolver, workspaceID xid.ID, s state[T]) (<-chan *T, error) {
	switch x, err := visible(r.Reader.Workspace.Get(ctx, workspaceID)); {
	case err != nil:
		return nil, fmt.Errorf("look for workspace: %w", err)
	case x == nil:
		return nil, &Error{Code: CodeNotFound, Message: "there is no such workspace"}
	}
	return stream(ctx, r, func(ctx context.Context, out chan<- *T) error {
		ticker := time.NewTicker(s.beat)
		defer ticker.Stop()
		return s.send(ctx, r, workspaceID, ticker.C, out)
	}), nil
}

// send looks at each beat and sends what is new; of several changes that the reader did not take in time, the newest. A
// read that fails is logged and tried again, because the database may come back (SPEC S8.6). An error that is meant for
// the reader ends the stream.
func (s state[T]) send(ctx context.Context, r *Resolver, workspaceID xid.ID, beats <-chan time.Time, out chan<- *T) error {
	var sent, fresh *T // fresh: not taken yet
	for {
		now, err := s.read(ctx, workspaceID)
		if told, ok := errors.AsType[*Error](err); ok { // the reader must know: the state sent last is not known to hold any more
			return told
		}
		if err != nil && ctx.Err() == nil {
			r.Log.WarnContext(ctx, s.name+" not read, the stream tries again", "workspace_id", workspaceID, "error", err)
		}
		if err == nil {
			if fresh = now; s.same(sent, now) {
				fresh = nil
			}
		}
		if sent, err = s.wait(ctx, beats, out, sent, fresh); err != nil {
			return err
		}
	}
}

// wait hands out what is fresh, unless that is nil, until the next beat. It returns what was sent last.
func (s state[T]) wait(ctx context.Context, beats <-chan time.Time, out chan<- *T, sent, fresh *T) (*T, error) {
	if fresh == nil {
		out = nil
	}
	for {
		select {
		case out <- fresh:
			sent, out = fresh, nil
		case <-beats:
			return sent, nil
		case <-ctx.Done():
			return sent, ctx.Err()
		}
	}
}
