package store

import (
	"cmp"
	"context"
	"database/sql"
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

	made    Made
	err     error // why this wake alone is not made
	request *newRequest
}

// as is the context of the transaction with the caller of this wake.
func (x *waking) as(ctx context.Context) context.Context { return auth.WithPrincipal(ctx, x.caller) }

// wakeTogether makes wakes in one transaction. Those that fail are found by bisecting.
func (s *Queue) wakeTogether(ctx context.Context, batch []*waking) []error {
	return pgtx.Together(ctx, batch, func(some []*waking) ([]error, error) {
		err := s.routingTx(ctx, func(t *tx) error { return t.wakeAll(ctx, some) })
		results := make([]error, len(some))
		for i, x := range some {
			results[i] = x.err
		}
		return results, err
	})
}

// wakeAll makes wakes, and routes those whose lanes nobody holds: it waits for no lane. What a person can mend is told to that
// caller alone, and nothing of it is kept.
func (t *tx) wakeAll(ctx context.Context, batch []*waking) error {
	fresh, err := t.claimWakeKeys(ctx, batch)
	if err != nil || len(fresh) == 0 {
		return err
	}
	if t.routes {
		if _, err := t.lockToRoute(ctx, false, pgtx.Distinct(wokenBy(fresh))); err != nil {
			return err
		}
	}
	agents, err := t.readRecipients(ctx, pgtx.Distinct(wokenBy(fresh)), domain.MaxBacklog+1)
	if err != nil {
		return err
	}
	if fresh, err = t.refuseWakes(ctx, fresh, agents); err != nil {
		return err
	}
	requests := make([]*newRequest, len(fresh))
	for i, x := range fresh {
		x.asRequest(ctx)
		requests[i] = x.request
	}
	if err := t.sendTo(ctx, requests, agents); err != nil {
		return err
	}
	return t.answerWakes(ctx, fresh)
}

func wokenBy(batch []*waking) []xid.ID {
	agents := make([]xid.ID, len(batch))
	for i, x := range batch {
		agents[i] = x.AgentID
	}
	return agents
}

// claimWakeKeys takes the keys of wakes, in their order, and returns the wakes that are to be made. A second one with a key of
// the same transaction is left out: it finds the first one's result later.
func (t *tx) claimWakeKeys(ctx context.Context, batch []*waking) (fresh []*waking, err error) {
	ordered := slices.Clone(batch)
	slices.SortStableFunc(ordered, func(a, b *waking) int {
		return cmp.Or(cmp.Compare(a.WorkspaceID, b.WorkspaceID), cmp.Compare(a.Key, b.Key))
	})
	var keyed []*waking
	var keys []keyClaim
	for _, x := range ordered {
		x.made, x.err, x.request = Made{}, x.Idempotency.check(), &newRequest{id: xid.New("wkp")}
		switch last := len(keyed) - 1; {
		case x.err != nil:
		case x.Key == "":
			fresh = append(fresh, x)
		case last >= 0 && keyed[last].Key == x.Key && keyed[last].WorkspaceID == x.WorkspaceID:
			x.err = errHeld
		default:
			keyed, keys = append(keyed, x), append(keys, keyClaim{x.as(ctx), x.WorkspaceID, x.Idempotency, x.request.id})
		}
	}
	if len(keys) == 0 {
		return fresh, nil
	}
	taken, err := t.claimKeys(ctx, wakeMutation, keys)
	if err != nil {
		return nil, err
	}
	for i, x := range keyed {
		if taken[i] {
			fresh = append(fresh, x)
			continue
		}
		x.made.Replayed = true
		x.made.ID, x.err = t.earlierResult(x.as(ctx), keyOwner(x.as(ctx), x.WorkspaceID), wakeMutation, x.Idempotency)
		if x.err != nil && !isRefusal(x.err) {
			return nil, x.err
		}
	}
	return fresh, nil
}

// refuseWakes leaves out the wakes whose agent is not there, or has a full backlog (SPEC S3.10), and gives their keys back.
func (t *tx) refuseWakes(ctx context.Context, batch []*waking, agents map[xid.ID]recipient) (accepted []*waking, err error) {
	for _, x := range batch {
		if x.err = x.refusal(agents); x.err == nil {
			accepted = append(accepted, x)
		} else if err := t.forgetKey(x.as(ctx), x.WorkspaceID, wakeMutation, x.Idempotency); err != nil {
			return nil, err
		}
	}
	return accepted, nil
}

func (x *waking) refusal(agents map[xid.ID]recipient) error {
	to, there := agents[x.AgentID]
	if !there || to.workspaceID != x.WorkspaceID {
		return pgtx.NotFound(sql.ErrNoRows, []string{"agentId"}, "agent", x.AgentID)
	}
	if domain.Backlog(to.queued, domain.WakeCauseWakeAgent) != domain.BacklogAccept {
		return domain.AsUserError([]domain.FieldError{domain.BacklogFull(to.queued)})
	}
	return nil
}

// answerWakes says of each wake which request it is, and whether that has its run. A request that was there before is the key's answer,
// too.
func (t *tx) answerWakes(ctx context.Context, batch []*waking) error {
	for _, x := range batch {
		if x.made = (Made{ID: x.request.id, Routed: x.request.runID != ""}); x.request.earlier == "" {
			continue
		}
		x.made = Made{ID: x.request.earlier, Replayed: true}
		if err := t.keepResult(x.as(ctx), x.WorkspaceID, wakeMutation, x.Idempotency, x.made.ID); err != nil {
			return err
		}
	}
	return nil
}
