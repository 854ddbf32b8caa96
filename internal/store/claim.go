package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Owner identifies a process on the leases it holds. Started is the kernel's start time of the process, in clock ticks
// since boot, so that a pid used again is not taken for it.
type Owner struct {
	ID           xid.ID
	Host, BootID string
	PID          int
	Started      int64
}

// Attempt names one try at a run and its owner: the fence of every report (SPEC S7.7).
type Attempt struct {
	RunID  xid.ID
	Number int
	Owner  xid.ID
}

// Claimed is a run taken for execution, or, with a Queue, offered to the workers of that queue and owned by nobody. Lease is
// set where it is another one than the owner asked for.
type Claimed struct {
	Attempt
	WorkspaceID, AgentID xid.ID
	CausationID          xid.ID // "" for what a remote worker knows of a run
	Queue                string
	Lease                time.Duration
	Launch               *Launch // nil: the claim could not start it, and Start is to say why
}

// Bounds of one claim.
const (
	claimBatch        = 64 // runs in one transaction
	settlesPerPass    = 32 // heads that a pass settles one by one before it goes past the lanes of such heads
	passesBeforeWait  = 3  // passes a lane is found due but locked before it is claimed alone, waiting
	promotionsPerPass = 64 // parked runs whose lanes a pass looks at; it makes all of theirs due
)

// claimNext is Attempts.Claim, with or without the runs' launch.
func (s *Queue) claimNext(ctx context.Context, o claimOrder) ([]Claimed, error) {
	o.limit = min(o.limit, claimBatch)
	o.beside = o.limit == claimBatch && (o.room == nil || o.room() >= claimBatch)
	if room := o.room; room != nil {
		o.room = sync.OnceValue(func() int { return min(room(), claimBatch) })
	}
	claimed, err := s.claimDue(ctx, o)
	if len(claimed) > 0 || pgtx.EndsAll(ctx, err) || CutShort(err) {
		return claimed, err
	}
	return nil, errors.Join(err, s.SettleBacklog(ctx))
}

// claimDue is claimNext without the backlog of held agents.
func (s *Queue) claimDue(ctx context.Context, o claimOrder) ([]Claimed, error) {
	o.passed = s.resting.claim.left() // and lanes that failed, or whose heads this call has no share left to settle
	var problems []error
	for o.settles = settlesPerPass; ; {
		pass, err := s.claimPass(ctx, &o)
		if err != nil {
			return nil, errors.Join(append(problems, err)...)
		}
		if pass.parkedOver {
			promoting := s.promoteDue(ctx)
			if pgtx.EndsAll(ctx, promoting) {
				return nil, promoting
			}
			problems, o.promoted = pgtx.AppendError(problems, promoting), true
			continue
		}
		lanes := pass.due
		if len(lanes) == 0 || len(o.passed) >= lanesPassedOver {
			return nil, errors.Join(problems...)
		}
		onlyAhead := o.settles == 0
		for _, agentID := range s.starved.update(pgtx.Remaining(lanes, pass.failed), pass.locked) {
			if pgtx.EndsAll(ctx, errors.Join(pass.problems...)) {
				break
			}
			alone := s.claimBisecting(ctx, claimOrder{owner: o.owner, agents: []xid.ID{agentID}, limit: min(1, o.limit-len(pass.claimed)), lease: o.lease, settles: min(1, o.settles), wait: true, launch: o.launch})
			alone.locked = nil // it was not free
			pass.add(alone)
		}
		problems = append(problems, pass.problems...)
		o.settles = max(0, o.settles-pass.settled)
		nothingElse := !onlyAhead && pass.settled+pass.offered == 0 && len(pass.locked) == len(lanes) // none of them failed or was held
		if err := errors.Join(problems...); pgtx.EndsAll(ctx, err) {
			return pass.claimed, err
		}
		s.tellLockHolders(ctx, s.resting.claim.served(lanes, pass.failed, pass.timedOut), pass.timedOut)
		if len(pass.claimed) > 0 || nothingElse {
			return pass.claimed, errors.Join(problems...)
		}
		if onlyAhead {
			pass.failed = lanes
		}
		o.passed = append(o.passed, pass.failed...)
	}
}

// claimPass claims from the lanes that have the oldest heads: in one transaction, which finds them too. When that fails, they are
// listed, and their runs taken one by one; lanes at fault are found by bisecting. Claims of a process take turns.
func (s *Queue) claimPass(ctx context.Context, order *claimOrder) (claimResult, error) {
	if err := s.claims.Take(ctx); err != nil {
		return claimResult{}, &listError{"due lanes", err}
	}
	defer s.claims.Give()
	pass, cause := s.claimBeside(ctx, *order)
	order.settleRoom()
	if cause == nil {
		return pass, nil
	}
	o := *order
	if pgtx.EndsAll(ctx, cause) {
		return claimResult{}, fmt.Errorf("claim due lanes: %w", cause)
	}
	var err error
	if o.agents, err = s.dueLanes(ctx, o.limit, o.passed); err != nil {
		return claimResult{}, &listError{"due lanes", err}
	}
	o.more = len(o.agents) >= o.limit
	if apartHelps(ctx, cause) {
		s.tellOneByOne(cause)
		o = o.oneByOne()
	}
	pass = s.claimBisecting(ctx, o)
	pass.due = o.agents
	return pass, nil
}

// claimBeside is claimIn beside a batch of transitions of this process, which may hold some of the lanes that are due. When it holds
// all of them, or the pass before this one went past some, claimIn takes the batches' turn, and finds none held by them. So does a
// claim that has no room for a batch of its own: the other one makes more.
func (s *Queue) claimBeside(ctx context.Context, o claimOrder) (pass claimResult, err error) {
	if o.beside && !s.starved.any() {
		if pass, err = s.claimIn(ctx, o); err != nil || !pass.held {
			return pass, err
		}
	}
	if err := s.lanes.Take(ctx); err != nil {
		return claimResult{}, err
	}
	defer s.lanes.Give()
	return s.claimIn(ctx, o)
}

// claimBisecting claims runs of lanes, in one transaction when none fails. Lanes that fail are found by bisecting, and left
// alone.
func (s *Queue) claimBisecting(ctx context.Context, o claimOrder) (all claimResult) {
	all.problems = pgtx.Bisect(ctx, o.agents, func(some []xid.ID) error {
		part := o
		part.agents, part.limit, part.settles = some, o.limit-len(all.claimed)-all.offered, max(0, o.settles-all.settled)
		part.more = o.more || len(some) < len(o.agents)
		if part.limit <= 0 {
			return nil
		}
		done, err := s.claimLanes(ctx, part)
		if err == nil {
			all.add(done)
		}
		return err
	}, func(some []xid.ID, err error) error {
		all.failed = append(all.failed, some...)
		if pgtx.LockTimeout(err) {
			for _, agentID := range some {
				all.noteTimeout(agentID, err)
			}
			return nil
		}
		return fmt.Errorf("claim %s: %w", pgtx.Named("lane", some), err)
	})
	return all
}

// claimResult is what one transaction of the claim did, or several.
type claimResult struct {
	due        []xid.ID // lanes that were found, those with the oldest heads first
	held       bool     // all of them by others
	parkedOver bool     // nothing was claimed, because parked runs are to be made due first

	claimed  []Claimed
	locked   []xid.ID // lanes that nobody held, whose head's task nobody held
	settled  int      // runs that a guard ended or parked
	offered  int      // runs that wait for a worker now
	failed   []xid.ID // lanes that could not be claimed from, and why
	problems []error
	timedOut map[xid.ID]error // those of them of which somebody held a row for longer than a claim waits: no problem of theirs
}

func (b *claimResult) add(o claimResult) {
	b.claimed, b.locked = append(b.claimed, o.claimed...), append(b.locked, o.locked...)
	b.settled, b.offered = b.settled+o.settled, b.offered+o.offered
	b.failed, b.problems = append(b.failed, o.failed...), append(b.problems, o.problems...)
	for id, err := range o.timedOut {
		b.noteTimeout(id, err)
	}
}

// noteTimeout notes that somebody held a row of a lane.
func (b *claimResult) noteTimeout(agentID xid.ID, err error) {
	if b.timedOut == nil {
		b.timedOut = map[xid.ID]error{}
	}
	b.timedOut[agentID] = err
}

// claimOrder says what one transaction of the claim is to take. With a queue it only offers runs to that queue's workers.
type claimOrder struct {
	owner  Owner
	agents []xid.ID // none: those that are due and not passed over, the oldest heads first
	limit  int
	room   func() int // of the owner, asked for once when the first transaction has begun; nil: limit
	lease  time.Duration

	beside   bool     // a batch of transitions of this process, if one is under way
	passed   []xid.ID // lanes to be passed over
	promoted bool     // what was parked until now is due, as far as it can be

	settles int  // heads that guards refuse, to be settled at most; 0: past the lanes of such heads
	more    bool // lanes that are not among these may be due
	wait    bool // for lanes that somebody holds; else they are left out
	queue   string

	launch launcher // nil: what is claimed is not started
	apart  bool     // each run by itself, so that one at fault is found and parked
}

// settleRoom makes the room that the owner has by now the limit.
func (o *claimOrder) settleRoom() {
	if o.room != nil {
		o.limit, o.room = o.room(), nil
	}
}

// launcher claims runs of locked lanes and starts them, as many as it can, from the first on.
type launcher func(ctx context.Context, c *claimer, runs []runRow) ([]Claimed, error)

// oneByOne is the order for when runs could not be claimed together: each is claimed by itself, so that one at fault is found and
// parked, and started by itself (Start).
func (o claimOrder) oneByOne() claimOrder {
	o.launch, o.apart = nil, true
	return o
}

// claimLanes claims up to limit runs of the lanes in one transaction, the oldest first: an agent with several free
// sessions has several turns. The lanes are those with the oldest heads, so these are the oldest runs of all. When more
// lanes may be due, it stops before a run that is newer than the newest of their heads. A transaction that fails is
// undone whole, and the runs are taken one by one. Offers always are.
func (s *Queue) claimLanes(ctx context.Context, o claimOrder) (done claimResult, err error) {
	if o.apart || o.queue != "" {
		return s.claimIn(ctx, o.oneByOne())
	}
	done, err = s.claimIn(ctx, o)
	if err == nil || !apartHelps(ctx, err) {
		return done, err
	}
	s.tellOneByOne(err)
	return s.claimIn(ctx, o.oneByOne())
}

// apartHelps says whether an error of a claim may be one run's, which is found when they are taken one by one.
func apartHelps(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !postgres.Away(err) && !pgtx.Retryable(err) && !pgtx.LockTimeout(err)
}

func (s *Queue) tellOneByOne(cause error) {
	s.log.Warn("runs could not be claimed and started together, and are taken one by one", "error", cause)
}

// claimIn is one transaction of a claim.
func (s *Queue) claimIn(ctx context.Context, o claimOrder) (done claimResult, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		done = claimResult{}
		o.settleRoom()
		if o.wait { // the others skip what is locked, and wait no longer from the ceilings on
			if _, err := pgtx.Exec(ctx, t, `SELECT set_config('lock_timeout', $1, true)`, claimPatience); err != nil {
				return fmt.Errorf("bound the wait for locks: %w", err)
			}
		}
		lanes, err := t.findDueLanes(ctx, &o, &done)
		done.held = len(done.due) > 0 && len(lanes) == 0
		if err != nil || len(lanes) == 0 || done.parkedOver {
			return err
		}
		c := newClaimer(t, o)
		if o.more {
			c.newest = pgtx.Ptr(lanes[len(lanes)-1])
		}
		if o.wait {
			if err := t.waitForHeads(ctx, lanes); err != nil {
				return err
			}
		}
		if err := c.lockCeilings(ctx, lanes); err != nil {
			return err
		}
		if err := c.readBudgets(ctx, lanes); err != nil {
			return err
		}
		if err := c.claimAll(ctx, lanes, &done); err != nil {
			return err
		}
		for _, l := range lanes {
			if !c.busy[l.agentID] {
				done.locked = append(done.locked, l.agentID)
			}
		}
		return c.countTaken(ctx)
	})
	done.keepOwned()
	return done, err
}

// claimAll takes what the order asks for from locked lanes.
func (c *claimer) claimAll(ctx context.Context, lanes []lane, done *claimResult) (err error) {
	if !c.apart {
		if done.claimed, err = c.claimAhead(ctx, lanes, c.limit); err != nil {
			return err
		}
	}
	for l := c.oldest(lanes); l != nil && !c.full() && len(done.claimed) < c.limit && done.settled < c.settles; l = c.oldest(lanes) {
		got, err := c.claimHead(ctx, l)
		if err != nil {
			return err
		}
		switch {
		case got != nil:
			done.claimed = append(done.claimed, *got)
		case !c.busy[l.agentID]:
			done.settled++
		}
	}
	return nil
}

// keepOwned takes out what was offered to workers.
func (b *claimResult) keepOwned() {
	all := len(b.claimed)
	b.claimed = slices.DeleteFunc(b.claimed, func(c Claimed) bool { return c.Queue != "" })
	b.offered = all - len(b.claimed)
}
