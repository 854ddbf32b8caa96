package store

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// wakeMutation is the mutation whose keys wakes are remembered by.
const wakeMutation = "wakeAgent"

// waking is one call of Wake.
type waking struct {
	Wake
	caller auth.Principal

	made Made
	err  error // why this wake alone is not made
}

// as is the context of the transaction with the caller of this wake.
func (x *waking) as(ctx context.Context) context.Context { return auth.WithPrincipal(ctx, x.caller) }

// wakeTogether makes wakes in one transaction. Those that fail are found by bisecting.
func (s *Queue) wakeTogether(ctx context.Context, batch []*waking) []error {
	return pgtx.Together(ctx, batch, func(some []*waking) ([]error, error) {
		err := s.inTx(ctx, func(t *tx) error { return t.wakeAll(ctx, some) })
		results := make([]error, len(some))
		for i, x := range some {
			results[i] = x.err
		}
		return results, err
	})
}

// wakeAll makes wakes, and routes those whose lanes nobody holds: it waits for no lane, so that it may lock them after the
// requests. What a person can mend is told to that caller alone, and nothing of it is kept.
func (t *tx) wakeAll(ctx context.Context, batch []*waking) error {
	fresh, err := t.claimWakeKeys(ctx, batch)
	if err != nil || len(fresh) == 0 {
		return err
	}
	var agents []xid.ID
	for _, x := range fresh {
		if err := t.wakeOne(x.as(ctx), x); err != nil {
			return err
		}
		if x.err == nil {
			agents = append(agents, x.AgentID)
		}
	}
	if len(agents) == 0 {
		return nil
	}
	locked, err := t.lockToRoute(ctx, false, pgtx.Distinct(agents)) // runs are no older than their requests
	if err != nil {
		return err
	}
	routed, err := t.routeHere(ctx, locked)
	for _, x := range fresh {
		x.made.Routed = routed && slices.Contains(locked, x.AgentID)
	}
	return err
}

// claimWakeKeys takes the keys of wakes, in their order, and returns the wakes that are to be made. A second one with a key of
// the same transaction is left out: it finds the first one's result later.
func (t *tx) claimWakeKeys(ctx context.Context, batch []*waking) (fresh []*waking, err error) {
	ordered := slices.Clone(batch)
	slices.SortStableFunc(ordered, func(a, b *waking) int {
		return cmp.Or(cmp.Compare(a.WorkspaceID, b.WorkspaceID), cmp.Compare(a.Key, b.Key))
	})
	var before *waking
	for _, x := range ordered {
		x.made, x.err = Made{}, nil
		if x.Key != "" && before != nil && before.Key == x.Key && before.WorkspaceID == x.WorkspaceID {
			x.err = errHeld
			continue
		}
		before = x
		earlier, err := t.claimKey(x.as(ctx), x.WorkspaceID, wakeMutation, x.Idempotency)
		switch {
		case isRefusal(err):
			x.err = err
		case err != nil:
			return nil, err
		case earlier != "":
			x.made = Made{ID: earlier, Replayed: true}
		default:
			fresh = append(fresh, x)
		}
	}
	return fresh, nil
}

// wakeOne makes a wake whose key is taken. It refuses before it writes, so that only the key has to be undone.
func (t *tx) wakeOne(ctx context.Context, x *waking) (err error) {
	x.made, err = t.wake(ctx, x.Wake)
	if isRefusal(err) {
		x.err = err
		return t.forgetKey(ctx, x.WorkspaceID, wakeMutation, x.Idempotency)
	}
	if err != nil {
		return err
	}
	return t.keepResult(ctx, x.WorkspaceID, wakeMutation, x.Idempotency, x.made.ID)
}

// isRefusal says that a call was refused for what its caller can mend.
func isRefusal(err error) bool {
	_, is := errors.AsType[*domain.UserError](err)
	return is
}
