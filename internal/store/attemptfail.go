package store

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Fail ends an attempt badly: the run is parked until its retry, or fails for good and escalates (SPEC S8.1), or is
// CANCELLED when that was asked. ErrFenced when the attempt is not the live one any more.
func (s *Attempts) Fail(ctx context.Context, a Attempt, f Failure) error {
	err := s.withLive(ctx, a, func(t *tx, run runRow) error {
		run, err := t.takeIn(ctx, run, Unfinished{f.Result, f.SessionID, f.Resumable, f.Fresh, f.Usage}, "the attempt failed")
		if err != nil {
			return err
		}
		t.countLaunch(run, f.SessionID)
		if f, err = t.tooLate(ctx, run, f); err != nil {
			return err
		}
		return t.failed(ctx, run, f, s.jitter())
	})
	return pgtx.Wrap("fail run", err)
}

// failed decides what becomes of a live run whose attempt failed, and does it.
func (t *tx) failed(ctx context.Context, run runRow, f Failure, jitter float64) error {
	counts, err := t.retryCounts(ctx, run)
	if err != nil {
		return err
	}
	plan := retry.Plan(t.Now, counts, evidenceOf(f), jitter)
	if plan.RateLimited {
		f.Code = domain.RunErrorCodeRateLimited
	}
	switch domain.AfterFailure(plan.GiveUp, f.Permanent || f.Code.RefusesAccount(), run.cancelRequestedAt != nil) {
	case domain.FateCancel:
		return t.cancelLive(ctx, run)
	case domain.FateFail:
		return t.fail(ctx, run, f, domain.EndReasonRetriesExhausted, domain.RunAttemptStatusFailed)
	}
	return t.planRetry(ctx, run, f, plan)
}

// evidenceOf is what a failure says about when to try again. An account that is refused is no limit, though the words about it often
// speak of quotas.
func evidenceOf(f Failure) retry.Evidence {
	if f.Code.RefusesAccount() {
		return retry.Evidence{}
	}
	return retry.Evidence{Words: f.Words, Zone: f.Zone, Limited: f.Code == domain.RunErrorCodeRateLimited, After: f.RetryAfter}
}

// retryCounts is what a run has behind it.
func (t *tx) retryCounts(ctx context.Context, run runRow) (c retry.Counts, err error) {
	c.Retries = run.retryCount
	var since *time.Time
	err = pgtx.QueryRow(ctx, t, []any{&c.Limits, &since}, `SELECT limits, limited_since FROM runs WHERE id = $1`, run.id)
	if since != nil {
		c.LimitedSince = *since
	}
	return c, pgtx.Wrap("read the run's limits", err)
}

// planRetry parks the run until its retry; its requests wait with it.
func (t *tx) planRetry(ctx context.Context, run runRow, f Failure, plan retry.Decision) error {
	reason := domain.ParkedReasonBackoff
	var reset *time.Time
	if plan.Source == domain.RetrySourceRateLimitParsed {
		reason, reset = domain.ParkedReasonRateLimit, &plan.ParsedResetAt
	}
	if err := t.requeue(ctx, run, &reason, &plan.At); err != nil {
		return err
	}
	const note = `
-- $1 retries, $2 limits in a row, $3 now, $4 code, $5 message, $6 what plans the retry, $7 when the limit
-- ends, $8 session, $9 run
UPDATE runs
SET retry_count = $1, limits = $2::bigint,
  limited_since = CASE WHEN $2::bigint = 0 THEN NULL ELSE coalesce(limited_since, $3::timestamptz) END,
  error_code = $4, error_message = $5, error_retryable = true, retry_source = $6, rate_limit_reset_at = $7,
  session_id = coalesce(NULLIF($8, ''), session_id)
WHERE id = $9`
	if err := pgtx.ExecOne(ctx, t, note, plan.Counts.Retries, plan.Counts.Limits, t.Now, f.Code, f.Message, plan.Source, reset, f.SessionID, run.id); err != nil {
		return fmt.Errorf("note the failure: %w", err)
	}
	const requests = `
UPDATE wakeup_requests
SET retry_count = retry_count + $4::bigint, scheduled_retry_at = $2, retry_source = $3
WHERE run_id = $1 AND status IN ('QUEUED', 'COALESCED')`
	if _, err := pgtx.Exec(ctx, t, requests, run.id, plan.At, plan.Source, plan.Counts.Retries-run.retryCount); err != nil {
		return fmt.Errorf("plan the requests' retry: %w", err)
	}
	data := map[string]any{"until": plan.At, "source": plan.Source, "failures": plan.Counts.Retries, "code": f.Code}
	if plan.RateLimited {
		data["limits"] = plan.Counts.Limits
	}
	if err := t.runEvent(ctx, run, domain.RunEventKindRetryScheduled, run.attempt, run.endData(maps.Clone(data))); err != nil {
		return err
	}
	if err := t.activity(ctx, run, domain.ActivityCodeWakeupRetryScheduled, system("retry"), "The attempt failed and will be tried again.", data); err != nil {
		return err
	}
	t.onCommit(func(s *base) {
		fields := keysOf(run, "code", strings.ToLower(string(f.Code)), "cause", f.Message, "until", plan.At, "retry_source", strings.ToLower(string(plan.Source)))
		if reset != nil {
			fields = append(fields, "parsed_reset_at", *reset)
		}
		s.log.Info("retry scheduled", fields...)
	})
	t.leaveClaimed(run, leave{attempt: domain.RunAttemptStatusFailed, failure: &f, launched: run.launched()})
	return nil
}

// fail ends a run for good and escalates: an inbox item, and an AGENT_ERROR to the coordinator, except about itself.
func (t *tx) fail(ctx context.Context, run runRow, f Failure, reason domain.EndReason, attempt domain.RunAttemptStatus) error {
	if err := t.failRequests(ctx, run, f, reason); err != nil {
		return err
	}
	err := t.endRun(ctx, run, runEnd{status: domain.RunStatusFailed, reason: &reason, sessionID: f.SessionID, failure: &f,
		event: domain.RunEventKindFailed, eventData: run.endData(map[string]any{"code": f.Code, "reason": reason})})
	if err != nil {
		return err
	}
	if err := t.endFiresOfTasks(ctx, []xid.ID{run.taskID}, routineRunEnd{status: domain.RoutineRunStatusFailed, err: f.Message}); err != nil {
		return err
	}
	if err := t.escalate(ctx, run, f, reason); err != nil {
		return err
	}
	t.leaveClaimed(run, leave{attempt: attempt, failure: &f, launched: run.launched()})
	return nil
}

// failRequests ends what the run was for. A run that was launched ends as any launched run does. A run that was not
// ends all its requests alike, undelivered ones too, because a re-send would only meet the same failure (SPEC S3.6,
// S3.8).
func (t *tx) failRequests(ctx context.Context, run runRow, f Failure, reason domain.EndReason) error {
	fire := routineRunEnd{status: domain.RoutineRunStatusFailed, err: f.Message}
	if !run.launched() {
		_, err := t.endRequestsAlike(ctx, []runRow{run}, domain.WakeupStatusFailed, reason, fire)
		return err
	}
	return t.endServedRequests(ctx, []runRow{run}, domain.WakeupStatusFailed, &reason, fire)
}

// escalate tells people and the coordinator that a run gave up (SPEC S8.1).
func (t *tx) escalate(ctx context.Context, run runRow, f Failure, reason domain.EndReason) error {
	if err := t.activity(ctx, run, domain.ActivityCodeRunFailed, system("retry"), "The run gave up: "+f.Message, map[string]any{"code": f.Code, "reason": reason}); err != nil {
		return err
	}
	if err := t.inbox(ctx, item{workspaceID: run.workspaceID, kind: domain.InboxKindAgentError, dedupe: "agent_error:" + string(run.id), title: "agent.error: a run of {agent} gave up",
		body: f.Message, subject: run.id, causationID: run.causationID, about: run.agentID, taskID: run.taskID}); err != nil {
		return err
	}
	coordinator, err := t.coordinatorOf(ctx, run.workspaceID, run.agentID)
	if err != nil || coordinator == "" {
		return err
	}
	_, _, err = t.insertRequest(ctx, newRequest{
		workspaceID: run.workspaceID, agentID: coordinator, causationID: run.causationID, scope: domain.ScopeTaskless,
		source: domain.WakeupSourceAgentError, class: domain.WakeClassEvent, reason: "a run of a colleague gave up",
		payload: &domain.AgentErrorPayload{FailedAgentID: string(run.agentID), FailedSessionID: pgtx.OrZero(run.sessionID), RunID: string(run.id), Error: f.Message},
		key:     "agent_error:" + string(run.id), hops: domain.NextHops(run.hops),
	})
	return err
}

// failWithoutExecutor ends a run that nobody said how to execute, at once (SPEC S6.4).
func (t *tx) failWithoutExecutor(ctx context.Context, run runRow) error {
	const message = "no executor: set one on the agent (createAgent, updateAgent), on the task's project, or as the workspace's default executor"
	return t.fail(ctx, run, Failure{Code: domain.RunErrorCodeLaunch, Message: message, Permanent: true},
		domain.EndReasonNoExecutor, domain.RunAttemptStatusFailed)
}
