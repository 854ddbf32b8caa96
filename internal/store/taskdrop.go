package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of what the end of a task ends in its own transaction. What is beyond follows at once, in steps of the same size.
const (
	dropLanes    = 100  // agents that have something queued about it
	dropMost     = 1000 // their requests
	dropPatience = 5 * time.Second
)

// lockWaiting locks the lanes of those that have something queued about a task that is about to end, before the task.
func (t *tx) lockWaiting(ctx context.Context, taskID xid.ID) error {
	waiting, err := t.agentsWaitingFor(ctx, taskID)
	if err != nil {
		return err
	}
	waiting = waiting[:min(len(waiting), dropLanes)]
	_, err = t.lockLanesIn(ctx, pgtx.Distinct(append(waiting, t.also...)))
	return err
}

// lockAlso locks the lanes that the try before this one lacked.
func (t *tx) lockAlso(ctx context.Context) error {
	_, err := t.lockLanesIn(ctx, t.also)
	return err
}

// agentsWaitingFor are the agents that have something queued about a task: one more than one transaction locks, at most.
func (t *tx) agentsWaitingFor(ctx context.Context, taskID xid.ID) ([]string, error) {
	const query = `
SELECT DISTINCT q.agent_id FROM wakeup_requests q LEFT JOIN runs r ON r.id = q.run_id
WHERE q.task_id = $1
  AND q.finished_at IS NULL
  AND q.status IN ('QUEUED', 'COALESCED')
  AND (q.run_id IS NULL OR r.status = 'QUEUED')
ORDER BY 1
LIMIT $2`
	agents, err := pgtx.Collect(ctx, t, pgtx.ScanOne[string], query, taskID, dropLanes+1)
	if err != nil {
		return nil, fmt.Errorf("find who waits for the task: %w", err)
	}
	return agents, nil
}

// endWaiting ends what waits about the tasks that this transaction has ended: parked runs would otherwise stand in the queue
// until their parking is over, for days. It comes when all else is written, since the end of a run sends requests about its
// task again. It returns the requests that it ended. Lanes that it lacks are locked by the next try; what is too much for
// one transaction follows its commit.
func (t *tx) endWaiting(ctx context.Context) (ended []xid.ID, err error) {
	tasks := pgtx.Distinct(t.over)
	t.over = nil
	for _, taskID := range tasks {
		some, more, err := t.dropWaiting(ctx, taskID, dropMost-len(ended))
		if err != nil {
			return nil, err
		}
		if ended = append(ended, some...); more {
			if err := t.setUnsettled(ctx, taskID, true); err != nil {
				return nil, err
			}
			t.onCommit(func(s *base) { s.dropRest(ctx, taskID) })
		}
	}
	return ended, nil
}

// dropWaiting ends at most so many requests about a task, and the queued runs of which none is left; more says that there
// may be others. A task that is open ends nothing: what ended it was undone.
func (t *tx) dropWaiting(ctx context.Context, taskID xid.ID, most int) (ended []xid.ID, more bool, err error) {
	waiting, err := t.agentsWaitingFor(ctx, taskID)
	if err != nil || len(waiting) == 0 {
		return nil, false, err
	}
	some := waiting[:min(len(waiting), dropLanes)]
	held := slices.DeleteFunc(slices.Clone(some), func(id string) bool { _, ok := t.locked[xid.ID(id)]; return !ok })
	if lacking := without(some, held); len(lacking) > 0 && len(t.also) < dropLanes {
		return nil, false, &lanesNeeded{lacking[:min(len(lacking), dropLanes-len(t.also))]}
	}
	over, err := t.whyOver(ctx, taskID)
	if err != nil || over == "" {
		return nil, false, err
	}
	for _, agentID := range held {
		left := most - len(ended)
		if left <= 0 {
			return ended, true, nil
		}
		dropped, err := t.dropRequests(ctx, t.locked[xid.ID(agentID)], taskID, &left, func(_ domain.WakeupSource, _ domain.WakeBasis, retry bool) domain.EndReason {
			return domain.RetryReason(over, retry)
		})
		if err != nil {
			return nil, false, err
		}
		ended = append(ended, dropped...)
	}
	return ended, len(held) < len(waiting) || len(ended) >= most, nil
}

// whyOver is why nothing is to be done about a task any more; "" while there is. The task is locked.
func (t *tx) whyOver(ctx context.Context, taskID xid.ID) (domain.EndReason, error) {
	tasks, err := t.readTasks(ctx, taskID)
	if err != nil || tasks[taskID] == nil || !tasks[taskID].ended() {
		return "", err
	}
	return domain.BasisLost(domain.BasisFacts{TaskBound: true, TaskState: tasks[taskID].state, TaskArchived: tasks[taskID].archived}), nil
}

// dropRest goes on with what was too much for the transaction that ended a task, step by step. What it does not come to, in
// dropPatience or because the process ends, the repair sweep ends.
func (s *base) dropRest(ctx context.Context, taskID xid.ID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropPatience)
	defer cancel()
	for more := true; more; {
		var err error
		if more, err = s.dropStep(ctx, taskID); err != nil {
			s.log.Warn("not all that waits about an ended task has ended yet; the next sweep goes on", "task_id", taskID, "error", err)
			return
		}
	}
}

// dropStep ends some of what still waits about an ended task; more says that there may be others. When nothing is left, the task
// is settled.
func (s *base) dropStep(ctx context.Context, taskID xid.ID) (more bool, err error) {
	err = s.inTx(ctx, func(t *tx) (err error) {
		if err = t.lockWaiting(ctx, taskID); err != nil {
			return err
		}
		if _, err = t.lockTasks(ctx, taskID); err != nil {
			return err
		}
		if _, more, err = t.dropWaiting(ctx, taskID, dropMost); err != nil || more {
			return err
		}
		return t.setUnsettled(ctx, taskID, false)
	})
	return more, err
}

// setUnsettled notes whether something still waits about an ended task, so that the sweep finds it whatever becomes of this
// process. The task is locked.
func (t *tx) setUnsettled(ctx context.Context, taskID xid.ID, unsettled bool) error {
	_, err := pgtx.Exec(ctx, t, `UPDATE tasks SET unsettled = $2 WHERE id = $1 AND unsettled <> $2`, taskID, unsettled)
	return pgtx.Wrap("note what still waits about the task", err)
}

// Bounds of what one sweep does about ended tasks.
const (
	settledTasks = 200
	settledSteps = 64 // of all of them
)

// settleEnded goes on where processes stopped that ended what waits about an ended task. A task that fails does not stop the
// others.
func (s *base) settleEnded(ctx context.Context) error {
	tasks, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], `SELECT id FROM tasks WHERE unsettled ORDER BY id LIMIT $1`, settledTasks)
	if err != nil {
		return fmt.Errorf("look for ended tasks about which something waits: %w", err)
	}
	steps := 0
	_, err = pgtx.Each(ctx, tasks, func(id xid.ID) (err error) {
		for more := true; more && err == nil && steps < settledSteps; steps++ {
			more, err = s.dropStep(ctx, id)
		}
		return err
	}, pgtx.Blaming("end what waits about task"))
	return err
}
