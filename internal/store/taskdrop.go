package store

import (
	"context"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// dropPatience bounds how long who ended a task waits for the lanes of those that have something queued about it.
const dropPatience = 5 * time.Second

// dropWaiting ends, once the end of a task has committed, what still waits about it: parked runs would otherwise stand in
// the queue until their parking is over, for days. It takes a transaction of its own, since lanes are locked before tasks and
// who ends a task holds it. What a crash leaves in between is ended when its run comes up, as a stale one.
func (t *tx) dropWaiting(ctx context.Context, taskID xid.ID) {
	t.onCommit(func(s *Store) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropPatience)
		defer cancel()
		if err := s.dropWaiting(ctx, taskID); err != nil {
			s.log.Warn("what waits about an ended task was not ended yet; it will be when it comes up", "task_id", taskID, "error", err)
		}
	})
}

func (s *Store) dropWaiting(ctx context.Context, taskID xid.ID) error {
	return s.inTx(ctx, func(t *tx) error {
		waiting, err := t.agentsWaitingFor(ctx, taskID)
		if err != nil || len(waiting) == 0 {
			return err
		}
		lanes, err := t.lockLanesIn(ctx, waiting)
		if err != nil {
			return err
		}
		tasks, err := t.lockTasks(ctx, taskID)
		if err != nil {
			return err
		}
		r := tasks[taskID]
		if r == nil || !r.ended() {
			return nil // somebody has opened it again
		}
		over := domain.BasisLost(domain.BasisFacts{TaskBound: true, TaskState: r.state, TaskArchived: r.archived})
		for _, l := range lanes {
			_, err := t.dropRequests(ctx, l, taskID, func(_ domain.WakeupSource, _ domain.WakeBasis, retry bool) domain.EndReason {
				return domain.RetryReason(over, retry)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
