package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

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
	t.publishCancel(run.workspaceID, run.id)
	if run.cancelRequestedAt != nil { // it was asked for before
		return nil
	}
	return t.activity(ctx, run, domain.ActivityCodeRunCancelRequested, callerOr(ctx, "cancel"), "The end of the live run was asked for.",
		withNote(map[string]any{"reason": domain.EndReasonCancelledByUser}, note))
}

// publishCancel tells the owner of a live run, and whoever looks at it, that it is to end.
func (t *tx) publishCancel(workspaceID, runID xid.ID) {
	t.Publish(event.Event{Kind: event.Run, WorkspaceID: workspaceID, ID: runID}, event.Event{Kind: event.Cancel, WorkspaceID: workspaceID, ID: runID})
}

var cancelledByUser = domain.Settlement{Run: domain.RunStatusCancelled, Request: domain.WakeupStatusCancelled,
	Reason: domain.EndReasonCancelledByUser, Activity: domain.ActivityCodeRunCancelled}

// cancelLive ends a live run because a person asked for that or deleted its agent.
func (t *tx) cancelLive(ctx context.Context, run runRow) error {
	return t.cancelAll(ctx, []runRow{run})
}

// cancelAll ends live runs because people asked for that or deleted their agents. Their requests end with them, delivered or not
// (C305). Events that came after the prompt was sent do not, because nobody has seen them.
func (t *tx) cancelAll(ctx context.Context, runs []runRow) error {
	if len(runs) == 0 {
		return nil
	}
	asked, err := t.whoAsked(ctx, runs)
	if err != nil {
		return err
	}
	launched := slices.DeleteFunc(slices.Clone(runs), func(run runRow) bool { return !run.launched() })
	if err := t.sendAgainUndelivered(ctx, launched); err != nil {
		return err
	}
	ends, byReason := make([]ending, len(runs)), map[domain.EndReason][]runRow{}
	for i, run := range runs {
		by := asked[run.id]
		byReason[by.reason] = append(byReason[by.reason], run)
		ends[i] = ending{run, runEnd{status: domain.RunStatusCancelled, reason: &by.reason, event: domain.RunEventKindCancelled,
			eventData: run.endData(map[string]any{"reason": by.reason}),
			told:      aboutRun(run, domain.ActivityCodeRunCancelled, system("cancel"), "The live run was ended as asked.", withNote(map[string]any{"reason": by.reason}, by.note))}}
	}
	if err := t.endRuns(ctx, ends); err != nil {
		return err
	}
	for reason, some := range byReason {
		if _, err := t.endRequestsOf(ctx, some, domain.Settlement{Request: domain.WakeupStatusCancelled, Reason: reason}); err != nil {
			return err
		}
	}
	for _, run := range runs {
		t.leaveClaimed(run, leave{attempt: domain.RunAttemptStatusCancelled, launched: run.launched()})
	}
	return nil
}

// cancelAsked is why a live run is to end, and what the person said who asked for it.
type cancelAsked struct {
	reason domain.EndReason
	note   string
}

func (t *tx) whoAsked(ctx context.Context, runs []runRow) (map[xid.ID]cancelAsked, error) {
	asked := map[xid.ID]cancelAsked{}
	const query = `
SELECT r.id, a.deleted_at IS NOT NULL, coalesce(r.cancel_note, '')
FROM runs r
JOIN agents a ON a.id = r.agent_id
WHERE r.id = ANY($1)`
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (by cancelAsked, err error) {
		var id xid.ID
		var deleted bool
		err = rows.Scan(&id, &deleted, &by.note)
		by.reason = domain.CancelReason(deleted)
		asked[id] = by
		return by, err
	}, query, pgtx.IDs(idsOf(runs)))
	if err == nil && len(asked) != len(runs) {
		err = fmt.Errorf("%d of %d have an agent", len(asked), len(runs))
	}
	return asked, pgtx.Wrap("read who asked for the cancel", err)
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
