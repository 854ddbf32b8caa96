package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"rouse.dev/rouse/internal/store"
)

// rescuer gives the runs of dead owners back to the queue (SPEC S8.4).
type rescuer struct {
	store  leases
	groups GroupEnder
	owner  store.Owner
	lease  time.Duration
	log    *slog.Logger
	alive  func(pid int, started uint64) bool

	connectedSince time.Time // zero: the last sweep could not read, or there was none
	lastSweep      time.Time
}

// runOnce looks at the live leases of other owners. A lease of this host and boot ends at once when its owner is dead.
// A lease that ran out ends only when the database was up and this sweep connected for a whole lease, because owners
// need that time to renew after an outage.
func (r *rescuer) runOnce(ctx context.Context, enough <-chan struct{}) (time.Duration, error) {
	found, settled, err := r.look(ctx)
	if err != nil {
		r.connectedSince = time.Time{}
		return 0, err
	}
	var problems failures
	for _, l := range found {
		if closed(enough) {
			break
		}
		if err := r.rescue(ctx, l, settled); err != nil { // one run that cannot be rescued keeps no other
			problems.add(fmt.Errorf("rescue run %s attempt %d: %w", l.RunID, l.Number, err))
			if store.Disconnected(err) {
				break
			}
		}
	}
	return 0, problems.err()
}

// look reads the leases; an error means that the database is away.
func (r *rescuer) look(ctx context.Context) (found []store.Leftover, settled bool, err error) {
	found, err = r.store.Leases(ctx, r.owner.ID, r.owner.Host)
	if err != nil {
		return nil, false, fmt.Errorf("list leases: %w", err)
	}
	settled, err = r.settled(ctx)
	return found, settled, err
}

// settled reports whether the database has been up, and this sweep connected, for a whole lease. A sweep that comes
// much too late was not connected: its process or machine had been stopped.
func (r *rescuer) settled(ctx context.Context) (bool, error) {
	up, err := r.store.Uptime(ctx)
	if err != nil {
		return false, fmt.Errorf("read the database's uptime: %w", err)
	}
	now := time.Now()
	if r.connectedSince.IsZero() || elapsed(r.lastSweep, now) > max(r.lease, 2*rescueBeat) {
		r.connectedSince = now
	}
	r.lastSweep = now
	return up >= r.lease && now.Sub(r.connectedSince) >= r.lease, nil
}

// elapsed is the larger of the time by the monotonic clock, which may stand still in a machine that sleeps, and by the
// wall clock.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// rescue ends one lease if that is due. It ends what is left of the agent before the attempt, so that the run is never
// due while one of its processes lives. A group that cannot be ended keeps its run; the next sweep tries again.
func (r *rescuer) rescue(ctx context.Context, l store.Leftover, settled bool) error {
	if l.Owner == "" { // an offer that no worker took: nothing runs
		_, err := r.store.Withdraw(ctx, l.Attempt)
		return err
	}
	if l.Accepted { // by an agent service, elsewhere
		return r.endAccepted(ctx, l, settled)
	}
	local := l.OwnerHost == r.owner.Host && l.OwnerBootID == r.owner.BootID && l.OwnerBootID != ""
	dead := local && !r.alive(l.OwnerPID, uint64(l.OwnerStarted))
	if !dead && !(l.Expired && settled) {
		return nil
	}
	if l.OwnerHost == r.owner.Host { // also without a recorded group: the owner may have died between launch and record
		if err := r.groups.EndLeftover(ctx, l); err != nil {
			return fmt.Errorf("end the agent's processes (group %d): %w", l.Group.PGID, err)
		}
	}
	abandoned, err := r.store.Abandon(ctx, l.Attempt, dead)
	if err != nil {
		return fmt.Errorf("abandon: %w", err)
	}
	if abandoned {
		r.log.Warn("run rescued", "run_id", l.RunID, "attempt", l.Number, "agent_id", l.AgentID, "workspace_id", l.WorkspaceID,
			"causation_id", l.CausationID, "owner", l.Owner, "owner_dead", dead)
	}
	return nil
}

// endAccepted ends what an agent service has accepted and not ended in time. A service that could not report while the
// database was away has the time of a lease to do so.
func (r *rescuer) endAccepted(ctx context.Context, l store.Leftover, settled bool) error {
	if !l.Expired || !settled {
		return nil
	}
	_, err := r.store.EndAccepted(ctx, l.Attempt)
	return err
}
