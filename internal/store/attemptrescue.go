package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// HandBack returns a live attempt to the queue because its process shuts down: INTERRUPTED, which counts neither as a
// failure nor as an abandonment (SPEC S11). The number is spent. What it used counts, and its session is resumed. ErrFenced when it is not the live one any more.
func (s *Attempts) HandBack(ctx context.Context, a Attempt, u Unfinished) error {
	return pgtx.Wrap("hand run back", s.transit(ctx, &transition{Attempt: a, kind: toHandBack, unfinished: u}))
}

// Leftover is a live lease of another process, with what identifies that process and the agent's process group. Expired
// is by the database's clock.
type Leftover struct {
	Attempt
	WorkspaceID, AgentID, CausationID xid.ID
	OwnerHost, OwnerBootID            string
	OwnerPID                          int
	OwnerStarted                      int64
	Group                             ProcessGroup
	LeaseUntil                        time.Time
	Expired                           bool
	Accepted                          bool // by an agent service: no process has it
}

// Leases lists the leases that may need rescue. These are the leases of other owners on this host, which may be found
// dead, and all that ran out. The caller's own are included, because an owner that lost track of an attempt does not
// renew it either.
func (s *Attempts) Leases(ctx context.Context, owner xid.ID, host string) ([]Leftover, error) {
	const query = `
SELECT run_id, attempt, owner, coalesce(host, ''), coalesce(boot_id, ''), coalesce(owner_pid, 0),
  coalesce(owner_started, 0), coalesce(process_group, 0), coalesce(process_started, 0), lease_until,
  lease_until < clock_timestamp(), workspace_id, agent_id,
  (SELECT causation_id FROM runs r WHERE r.id = run_id), accepted_at IS NOT NULL
FROM attempt_leases
WHERE lease_until < clock_timestamp() OR (host = $2 AND owner IS DISTINCT FROM $1)
ORDER BY run_id`
	leftovers, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (l Leftover, err error) {
		err = rows.Scan(&l.RunID, &l.Number, &l.Owner, &l.OwnerHost, &l.OwnerBootID, &l.OwnerPID, &l.OwnerStarted,
			&l.Group.PGID, &l.Group.Started, &l.LeaseUntil, &l.Expired, &l.WorkspaceID, &l.AgentID, &l.CausationID, &l.Accepted)
		l.Group.Host, l.Group.BootID = l.OwnerHost, l.OwnerBootID
		return l, err
	}, query, owner, host)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	return leftovers, nil
}

// Abandon ends an attempt whose owner is gone (SPEC S8.4). The attempt is ABANDONED, and the run is tried again as its
// next attempt. It is due at once when no agent can have been at work, else after a wait. The fifth such loss fails the
// run. dead says that the owner was seen to be dead; without it the lease must have run out, by the database's clock.
// It returns false when the attempt is not the live one any more, or its lease was renewed.
func (s *Attempts) Abandon(ctx context.Context, a Attempt, dead bool) (bool, error) {
	err := s.withLive(ctx, a, func(t *tx, run runRow) error {
		if !dead {
			expired, err := pgtx.QueryOne[bool](ctx, t, `SELECT lease_until < $2 FROM attempt_leases WHERE run_id = $1 FOR NO KEY UPDATE`, run.id, t.Now)
			if err != nil {
				return fmt.Errorf("read the lease: %w", err)
			}
			if !expired {
				return ErrFenced
			}
		}
		return t.abandon(ctx, run)
	})
	if errors.Is(err, ErrFenced) {
		return false, nil
	}
	return err == nil, pgtx.Wrap("abandon attempt", err)
}

func (t *tx) abandon(ctx context.Context, run runRow) error {
	loss := domain.AfterLoss(domain.LossFacts{Launched: run.launched(), Losses: run.abandonments, CancelRequested: run.cancelRequestedAt != nil})
	if err := pgtx.ExecOne(ctx, t, `UPDATE runs SET abandonments = $2 WHERE id = $1`, run.id, loss.Losses); err != nil {
		return fmt.Errorf("count the loss: %w", err)
	}
	if err := t.keepLostSession(ctx, run); err != nil {
		return err
	}
	if err := t.rememberLostCall(ctx, run); err != nil {
		return err
	}
	switch loss.Fate {
	case domain.FateCancel:
		return t.cancelLive(ctx, run)
	case domain.FateFail:
		f := Failure{Code: domain.RunErrorCodeLeaseLost, Permanent: true,
			Message: fmt.Sprintf("the process that ran it was lost %d times; look whether this run brings it down, then let it be tried again (retryRun)", loss.Losses)}
		return t.fail(ctx, run, f, domain.EndReasonRetriesExhausted, domain.RunAttemptStatusAbandoned)
	case domain.FateRetry:
		return t.waitAfterLoss(ctx, run, loss)
	}
	if err := t.activity(ctx, run, domain.ActivityCodeRunRescued, system("rescue"), "The process that ran it was lost; the run is due again.",
		map[string]any{"attempt": domain.RunAttemptStatusAbandoned, "losses": loss.Losses}); err != nil {
		return err
	}
	return t.giveBack(ctx, run, domain.RunAttemptStatusAbandoned, false)
}

// waitAfterLoss parks a run whose process was lost while its agent may have been at work.
func (t *tx) waitAfterLoss(ctx context.Context, run runRow, loss domain.Loss) error {
	until := t.Now.Add(loss.Wait)
	data := map[string]any{"attempt": domain.RunAttemptStatusAbandoned, "parked": domain.ParkedReasonBackoff, "until": until, "losses": loss.Losses}
	if err := t.activity(ctx, run, domain.ActivityCodeRunRescued, system("rescue"), "The process that ran it was lost; the run is tried again after a wait.", maps.Clone(data)); err != nil {
		return err
	}
	if err := t.requeue(ctx, run, pgtx.Ptr(domain.ParkedReasonBackoff), &until); err != nil {
		return err
	}
	const requests = `
UPDATE wakeup_requests
SET scheduled_retry_at = $2, retry_source = $3
WHERE run_id = $1 AND status IN ('QUEUED', 'COALESCED') AND finished_at IS NULL`
	if _, err := pgtx.Exec(ctx, t, requests, run.id, until, domain.RetrySourceBackoff); err != nil {
		return fmt.Errorf("plan the requests' retry: %w", err)
	}
	if err := t.runEvent(ctx, run, domain.RunEventKindRecovered, run.attempt, run.endData(data)); err != nil {
		return err
	}
	t.leaveClaimed(run, leave{attempt: domain.RunAttemptStatusAbandoned, launched: true})
	return nil
}
