package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// RetryRun names a run that a person wants to be tried now, and their remark about it, at most 1000 characters.
type RetryRun struct {
	WorkspaceID, RunID xid.ID
	Note               string
	Idempotency
}

// Retried is what a retry did. RunID is the run that was parked; "" when its requests were sent again, unrouted, to
// AgentID.
type Retried struct {
	RunID, AgentID xid.ID
	Requests       []xid.ID
	Replayed       bool
}

// result is what a repeated call finds of it: the run, or the first request.
func (r Retried) result() xid.ID {
	if len(r.Requests) > 0 {
		return r.Requests[0]
	}
	return r.RunID
}

// RetryRun makes a parked run due, whatever it waits for but open blockers (SPEC S8.7). It sends the requests of a run
// again that FAILED or was CANCELLED: the same rows, with the same causation. Counts of failures and losses begin again
// at 0, and the limit of unattended launches does not hold the run, because a person asked for it.
func (s *Queue) RetryRun(ctx context.Context, in RetryRun) (done Retried, err error) {
	if err := checkNote(in.Note); err != nil {
		return Retried{}, err
	}
	agentID, err := pgtx.QueryOne[xid.ID](ctx, s.db, `SELECT agent_id FROM runs WHERE id = $1 AND workspace_id = $2`, in.RunID, in.WorkspaceID)
	if err != nil {
		return Retried{}, pgtx.NotFound(err, []string{"runId"}, "run", in.RunID)
	}
	err = s.inTx(ctx, func(t *tx) error {
		done = Retried{AgentID: agentID}
		made, err := t.idempotent(ctx, in.WorkspaceID, "retryRun", in.Idempotency, func() (Made, error) {
			l, err := t.lockLane(ctx, agentID)
			if err != nil {
				return Made{}, err
			}
			done.RunID, done.Requests, err = t.retryRun(ctx, l, in)
			return Made{ID: done.result()}, err
		})
		if err != nil || !made.Replayed {
			return err
		}
		done.Replayed = true
		return t.replayed(ctx, made.ID, &done)
	})
	return done, pgtx.Wrap("retry run", err)
}

// replayed reads what an earlier call did, of its result: the run, or the first of the requests that it sent.
func (t *tx) replayed(ctx context.Context, result xid.ID, done *Retried) (err error) {
	if strings.HasPrefix(string(result), "run_") {
		done.RunID = result
		return nil
	}
	const query = `
SELECT q.id
FROM wakeup_requests f
JOIN wakeup_requests q ON q.id = f.id OR q.run_id = f.run_id AND q.resends > 0
WHERE f.id = $1 ORDER BY q.requested_at, q.id LIMIT $2`
	done.Requests, err = pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, result, backlogRequests)
	return pgtx.Wrap("read what was sent again", err)
}

// retryRun does what the rule says. The tasks of the requests are locked before the run, since they come first.
func (t *tx) retryRun(ctx context.Context, l lane, in RetryRun) (parked xid.ID, sent []xid.ID, err error) {
	ended, err := t.endedRequests(ctx, in.RunID)
	if err != nil {
		return "", nil, err
	}
	holding, err := t.holding(ctx, l, ended)
	if err != nil {
		return "", nil, err
	}
	run, err := t.lockRun(ctx, in.RunID)
	if err != nil {
		return "", nil, err
	}
	facts, err := t.retryFacts(ctx, run)
	if err != nil {
		return "", nil, err
	}
	action, problems := domain.RetryRun(facts)
	if err := domain.AsUserError(problems); err != nil {
		return "", nil, err
	}
	if action == domain.RetryMakeDue {
		return run.id, nil, t.makeDue(ctx, l, run, in.Note)
	}
	return "", holding, t.retryEnded(ctx, l, run, len(ended), holding, in.Note)
}

func (t *tx) retryFacts(ctx context.Context, run runRow) (domain.RetryFacts, error) {
	f := domain.RetryFacts{Status: run.status}
	if run.parkedReason != nil {
		f.ParkedReason = *run.parkedReason
	}
	query := `
SELECT a.deleted_at IS NOT NULL,
  EXISTS (SELECT 1 FROM attempt_leases l WHERE l.run_id = r.id AND l.owner IS NULL),
  EXISTS (SELECT 1 FROM tasks t WHERE t.id = r.task_id AND ` + guard.HasOpenBlocker + `)
FROM runs r JOIN agents a ON a.id = r.agent_id WHERE r.id = $1`
	if err := pgtx.QueryRow(ctx, t, []any{&f.AgentDeleted, &f.Offered, &f.Blocked}, query, run.id); err != nil {
		return f, fmt.Errorf("read what a retry depends on: %w", err)
	}
	return f, nil
}

// endedRequests are the requests that a run ended with, oldest first.
func (t *tx) endedRequests(ctx context.Context, runID xid.ID) ([]droppedRequest, error) {
	const query = `
SELECT q.id, q.task_id, q.source, q.basis FROM wakeup_requests q
WHERE q.run_id = $1
  AND q.finished_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM routines o WHERE o.id = q.routine_id AND o.deleted_at IS NOT NULL)
ORDER BY q.requested_at, q.id LIMIT $2`
	ended, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (d droppedRequest, err error) {
		return d, rows.Scan(&d.id, &d.taskID, &d.source, &d.basis)
	}, query, runID, backlogRequests)
	return ended, pgtx.Wrap("read the run's requests", err)
}

// makeDue ends a run's parking. Where another run of its scope is due or live by now, it follows that one.
func (t *tx) makeDue(ctx context.Context, l lane, run runRow, note string) error {
	if run.parkedReason != nil {
		if err := pgtx.ExecOne(ctx, t, unparkQuery, run.id, l.agentID, run.scope); err != nil {
			return fmt.Errorf("make run due: %w", err)
		}
	}
	const anew = `
UPDATE runs
SET unattended = false, retry_count = 0, abandonments = 0, guard_errors = 0, limits = 0, limited_since = NULL,
  retry_source = NULL, rate_limit_reset_at = NULL, due_at = $2, revision = revision + 1
WHERE id = $1`
	if err := pgtx.ExecOne(ctx, t, anew, run.id, t.Now); err != nil {
		return fmt.Errorf("begin the run's counts anew: %w", err)
	}
	const requests = `
UPDATE wakeup_requests
SET retry_count = 0, scheduled_retry_at = NULL, retry_source = NULL
WHERE run_id = $1 AND status IN ('QUEUED', 'COALESCED') AND finished_at IS NULL`
	if _, err := pgtx.Exec(ctx, t, requests, run.id); err != nil {
		return fmt.Errorf("begin the requests' counts anew: %w", err)
	}
	was := pgtx.OrZero(run.parkedReason)
	if err := t.runEvent(ctx, run, domain.RunEventKindRetryScheduled, 0, withNote(map[string]any{"until": t.Now, "asked": true, "was": was}, note)); err != nil {
		return err
	}
	if err := t.noteRetry(ctx, run, note, map[string]any{"until": t.Now, "was": was}); err != nil {
		return err
	}
	return t.fixHead(ctx, l)
}

// retryEnded sends the requests of a run that ended again which still have their reason.
func (t *tx) retryEnded(ctx context.Context, l lane, run runRow, ended int, holding []xid.ID, note string) error {
	if len(holding) == 0 && ended == 0 {
		return domain.RefuseField([]string{"runId"}, domain.UserErrorCodeInvalidState,
			"nothing is left to send again: the run's wakeups were sent again before, or their routine was deleted")
	}
	if len(holding) == 0 {
		return domain.RefuseField([]string{"runId"}, domain.UserErrorCodeInvalidState,
			"the run's wakeups have lost their reason: its task has ended, or is another agent's by now; move or assign it first, or ask for a run (queueRun)")
	}
	if err := t.resend(ctx, l, holding); err != nil {
		return err
	}
	if _, err := pgtx.Exec(ctx, t, `UPDATE wakeup_requests SET retry_count = 0, unattended = false WHERE id = ANY($1)`, pgtx.IDs(holding)); err != nil {
		return fmt.Errorf("begin the requests' counts anew: %w", err)
	}
	t.Publish(event.Event{Kind: event.Run, WorkspaceID: run.workspaceID, ID: run.id})
	return t.noteRetry(ctx, run, note, map[string]any{"was": run.status, "resent": len(holding), "resentRequestIds": firstListed(holding)})
}

// noteRetry says in the feed who wants the run to be tried now.
func (t *tx) noteRetry(ctx context.Context, run runRow, note string, data map[string]any) error {
	return t.activity(ctx, run, domain.ActivityCodeWakeupRetryScheduled, callerOr(ctx, "retry"), "The run is to be tried now, as was asked.", withNote(data, note))
}
