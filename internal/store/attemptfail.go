package store

import (
	"context"
	"database/sql"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Fail ends an attempt badly: the run is parked until its retry, or fails for good and escalates (SPEC S8.1), or is
// CANCELLED when that was asked. ErrFenced when the attempt is not the live one any more.
func (s *Attempts) Fail(ctx context.Context, a Attempt, f Failure) error {
	u := Unfinished{f.Result, f.SessionID, f.Resumable, f.Fresh, f.Usage}
	return pgtx.Wrap("fail run", s.transit(ctx, &transition{Attempt: a, kind: toFail, failure: f, unfinished: u}))
}

// endUnfinished ends attempts that did not succeed. What they brought back is taken in; then the runs are ended, or put back
// into the queue, together.
func (t *tx) endUnfinished(ctx context.Context, list []*transition) error {
	if len(list) == 0 {
		return nil
	}
	taken := make([]takenIn, len(list))
	for i, x := range list {
		taken[i] = takenIn{&x.run, x.unfinished, x.kind.why()}
	}
	if err := t.takeIn(ctx, taken); err != nil {
		return err
	}
	var failures []failedRun
	var cancelled []runRow
	var back []putBack
	for _, x := range list {
		switch {
		case x.kind == toFail:
			t.countLaunch(x.run, x.failure.SessionID)
			failures = append(failures, failedRun{x.run, x.failure})
		case x.kind == toCancel || x.run.cancelRequestedAt != nil:
			cancelled = append(cancelled, x.run)
		default:
			back = append(back, givenBack(x.run, domain.RunAttemptStatusInterrupted, false))
		}
	}
	if err := t.tooLate(ctx, failures); err != nil {
		return err
	}
	if err := t.failed(ctx, failures); err != nil {
		return err
	}
	if err := t.cancelAll(ctx, cancelled); err != nil {
		return err
	}
	return t.putBackAll(ctx, back)
}

// failedRun is a live run whose attempt failed.
type failedRun struct {
	run runRow
	Failure
}

// failed decides what becomes of live runs whose attempts failed, and does it.
func (t *tx) failed(ctx context.Context, list []failedRun) error {
	if len(list) == 0 {
		return nil
	}
	counts, err := t.retryCounts(ctx, list)
	if err != nil {
		return err
	}
	var cancelled []runRow
	var back []putBack
	for _, x := range list {
		plan := retry.Plan(t.Now, counts[x.run.id], evidenceOf(x.Failure), t.base.jitter())
		if plan.RateLimited {
			x.Code = domain.RunErrorCodeRateLimited
		}
		switch domain.AfterFailure(plan.GiveUp, x.Permanent || x.Code.RefusesAccount(), x.run.cancelRequestedAt != nil) {
		case domain.FateCancel:
			cancelled = append(cancelled, x.run)
		case domain.FateFail: // which is rare, and has a word for each who should know
			if err := t.fail(ctx, x.run, x.Failure, domain.EndReasonRetriesExhausted, domain.RunAttemptStatusFailed); err != nil {
				return err
			}
		default:
			back = append(back, retried(x.run, x.Failure, plan))
		}
	}
	if err := t.cancelAll(ctx, cancelled); err != nil {
		return err
	}
	return t.putBackAll(ctx, back)
}

// evidenceOf is what a failure says about when to try again. An account that is refused is no limit, though the words about it often
// speak of quotas.
func evidenceOf(f Failure) retry.Evidence {
	if f.Code.RefusesAccount() {
		return retry.Evidence{}
	}
	return retry.Evidence{Words: f.Words, Zone: f.Zone, Limited: f.Code == domain.RunErrorCodeRateLimited, After: f.RetryAfter}
}

// retryCounts is what runs have behind them.
func (t *tx) retryCounts(ctx context.Context, list []failedRun) (map[xid.ID]retry.Counts, error) {
	counts := map[xid.ID]retry.Counts{}
	var ids []xid.ID
	for _, x := range list {
		ids = append(ids, x.run.id)
	}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (c retry.Counts, err error) {
		var id xid.ID
		var since *time.Time
		err = rows.Scan(&id, &c.Retries, &c.Limits, &since)
		c.LimitedSince = pgtx.OrZero(since)
		counts[id] = c
		return c, err
	}, `SELECT id, retry_count, limits, limited_since FROM runs WHERE id = ANY($1)`, pgtx.IDs(ids))
	return counts, pgtx.Wrap("read the runs' limits", err)
}

// fail ends a run for good and escalates: an inbox item, and an AGENT_ERROR to the coordinator, except about itself.
func (t *tx) fail(ctx context.Context, run runRow, f Failure, reason domain.EndReason, attempt domain.RunAttemptStatus) error {
	if err := t.failRequests(ctx, run, f, reason); err != nil {
		return err
	}
	err := t.endRun(ctx, run, runEnd{status: domain.RunStatusFailed, reason: &reason, sessionID: f.SessionID, failure: &f,
		event: domain.RunEventKindFailed, eventData: run.endData(map[string]any{"code": f.Code, "reason": reason}),
		told: aboutRun(run, domain.ActivityCodeRunFailed, system("retry"), "The run gave up: "+f.Message, map[string]any{"code": f.Code, "reason": reason})})
	if err != nil {
		return err
	}
	if err := t.endFiresOfTasks(ctx, []xid.ID{run.taskID}, routineRunEnd{status: domain.RoutineRunStatusFailed, err: f.Message}); err != nil {
		return err
	}
	if err := t.escalate(ctx, run, f); err != nil {
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
func (t *tx) escalate(ctx context.Context, run runRow, f Failure) error {
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
