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

// Acceptance is the word of an agent service that it has taken a run and reports the end itself (SPEC S7.1). Left is what is left of
// Timeout; Grace is for its report once it was asked to end.
type Acceptance struct {
	Fresh                bool // as in Success
	Left, Timeout, Grace time.Duration
}

// Accept gives a live attempt over to its agent service. From now on no process has it, so that it outlives the process
// that called. Its lease ends with the run's time. ErrFenced when it is not the live one any more, as when the service
// has already reported.
func (s *Attempts) Accept(ctx context.Context, a Attempt, in Acceptance) error {
	return pgtx.Wrap("give the run to its service", s.withLive(ctx, a, func(t *tx, run runRow) error {
		if err := t.keepPrompt(ctx, run, in.Fresh); err != nil {
			return err
		}
		const query = `
-- $1 run, $2 attempt, $3 now, $4 when the service must have answered, $5 timeout in ms, $6 grace in ms
UPDATE attempt_leases SET accepted_at = $3, lease_until = $4, timeout_ms = $5, grace_ms = $6,
  -- no process of ours holds it any more, so that a restart of the server rescues nothing
  host = NULL, boot_id = NULL, owner_pid = NULL, owner_started = NULL, process_group = NULL, process_started = NULL
WHERE run_id = $1 AND attempt = $2`
		err := pgtx.ExecOne(ctx, t, query, run.id, run.attempt, t.Now, t.Now.Add(max(in.Left, 0)), in.Timeout.Milliseconds(), in.Grace.Milliseconds())
		if err != nil {
			return fmt.Errorf("write the service's lease: %w", err)
		}
		if run.cancelRequestedAt == nil {
			return nil
		}
		return t.askToEnd(ctx, []xid.ID{run.id})
	}))
}

// EndAccepted deals with an attempt that its service has accepted and not ended in time. First it asks the service to
// end. When the grace is over, too, it ends the attempt. It returns false when the attempt is not the live one any
// more, or its time is not up.
func (s *Attempts) EndAccepted(ctx context.Context, a Attempt) (bool, error) {
	err := s.withLive(ctx, a, func(t *tx, run runRow) error {
		services, err := t.servicesOf(ctx, []xid.ID{run.id})
		if err != nil {
			return err
		}
		service := services[run.id]
		if !service.accepted || !service.until.Before(t.Now) {
			return ErrFenced
		}
		switch domain.AfterServiceTime(service.asked, run.cancelRequestedAt != nil, service.grace) {
		case domain.FateAsk:
			return t.askToEnd(ctx, []xid.ID{run.id})
		case domain.FateCancel:
			return t.cancelLive(ctx, run)
		}
		if err := t.keepLostSession(ctx, run); err != nil {
			return err
		}
		return t.failed(ctx, []failedRun{{run, Failure{Code: domain.RunErrorCodeTimeout, Message: domain.ServiceTimeout(service.timeout)}}})
	})
	if errors.Is(err, ErrFenced) {
		return false, nil
	}
	return err == nil, pgtx.Wrap("end what a service has accepted", err)
}

// service is what a lease says of the agent service that has accepted its run, the zero value for any other.
type service struct {
	accepted, asked bool
	until           time.Time
	timeout, grace  time.Duration
}

// servicesOf reads and locks the leases of live runs, in the order of the runs.
func (t *tx) servicesOf(ctx context.Context, runs []xid.ID) (map[xid.ID]service, error) {
	found := map[xid.ID]service{}
	const query = `
SELECT run_id, accepted_at IS NOT NULL, ending_at IS NOT NULL, lease_until, timeout_ms, grace_ms
FROM attempt_leases
WHERE run_id = ANY($1)
ORDER BY run_id
FOR NO KEY UPDATE`
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (s service, err error) {
		var run xid.ID
		var timeout, grace int64
		err = rows.Scan(&run, &s.accepted, &s.asked, &s.until, &timeout, &grace)
		s.timeout, s.grace = time.Duration(timeout)*time.Millisecond, time.Duration(grace)*time.Millisecond
		found[run] = s
		return s, err
	}, query, pgtx.IDs(runs))
	return found, pgtx.Wrap("read the services' leases", err)
}

// tooLate makes services' own reports of failures ones of their timeouts when they were asked to end for that.
func (t *tx) tooLate(ctx context.Context, list []failedRun) error {
	var runs []xid.ID
	for _, x := range list {
		runs = append(runs, x.run.id)
	}
	if len(runs) == 0 {
		return nil
	}
	services, err := t.servicesOf(ctx, runs)
	if err != nil {
		return err
	}
	for i := range list {
		x := &list[i]
		if of := services[x.run.id]; of.asked && x.run.cancelRequestedAt == nil {
			x.Code, x.Message = domain.RunErrorCodeTimeout, domain.ServiceTimeout(of.timeout)+"; asked to end, it said: "+x.Message
		}
	}
	return nil
}
