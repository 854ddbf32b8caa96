package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// executorOfRun is the stored executor of a run r as SQL: task → agent → project → workspace (SPEC S6.4). It says what
// domain.ResolveExecutor says.
const executorOfRun = `coalesce(
  (SELECT NULLIF(x.executor, 'null') FROM tasks x WHERE x.id = r.task_id),
  (SELECT NULLIF(x.executor, 'null') FROM agents x WHERE x.id = r.agent_id),
  (SELECT NULLIF(x.executor, 'null') FROM tasks k JOIN projects x ON x.id = k.project_id WHERE k.id = r.task_id),
  (SELECT NULLIF(x.default_executor, 'null') FROM workspaces x WHERE x.id = r.workspace_id))`

// queueOfRun is the queue whose workers execute a run r, as SQL; NULL for runs that rouse executes itself.
const queueOfRun = `(` + executorOfRun + ` #>> '{pull,queue}')`

// offeredTo is the queue that a run r was last offered to, as SQL.
const offeredTo = `(
  SELECT e.data->>'queue'
  FROM run_events e
  WHERE e.run_id = r.id AND e.kind = 'CLAIMED'
  ORDER BY e.seq DESC
  LIMIT 1)`

// waitsInVain says in SQL that a run r waits for workers of a queue that is not its executor's any more: rouse itself
// executes it now, or workers of another queue do.
const waitsInVain = `r.status = 'QUEUED'
  AND r.parked_reason = 'NO_WORKER'
  AND (` + queueOfRun + ` IS NULL OR ` + queueOfRun + ` IS DISTINCT FROM ` + offeredTo + `)`

// Withdraw takes back an offer that no worker took in time (SPEC S7.1). The run is parked NO_WORKER until a worker of
// its queue asks again. That counts neither as failure nor as abandonment. A run whose executor has been changed since
// is due. It returns false when the offer was taken, or still stands.
func (s *Queue) Withdraw(ctx context.Context, a Attempt) (bool, error) {
	err := s.inTx(ctx, func(t *tx) error {
		if _, err := t.lockLaneOf(ctx, a.RunID); err != nil {
			return err
		}
		run, until, err := t.lockOffered(ctx, a)
		if err != nil {
			return err
		}
		if !until.Before(t.Now) {
			return ErrFenced
		}
		return t.withdraw(ctx, run)
	})
	if errors.Is(err, ErrFenced) {
		return false, nil
	}
	return err == nil, pgtx.Wrap("withdraw offer", err)
}

func (t *tx) withdraw(ctx context.Context, run runRow) error {
	deleted, err := pgtx.QueryOne[bool](ctx, t, `SELECT deleted_at IS NOT NULL FROM agents WHERE id = $1`, run.agentID)
	if err != nil {
		return fmt.Errorf("read the agent: %w", err)
	}
	if domain.AfterOffer(run.cancelRequestedAt != nil, deleted) == domain.FateCancel {
		return t.cancelLive(ctx, run)
	}
	const moved = `
SELECT ` + queueOfRun + ` IS DISTINCT FROM l.queue
FROM runs r
JOIN attempt_leases l ON l.run_id = r.id
WHERE r.id = $1`
	elsewhere, err := pgtx.QueryOne[bool](ctx, t, moved, run.id)
	if err != nil {
		return fmt.Errorf("compare the queues: %w", err)
	}
	if elsewhere { // no worker of this queue will ask for it: it is due for its new executor
		return t.giveBack(ctx, run, domain.RunAttemptStatusInterrupted, false)
	}
	if err := t.requeue(ctx, run, pgtx.Ptr(domain.ParkedReasonNoWorker), nil); err != nil {
		return err
	}
	data := map[string]any{"attempt": domain.RunAttemptStatusInterrupted, "parked": domain.ParkedReasonNoWorker}
	if err := t.runEvent(ctx, run, domain.RunEventKindRecovered, run.attempt, data); err != nil {
		return err
	}
	t.onCommit(func(s *base) {
		s.log.Warn("no worker took a run; it waits until one asks for its queue", keysOf(run, "queue", run.queue)...)
	})
	t.leaveClaimed(run, leave{attempt: domain.RunAttemptStatusInterrupted})
	return nil
}

// lockOffered locks a run that is offered to workers, and reads to which queue and until when; ErrFenced when it is not any
// more.
func (t *tx) lockOffered(ctx context.Context, a Attempt) (runRow, time.Time, error) {
	const query = `
SELECT ` + runColumns + `, l.lease_until, coalesce(l.queue, '')
FROM runs r
JOIN attempt_leases l ON l.run_id = r.id
WHERE r.id = $1 AND r.status = 'CLAIMED' AND r.attempt = $2 AND l.attempt = $2 AND l.owner IS NULL
FOR NO KEY UPDATE OF r`
	var until time.Time
	runs, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (runRow, error) {
		var queue string
		run, err := scanRunAnd(rows, &until, &queue)
		run.queue = queue
		return run, err
	}, query, a.RunID, a.Number)
	if err != nil {
		return runRow{}, until, fmt.Errorf("lock run: %w", err)
	}
	if len(runs) == 0 {
		return runRow{}, until, ErrFenced
	}
	return runs[0], until, nil
}

// isOffered says whether a live run whose lane is held waits for a worker.
func (t *tx) isOffered(ctx context.Context, run runRow) (bool, error) {
	offered, err := pgtx.QueryOne[bool](ctx, t, `SELECT EXISTS (SELECT 1 FROM attempt_leases WHERE run_id = $1 AND owner IS NULL)`, run.id)
	return offered, pgtx.Wrap("read the lease", err)
}

// unparkLanes bounds the lanes that one call makes due.
const unparkLanes = 64

// unparkOffers makes runs of a queue due that no worker had taken. A lane that fails does not stop the others.
func (s *Queue) unparkOffers(ctx context.Context, workspaceID xid.ID, queue string, agents []xid.ID) error {
	var failed []xid.ID
	var problems []error
	for len(failed) < lanesPassedOver {
		lanes, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], unparkLanesQuery, workspaceID, queue, pgtx.IDs(agents), unparkLanes, pgtx.IDs(failed))
		if err != nil {
			return errors.Join(append(problems, &listError{"runs that wait for a worker", err})...)
		}
		unfit, err := pgtx.Each(ctx, lanes, func(agentID xid.ID) error {
			return s.inTx(ctx, func(t *tx) error { return t.unparkQueue(ctx, agentID, queue) })
		}, pgtx.Blaming("make runs due that wait for a worker: lane"))
		problems = pgtx.AppendError(problems, err)
		if len(lanes) == 0 || len(unfit) < len(lanes) || pgtx.EndsAll(ctx, err) {
			break
		}
		failed = append(failed, unfit...)
	}
	return errors.Join(problems...)
}

func (t *tx) unparkQueue(ctx context.Context, agentID xid.ID, queue string) error {
	l, err := t.lockLane(ctx, agentID)
	if err != nil {
		return err
	}
	_, err = t.unpark(ctx, l, `r.status = 'QUEUED' AND r.parked_reason = 'NO_WORKER' AND `+queueOfRun+` = $2`, queue)
	return err
}

const unparkLanesQuery = `
-- $1 workspace, $2 queue, $3 agents to which the worker is bound; none: all, $4 most lanes, $5 lanes that
-- failed
SELECT DISTINCT agent_id
FROM runs r
WHERE workspace_id = $1
  AND status = 'QUEUED'
  AND parked_reason = 'NO_WORKER'
  AND ` + queueOfRun + ` = $2
  AND (cardinality($3::text[]) = 0 OR agent_id = ANY($3))
  AND agent_id <> ALL($5)
LIMIT $4`

// unpark makes parked runs r of the lane due that meet a condition, oldest first, and returns them. The condition's
// arguments are $2 and so on.
func (t *tx) unpark(ctx context.Context, l lane, condition string, args ...any) ([]xid.ID, error) {
	query := `
SELECT r.id, r.scope
FROM runs r
WHERE r.agent_id = $1 AND ` + condition + `
ORDER BY r.requested_at, r.id
FOR NO KEY UPDATE OF r`
	type parkedRun struct {
		id    xid.ID
		scope string
	}
	runs, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (e parkedRun, err error) { return e, rows.Scan(&e.id, &e.scope) }, query, append([]any{l.agentID}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("read runs that wait for a worker: %w", err)
	}
	if len(runs) == 0 {
		return nil, nil
	}
	due := make([]xid.ID, len(runs))
	for i, run := range runs {
		if err := pgtx.ExecOne(ctx, t, unparkQuery, run.id, l.agentID, run.scope); err != nil {
			return nil, fmt.Errorf("make run due: %w", err)
		}
		due[i] = run.id
	}
	return due, t.fixHead(ctx, l)
}
