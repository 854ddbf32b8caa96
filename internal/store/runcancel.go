package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// CancelRun ends a QUEUED run at once, with all its requests; of a live one it raises a flag that the owner obeys and
// that rescue and retry honour (SPEC S7.7). A run that has ended is a user error. It returns the requests that are sent
// again since the run let go of its task.
func (s *Queue) CancelRun(ctx context.Context, workspaceID, runID xid.ID, note string) (resent []xid.ID, err error) {
	if err := checkNote(note); err != nil {
		return nil, err
	}
	agentID, err := pgtx.QueryOne[xid.ID](ctx, s.db, `SELECT agent_id FROM runs WHERE id = $1 AND workspace_id = $2`, runID, workspaceID)
	if err != nil {
		return nil, pgtx.NotFound(err, []string{"runId"}, "run", runID)
	}
	err = s.inTx(ctx, func(t *tx) error {
		l, err := t.lockLane(ctx, agentID)
		if err != nil {
			return err
		}
		run, err := t.lockRun(ctx, runID)
		if err != nil {
			return err
		}
		if err := t.cancel(ctx, l, run, note); err != nil {
			return err
		}
		err = t.leaveAll(ctx) // what a task's lock held up is sent again by it
		resent = t.sent
		return err
	})
	return resent, pgtx.Wrap("cancel run", err)
}

func (t *tx) cancel(ctx context.Context, l lane, run runRow, note string) error {
	switch run.status {
	case domain.RunStatusQueued:
		cancelled := cancelledByUser
		cancelled.Note = note
		if err := t.settle(ctx, run, cancelled); err != nil {
			return err
		}
		return t.fixHead(ctx, l)
	case domain.RunStatusClaimed:
		offered, err := t.isOffered(ctx, run)
		if err != nil {
			return err
		}
		if offered { // nobody is there to obey a flag
			if err := t.noteCancel(ctx, run, note); err != nil {
				return err
			}
			return t.cancelLive(ctx, run)
		}
		return t.noteCancel(ctx, run, note)
	}
	return domain.RefuseField([]string{"runId"}, domain.UserErrorCodeAlreadyTerminal, "the run has already ended %s", run.status)
}

// noteCancel raises the flag that the owner of a live run obeys.
func (t *tx) noteCancel(ctx context.Context, run runRow, note string) error {
	const flag = `
UPDATE runs
SET cancel_requested_at = coalesce(cancel_requested_at, $2),
  cancel_note = coalesce(cancel_note, NULLIF($3, '')), revision = revision + 1
WHERE id = $1`
	if err := pgtx.ExecOne(ctx, t, flag, run.id, t.Now, note); err != nil {
		return fmt.Errorf("ask for the cancel: %w", err)
	}
	if err := t.askToEnd(ctx, []xid.ID{run.id}); err != nil {
		return err
	}
	t.Publish(event.Event{Kind: event.Run, WorkspaceID: run.workspaceID, ID: run.id})
	if run.cancelRequestedAt != nil { // it was asked for before
		return nil
	}
	return t.activity(ctx, run, domain.ActivityCodeRunCancelRequested, callerOr(ctx, "cancel"), "The end of the live run was asked for.",
		withNote(map[string]any{"reason": domain.EndReasonCancelledByUser}, note))
}

var cancelledByUser = domain.Settlement{Run: domain.RunStatusCancelled, Request: domain.WakeupStatusCancelled,
	Reason: domain.EndReasonCancelledByUser, Activity: domain.ActivityCodeRunCancelled}

// cancelLive ends a live run because a person asked for that or deleted its agent. Its requests end with it, delivered
// or not (C305). Events that came after the prompt was sent do not, because nobody has seen them.
func (t *tx) cancelLive(ctx context.Context, run runRow) error {
	var deleted bool
	var note string
	const query = `
SELECT a.deleted_at IS NOT NULL, coalesce(r.cancel_note, '')
FROM runs r
JOIN agents a ON a.id = r.agent_id
WHERE r.id = $1`
	if err := pgtx.QueryRow(ctx, t, []any{&deleted, &note}, query, run.id); err != nil {
		return fmt.Errorf("read who asked for the cancel: %w", err)
	}
	launched := run.launched()
	if launched {
		if err := t.sendAgainUndelivered(ctx, run); err != nil {
			return err
		}
	}
	reason := domain.CancelReason(deleted)
	err := t.endRun(ctx, run, runEnd{status: domain.RunStatusCancelled, reason: &reason, event: domain.RunEventKindCancelled, eventData: run.endData(map[string]any{"reason": reason})})
	if err != nil {
		return err
	}
	if _, err := t.endRequestsOf(ctx, []runRow{run}, domain.Settlement{Request: domain.WakeupStatusCancelled, Reason: reason}); err != nil {
		return err
	}
	if err := t.activity(ctx, run, domain.ActivityCodeRunCancelled, system("cancel"), "The live run was ended as asked.", withNote(map[string]any{"reason": reason}, note)); err != nil {
		return err
	}
	t.leaveClaimed(run, leave{attempt: domain.RunAttemptStatusCancelled, launched: launched})
	return nil
}

// withNote adds what a person said to the facts of an entry, if there is anything.
func withNote(data map[string]any, note string) map[string]any {
	if note != "" {
		data["note"] = note
	}
	return data
}

// askToEnd begins the grace of services that have accepted runs. Heartbeats ask them to end, and an end that they
// report is taken until the grace is over. The runs are locked; those that no service has stay as they are.
func (t *tx) askToEnd(ctx context.Context, runs []xid.ID) error {
	const query = `
UPDATE attempt_leases
SET ending_at = $2::timestamptz, lease_until = $2::timestamptz + grace_ms * interval '1 millisecond'
WHERE run_id = ANY($1) AND accepted_at IS NOT NULL AND ending_at IS NULL`
	_, err := pgtx.Exec(ctx, t, query, pgtx.IDs(runs), t.Now)
	return pgtx.Wrap("ask the service to end", err)
}
