package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// RunOfAgent names a run, and the agent whose lane is locked first. A run's agent never changes.
type RunOfAgent struct{ RunID, AgentID xid.ID }

// cancelBatch bounds the runs that one transaction cancels.
const cancelBatch = 100

// cancelled is what one transaction cancelled, and the requests that are sent again since runs let go of their tasks.
type cancelled struct {
	ended  []RunCancelled
	resent []xid.ID
}

// cancelSome cancels runs, at most cancelBatch, in one transaction and in as many statements for all as for one of each state. What
// has ended meanwhile is left as it is.
func (s *Queue) cancelSome(ctx context.Context, some []RunOfAgent, note string) (cancelled, error) {
	return s.cancelSomeOr(ctx, some, note, false)
}

// cancelSomeOr is cancelSome, or with dry says what that would do.
func (s *Queue) cancelSomeOr(ctx context.Context, some []RunOfAgent, note string, dry bool) (done cancelled, err error) {
	if len(some) == 0 {
		return done, nil
	}
	err = s.inTx(ctx, func(t *tx) error {
		done = cancelled{}
		var agents []string
		var ids []xid.ID
		for _, r := range some {
			agents, ids = append(agents, string(r.AgentID)), append(ids, r.RunID)
		}
		if _, err := t.lockLanesIn(ctx, agents); err != nil {
			return err
		}
		const lock = `SELECT ` + runColumns + ` FROM runs r WHERE r.id = ANY($1) ORDER BY r.id FOR NO KEY UPDATE`
		runs, err := pgtx.Collect(ctx, t, scanRun, lock, pgtx.IDs(ids))
		if err != nil {
			return fmt.Errorf("lock the runs: %w", err)
		}
		if done.ended, err = t.cancelLocked(ctx, runs, note); err != nil {
			return err
		}
		err = t.leaveAll(ctx) // what tasks' locks held up is sent again by it
		done.resent = t.sent
		if err == nil && dry {
			err = errDryRun
		}
		return err
	})
	if errors.Is(err, errDryRun) {
		return cancelled{ended: done.ended}, nil
	}
	return done, pgtx.Wrap("cancel runs", err)
}

// cancelLocked cancels locked runs of locked lanes, and says what became of each.
func (t *tx) cancelLocked(ctx context.Context, runs []runRow, note string) ([]RunCancelled, error) {
	offered, err := t.offeredOf(ctx, runs)
	if err != nil {
		return nil, err
	}
	byOutcome := map[domain.CancelOutcome][]runRow{}
	became := make([]RunCancelled, len(runs))
	for i, run := range runs {
		outcome := domain.CancelRun(run.status, offered[run.id])
		became[i] = RunCancelled{run.id, outcome}
		byOutcome[outcome] = append(byOutcome[outcome], run)
	}
	var queued, live []runRow
	for _, run := range byOutcome[domain.CancelEnded] {
		if run.status == domain.RunStatusQueued {
			queued = append(queued, run)
		} else {
			live = append(live, run)
		}
	}
	if err := t.cancelQueued(ctx, queued, note); err != nil {
		return nil, err
	}
	if err := t.noteCancels(ctx, append(slices.Clone(live), byOutcome[domain.CancelAsked]...), note); err != nil {
		return nil, err
	}
	return became, t.cancelAll(ctx, live)
}

// cancelQueued ends queued runs as cancelRun does, and looks for the heads of their lanes.
func (t *tx) cancelQueued(ctx context.Context, runs []runRow, note string) error {
	if len(runs) == 0 {
		return nil
	}
	end := cancelledByUser
	end.Note = note
	if err := t.settleAll(ctx, runs, end); err != nil {
		return err
	}
	var agents []xid.ID
	for _, run := range runs {
		agents = append(agents, run.agentID)
	}
	return t.fixHeadsOf(ctx, pgtx.Distinct(agents))
}

// offeredOf says which of the runs wait for a worker, so that nobody is there to obey a flag.
func (t *tx) offeredOf(ctx context.Context, runs []runRow) (map[xid.ID]bool, error) {
	const query = `SELECT run_id FROM attempt_leases WHERE run_id = ANY($1) AND owner IS NULL`
	list, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, pgtx.IDs(idsOf(runs)))
	offered := map[xid.ID]bool{}
	for _, id := range list {
		offered[id] = true
	}
	return offered, pgtx.Wrap("look which runs wait for a worker", err)
}

// noteCancels is noteCancel for several runs.
func (t *tx) noteCancels(ctx context.Context, runs []runRow, note string) error {
	if len(runs) == 0 {
		return nil
	}
	const flag = `
-- $1 runs, $2 now, $3 note, or "", $4 entries about those whose end was not asked for before, as JSON
WITH flagged AS (
  UPDATE runs
  SET cancel_requested_at = coalesce(cancel_requested_at, $2),
    cancel_note = coalesce(cancel_note, NULLIF($3, '')), revision = revision + 1
  WHERE id = ANY($1)
  RETURNING 1),
`
	query := flag + `told AS (` + entriesInto("$4", "$2") + ` RETURNING 1)
SELECT (SELECT count(*) FROM flagged)`
	var entries []entry
	for _, run := range runs {
		t.publishCancel(run.workspaceID, run.id)
		if run.cancelRequestedAt == nil {
			entries = append(entries, *aboutRun(run, domain.ActivityCodeRunCancelRequested, callerOr(ctx, "cancel"), "The end of the live run was asked for.",
				withNote(map[string]any{"reason": domain.EndReasonCancelledByUser}, note)))
		}
	}
	encoded, err := t.encodeEntries(entries)
	if err != nil {
		return err
	}
	if _, err := pgtx.QueryOne[int](ctx, t, query, pgtx.IDs(idsOf(runs)), t.Now, note, encoded); err != nil {
		return fmt.Errorf("ask for the cancels: %w", err)
	}
	return t.askToEnd(ctx, idsOf(runs))
}
