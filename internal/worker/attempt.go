package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
)

// Why a live attempt is ended from here.
var (
	errCancel      = errors.New("the run was cancelled")
	errHandBack    = errors.New("rouse is shutting down")
	errLost        = errors.New("another process owns the run now")
	errLeaseEnding = errors.New("the lease could not be renewed in time")
)

// attempt is one live try at a run in this process.
type attempt struct {
	store.Attempt
	claimed store.Claimed   // without its launch
	launch  *store.Launch   // what came with the claim, until it is used: a prompt is kept no longer than it must
	ctx     context.Context // of the launch; its cause is why it was ended
	cancel  context.CancelCauseFunc
	fence   *time.Timer // ends the launch before the lease ends
	lease   time.Duration
	until   *executor.Lease // ends the launch should this process hang
}

func newAttempt(parent context.Context, c store.Claimed, lease time.Duration) *attempt {
	launch := c.Launch
	c.Launch = nil
	a := &attempt{Attempt: c.Attempt, claimed: c, launch: launch, lease: lease, until: executor.NewLease(time.Now().Add(hangAfter(lease)))}
	a.ctx, a.cancel = context.WithCancelCause(parent)
	a.fence = time.AfterFunc(fenceAfter(lease), func() { a.stop(&executor.Stop{Reason: errLeaseEnding, Grace: lease / 8}) })
	return a
}

// fenceAfter is how long after the last renewal an owner that cannot renew ends its processes. The rest of the lease is
// for the grace (an eighth), the KILL, and the time that the claim or renewal was under way.
func fenceAfter(lease time.Duration) time.Duration { return lease - lease/4 }

// renewed moves the fence, and the watchdog's. at is when the renewal was asked for, by the monotonic clock: the lease cannot end earlier
// than one lease after it.
func (a *attempt) renewed(at time.Time) {
	a.fence.Reset(time.Until(at.Add(fenceAfter(a.lease))))
	a.until.Extend(at.Add(hangAfter(a.lease)))
}

// hangAfter is how long after the last renewal the watchdog ends the processes of an owner that has not ended them: it hangs, or stands
// still. Before the lease ends, too, but after whatever the owner does.
func hangAfter(lease time.Duration) time.Duration { return lease - lease/16 }

// stop ends the launch; the first reason counts.
func (a *attempt) stop(why *executor.Stop) { a.cancel(why) }

// release frees what the attempt holds.
func (a *attempt) release() {
	a.fence.Stop()
	a.cancel(nil)
}

// keys name the attempt in the log.
func (a *attempt) keys() slog.Attr {
	c := a.claimed
	return slog.Group("", "run_id", c.RunID, "attempt", c.Number, "agent_id", c.AgentID, "workspace_id", c.WorkspaceID, "causation_id", c.CausationID)
}

// stopCancel leaves the command its own grace, because the lease goes on.
func stopCancel() *executor.Stop { return &executor.Stop{Reason: errCancel, Grace: 24 * time.Hour} }

// stopHandBack leaves a short grace, since somebody waits for the server to end.
func stopHandBack() *executor.Stop { return &executor.Stop{Reason: errHandBack, Grace: handBackGrace} }

// stopLost leaves none: the next attempt may be running already.
func stopLost() *executor.Stop { return &executor.Stop{Reason: errLost} }
