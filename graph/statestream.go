package graph

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/topic"
	"rouse.dev/rouse/internal/xid"
)

// state is what a state stream sends about a workspace. same says whether only time has passed between two readings.
type state[T any] struct {
	name string
	beat time.Duration
	read func(ctx context.Context, workspaceID xid.ID) (*T, error)
	same func(a, b *T) bool
}

// stateTopic names the topic of a state of a workspace.
type stateTopic struct {
	workspace xid.ID
	name      string
}

// streamState sends a workspace's state at once and then at each change. It is read at each beat, once for all who
// follow it. A read that fails is logged and tried again, because the database may come back (SPEC S8.6). An error that
// is meant for readers ends the stream: the state sent last is not known to hold any more.
func streamState[T any](ctx context.Context, r *Resolver, workspaceID xid.ID, s state[T]) (<-chan *T, error) {
	switch x, err := visible(r.Reader.Workspace.Get(ctx, workspaceID)); {
	case err != nil:
		return nil, fmt.Errorf("look for workspace: %w", err)
	case x == nil:
		return nil, &Error{Code: CodeNotFound, Message: "there is no such workspace"}
	}
	t := topic.Join(ctx, r.topics, stateTopic{workspaceID, s.name}, func() *topic.State[T] {
		return topic.NewState(topic.StateOptions[T]{
			Beat: s.beat, Same: s.same, Told: told, Failed: r.triesAgain(s.name, "workspace_id", workspaceID),
			Read: func(ctx context.Context) (*T, error) { return s.read(asReader(ctx), workspaceID) },
		})
	})
	return followState(ctx, t.Follow()), nil
}
