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
	fresh, err = t.refuseWakes(ctx, fresh)
	if err != nil {
		return err
	}
	requests := make([]*newRequest, len(fresh))
	for i, x := range fresh {
		x.asRequest(ctx)
		requests[i] = x.request
	}
	if err := t.send(ctx, requests); err != nil {
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
func (t *tx) refuseWakes(ctx context.Context, batch []*waking) (accepted []*waking, err error) {
	queued, err := t.readBacklogs(ctx, batch)
	if err != nil {
		return nil, err
	}
	for _, x := range batch {
		if x.err = x.refusal(queued); x.err == nil {
			accepted = append(accepted, x)
		} else if err := t.forgetKey(x.as(ctx), x.WorkspaceID, wakeMutation, x.Idempotency); err != nil {
			return nil, err
		}
	}
	return accepted, nil
}

// agentOf is an agent in the workspace in which it is looked for.
type agentOf struct{ workspaceID, agentID xid.ID }

func (x *waking) refusal(queued map[agentOf]int) error {
	n, there := queued[agentOf{x.WorkspaceID, x.AgentID}]
	if !there {
		return pgtx.NotFound(sql.ErrNoRows, []string{"agentId"}, "agent", x.AgentID)
	}
	if domain.Backlog(n, domain.WakeCauseWakeAgent) != domain.BacklogAccept {
		return domain.AsUserError([]domain.FieldError{domain.BacklogFull(n)})
	}
	return nil
}

// readBacklogs reads how many runs the agents of wakes have queued, up to the bound. An agent that is not in its workspace, or was
// deleted, is left out.
func (t *tx) readBacklogs(ctx context.Context, batch []*waking) (map[agentOf]int, error) {
	const query = `
SELECT workspace_id, id, (
  SELECT count(*)
  FROM (SELECT 1 FROM runs WHERE agent_id = a.id AND status = 'QUEUED' LIMIT $2) AS queued)
FROM agents a
WHERE id = ANY($1) AND deleted_at IS NULL`
	queued := map[agentOf]int{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
		var of agentOf
		var n int
		err = rows.Scan(&of.workspaceID, &of.agentID, &n)
		queued[of] = n
		return struct{}{}, err
	}, query, pgtx.IDs(pgtx.Distinct(wokenBy(batch))), domain.MaxBacklog+1)
	return queued, pgtx.Wrap("read the backlogs of agents", err)
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
