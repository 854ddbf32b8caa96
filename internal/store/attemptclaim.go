package store

import (
	"context"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Claim takes up to max due runs of agents with a free session, oldest first, settles what a guard refuses, and leases
// the rest to owner (SPEC S6.1, S6.2). It starts them too: each comes with its Launch, and its requests have their receipts
// (SPEC S3.6). A run without a Launch has no executor, or its prompt could not be assembled: Start says why, and deals with it.
//
// Fewer than max may come although more are due: call it again until none comes. None means that nothing is due: a lane that
// is only locked is looked at again, and in the end waited for. Runs that workers execute are offered to their queue, and are
// not among those that come (SPEC S7.1). A lane that fails does not stop the others. The error joins all lanes that failed,
// and what came is claimed, unless CutShort says otherwise. Heads that guards refuse are few in one call: when a pass has
// settled its share, it goes past the lanes of others. What held agents have queued is ended when nothing else is to be
// claimed, a bounded part in each call.
func (s *Attempts) Claim(ctx context.Context, owner Owner, max int, lease time.Duration) ([]Claimed, error) {
	return s.claimNext(ctx, claimOrder{owner: owner, limit: max, lease: lease, launch: claimStarting})
}

// ClaimInto is Claim for as many runs as the owner has room for when the claim's transaction has begun. Runs that ended in one
// transaction leave their room one after the other, and a claim for the first of them would take no more than its one run.
func (s *Attempts) ClaimInto(ctx context.Context, owner Owner, room func() int, lease time.Duration) ([]Claimed, error) {
	return s.claimNext(ctx, claimOrder{owner: owner, limit: claimBatch, room: room, lease: lease, launch: claimStarting})
}

// claimStarting claims runs of locked lanes and starts those that this process executes, in one statement. It takes the first
// ones, as many as there is room for their prompts. Those that nobody said how to execute, or that are for workers, are claimed
// without a start.
func claimStarting(ctx context.Context, c *claimer, runs []runRow) ([]Claimed, error) {
	starts, err := c.executable(ctx, runs)
	if err != nil {
		return nil, err
	}
	prepared, err := c.prepare(ctx, starts, c.room)
	if err != nil {
		return nil, err
	}
	if len(prepared) < len(starts) {
		cut := starts[len(prepared)].RunID
		runs = runs[:slices.IndexFunc(runs, func(r runRow) bool { return r.id == cut })]
	}
	launched, err := c.claimPrepared(ctx, prepared)
	if err != nil {
		return nil, err
	}
	taken, err := c.takeAll(ctx, slices.DeleteFunc(slices.Clone(runs), func(r runRow) bool { return launched[r.id] != nil }))
	if err != nil {
		return nil, err
	}
	return inOrderOf(runs, launched, taken), nil
}

// executable are the runs that this process executes, as they are when they start.
func (c *claimer) executable(ctx context.Context, runs []runRow) ([]*starting, error) {
	var starts []*starting
	for _, run := range runs {
		if run.queue == "" {
			run.status, run.sessionID = domain.RunStatusClaimed, nil
			run.attempt++
			starts = append(starts, &starting{Attempt: Attempt{RunID: run.id, Number: run.attempt, Owner: c.owner.ID}, run: run, fresh: true})
		}
	}
	if len(starts) == 0 {
		return nil, nil
	}
	if err := c.readAgents(ctx, starts); err != nil {
		return nil, err
	}
	if err := c.readExecutors(ctx, starts); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(starts, func(x *starting) bool { return x.spec == nil || x.spec.Queue() != "" }), nil
}

// claimPrepared claims runs whose prompts are assembled, and starts them.
func (c *claimer) claimPrepared(ctx context.Context, starts []*starting) (map[xid.ID]*Claimed, error) {
	if len(starts) == 0 {
		return nil, nil
	}
	if err := c.writeStarts(ctx, starts, hold{owner: c.owner, until: c.Now.Add(c.lease)}); err != nil {
		return nil, err
	}
	if err := c.makeLaunches(ctx, starts); err != nil {
		return nil, err
	}
	launched, numbers, runs := map[xid.ID]*Claimed{}, map[xid.ID]int{}, make([]runRow, len(starts))
	for i, x := range starts {
		c.room -= x.weight()
		got := c.took(x.run, x.Number)
		got.Launch = x.launch
		launched[x.RunID], numbers[x.RunID], runs[i] = &got, x.Number, x.run
	}
	return launched, c.reserve(ctx, runs, numbers)
}

// inOrderOf are claimed runs in the order of the runs.
func inOrderOf(runs []runRow, launched map[xid.ID]*Claimed, taken []Claimed) []Claimed {
	all := make([]Claimed, 0, len(runs))
	for _, run := range runs {
		if x := launched[run.id]; x != nil {
			all = append(all, *x)
		} else {
			all, taken = append(all, taken[0]), taken[1:]
		}
	}
	return all
}
