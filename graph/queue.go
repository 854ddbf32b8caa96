package graph

import (
	"context"
	"reflect"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// statsBeat is how often a stream of queue numbers looks, and so the most often that it sends.
const statsBeat = time.Second

// blockers are the runs or the tasks that hold something back, in the order given. Those that are gone by now are left
// out.
func blockers(ctx context.Context, ids []string) ([]ent.Noder, error) {
	keys := make([]xid.ID, len(ids))
	for i, id := range ids {
		keys[i] = xid.ID(id)
	}
	if len(keys) > 0 && keys[0].Prefix() == "tsk" {
		return loadNodes(ctx, load(ctx).tasks, keys)
	}
	return loadNodes(ctx, load(ctx).runs, keys)
}

// loadNodes loads records of one kind; those that are not there are left out.
func loadNodes[T any, P interface {
	*T
	ent.Noder
}](ctx context.Context, l loader[P], keys []xid.ID) ([]ent.Noder, error) {
	list := make([]ent.Noder, 0, len(keys))
	rows, err := l.LoadAll(ctx, keys)
	for _, row := range rows {
		if row != nil {
			list = append(list, row)
		}
	}
	return list, err
}

// runWaits says whether a run may wait for something.
func runWaits(x *ent.Run) bool { return x.Status == domain.RunStatusQueued }

// requestWaits says whether a request may wait for something: also one that was skipped for a task's lock, which is sent
// again.
func requestWaits(x *ent.WakeupRequest) bool {
	held := x.Status == domain.WakeupStatusSkipped && valueOf(x.EndReason) == domain.EndReasonCheckoutHeld
	return x.Status == domain.WakeupStatusQueued || held
}

// waitingOfMerged is why the run waits that a request was merged into; nil when that has begun.
func waitingOfMerged(ctx context.Context, x *ent.WakeupRequest) (*domain.Waiting, error) {
	into, err := linked(ctx, load(ctx).runs, x.RunID)
	if err != nil || into == nil || !runWaits(into) {
		return nil, err
	}
	return load(ctx).waiting.Load(ctx, into.ID)
}

// waitingOf reads why the runs of one level of a response wait.
func (r *Resolver) waitingOf(ctx context.Context, ids []xid.ID) (map[xid.ID]*domain.Waiting, error) {
	return pointers(r.Store.WaitingNow(ctx, ids, nil))
}

func (r *Resolver) waitingOfRequests(ctx context.Context, ids []xid.ID) (map[xid.ID]*domain.Waiting, error) {
	return pointers(r.Store.WaitingNow(ctx, nil, ids))
}

func pointers(found map[xid.ID]domain.Waiting, err error) (map[xid.ID]*domain.Waiting, error) {
	out := make(map[xid.ID]*domain.Waiting, len(found))
	for id, w := range found {
		out[id] = &w
	}
	return out, err
}

// queueStats reads the numbers of a workspace's queue.
func (r *Resolver) queueStats(ctx context.Context, workspaceID xid.ID) (*model.QueueStats, error) {
	q, err := r.Store.QueueStats(ctx, workspaceID)
	if err != nil {
		return nil, err
	}
	return &model.QueueStats{
		Claimable: q.Claimable, Held: q.Held, Retrying: q.Retrying, Claimed: q.Claimed, FinishedLastHour: q.FinishedLastHour,
		FailedLastHour: q.FailedLastHour, OldestClaimableAge: q.OldestClaimableAge, WaitP50: q.WaitP50, WaitP99: q.WaitP99, At: q.At,
	}, nil
}

// streamStats sends a workspace's numbers at once and then at each change.
func (r *Resolver) streamStats(ctx context.Context, workspaceID xid.ID) (<-chan *model.QueueStats, error) {
	return streamState(ctx, r, workspaceID, state[model.QueueStats]{"queue numbers", statsBeat, r.queueStats, sameStats})
}

// sameStats says whether only time has passed between two readings.
func sameStats(a, b *model.QueueStats) bool {
	if (a.OldestClaimableAge == nil) != (b.OldestClaimableAge == nil) {
		return false
	}
	x, y := *a, *b
	x.At, y.At, x.OldestClaimableAge, y.OldestClaimableAge = time.Time{}, time.Time{}, nil, nil
	return reflect.DeepEqual(x, y)
}
