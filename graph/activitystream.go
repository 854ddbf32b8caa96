package graph

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/topic"
	"rouse.dev/rouse/internal/xid"
)

// heldPoll is how soon a topic looks again for entries that wait for an older transaction to end, since nobody signals
// when they may be read.
const heldPoll = 100 * time.Millisecond

// feedTopic names the topic of a workspace's log.
type feedTopic struct{ workspace xid.ID }

type feedLog = topic.Log[reads.ActivityPosition, *ent.Activity]

type feedEntry = topic.Entry[reads.ActivityPosition, *ent.Activity]

// streamActivity follows the log of a workspace that the caller sees. It joins those who watch before it reads the
// head, so that nothing falls between.
func (r *Resolver) streamActivity(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, filter *model.ActivityFilter) (<-chan *model.Activity, error) {
	w, err := visible(r.Reader.Workspace.Get(ctx, workspaceID))
	if err != nil {
		return nil, fmt.Errorf("look for workspace: %w", err)
	}
	if w == nil {
		return nil, &Error{Code: CodeNotFound, Message: "there is no such workspace for this caller"}
	}
	t := topic.Join(ctx, r.topics, feedTopic{workspaceID}, func() *feedLog { return r.feed(workspaceID) })
	at, err := r.activityStart(ctx, workspaceID, after)
	if err != nil {
		return nil, err
	}
	f := t.Follow(at, r.Patience, func(a *ent.Activity) bool { return letsThrough(filter, a) })
	show := func(e *feedEntry) (*model.Activity, error) { return &model.Activity{Activity: e.Item}, nil }
	return followLog(ctx, f, r.Patience, show, func(p reads.ActivityPosition) string {
		return model.CursorText(activityCursor(workspaceID, p))
	}), nil
}

// activityStart is where a stream begins: after the cursor, or at the log's head.
func (r *Resolver) activityStart(ctx context.Context, workspaceID xid.ID, after *ent.Cursor) (reads.ActivityPosition, error) {
	if after == nil {
		return r.Store.ActivityHead(ctx)
	}
	return activityPosition(*after, workspaceID)
}

// feed reads a workspace's log for all who follow it. All entries are read, whatever the filters of those who do.
func (r *Resolver) feed(workspaceID xid.ID) *feedLog {
	read := func(ctx context.Context, at reads.ActivityPosition) (out []*feedEntry, held bool, err error) {
		entries, held, err := r.Store.ActivityAfter(ctx, workspaceID, at, streamBatch)
		for _, a := range entries {
			out = append(out, &feedEntry{Item: a, At: reads.ActivityPosition{Tx: a.Tx, ID: a.ID}})
		}
		return out, held, err
	}
	return topic.NewLog(topic.LogOptions[reads.ActivityPosition, *ent.Activity]{
		Look: func(ctx context.Context) <-chan struct{} { return r.Signals.WatchActivity(ctx, workspaceID) },
		Poll: r.Poll,
		Head: r.Store.ActivityHead,
		Read: func(ctx context.Context, at reads.ActivityPosition) (topic.Page[reads.ActivityPosition, *ent.Activity], error) {
			items, held, err := read(ctx, at)
			page := topic.Page[reads.ActivityPosition, *ent.Activity]{Items: items, More: len(items) == streamBatch}
			if held {
				page.Again = heldPoll
			}
			return page, err
		},
		CatchUp: func(ctx context.Context, at reads.ActivityPosition, upTo *reads.ActivityPosition) ([]*feedEntry, error) {
			items, _, err := read(ctx, at)
			for upTo != nil && len(items) > 0 && !items[len(items)-1].At.UpTo(*upTo) {
				items = items[:len(items)-1]
			}
			return items, err
		},
		Told: told, Failed: r.triesAgain("activity", "workspace_id", workspaceID),
		Weight: func(a *ent.Activity) int { return 500 + len(a.Summary) + len(a.Data) },
		Keep:   topicKeeps, Weigh: topicWeighs,
	})
}
