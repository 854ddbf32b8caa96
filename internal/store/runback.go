package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// putBack is a live run that goes back into the queue: due at once, or parked until its retry.
type putBack struct {
	run   runRow
	retry *plannedRetry // nil: due at once
	leave
}

// plannedRetry is the retry of a run whose attempt failed.
type plannedRetry struct {
	failure Failure
	retry.Decision
}

// givenBack is a run that is due again, as its next attempt, at its old place in the order.
func givenBack(run runRow, attempt domain.RunAttemptStatus, launched bool) putBack {
	return putBack{run: run, leave: leave{attempt: attempt, launched: launched}}
}

// retried is a run that is parked until its retry; its requests wait with it.
func retried(run runRow, f Failure, plan retry.Decision) putBack {
	return putBack{run, &plannedRetry{f, plan}, leave{attempt: domain.RunAttemptStatusFailed, failure: &f, launched: run.launched()}}
}

// parked says why the run waits for its retry, and when the limit ends that it met.
func (p *plannedRetry) parked() (reason domain.ParkedReason, reset *time.Time) {
	if p.Source == domain.RetrySourceRateLimitParsed {
		return domain.ParkedReasonRateLimit, &p.ParsedResetAt
	}
	return domain.ParkedReasonBackoff, nil
}

// details are what the run's event and the feed tell of the retry.
func (p *plannedRetry) details() map[string]any {
	data := map[string]any{"until": p.At, "source": p.Source, "failures": p.Counts.Retries, "code": p.failure.Code}
	if p.RateLimited {
		data["limits"] = p.Counts.Limits
	}
	return data
}

// backRecord is a run that goes back as the statement that writes it reads it.
type backRecord struct {
	Run     xid.ID               `json:"run"`
	Number  int                  `json:"number"`
	Kind    domain.RunEventKind  `json:"kind"`
	Data    any                  `json:"data"`
	Due     *time.Time           `json:"due"`
	Parked  *domain.ParkedReason `json:"parked"`
	Until   *time.Time           `json:"until"`
	Retries *int                 `json:"retries"`
	Added   int                  `json:"added"`
	Limits  *int                 `json:"limits"`
	Code    *domain.RunErrorCode `json:"code"`
	Message *string              `json:"message"`
	Source  *domain.RetrySource  `json:"source"`
	Reset   *time.Time           `json:"reset"`
	Session string               `json:"session,omitempty"`
	feedRecord
}

func (b putBack) record(now time.Time) backRecord {
	run, p := b.run, b.retry
	r := backRecord{Run: run.id, Number: run.attempt}
	if p == nil {
		r.Kind, r.Due, r.Data = domain.RunEventKindRecovered, &now, run.endData(map[string]any{"attempt": b.attempt})
		return r
	}
	parked, reset := p.parked()
	r.Kind, r.Data = domain.RunEventKindRetryScheduled, run.endData(p.details())
	r.feedRecord = aboutRun(run, domain.ActivityCodeWakeupRetryScheduled, system("retry"), "The attempt failed and will be tried again.", p.details()).record()
	r.Parked, r.Until, r.Reset, r.Source = &parked, &p.At, reset, &p.Source
	r.Retries, r.Limits, r.Added = &p.Counts.Retries, &p.Counts.Limits, p.Counts.Retries-run.retryCount
	r.Code, r.Message, r.Session = &p.failure.Code, &p.failure.Message, p.failure.SessionID
	return r
}

// putBackAll puts live runs back into the queue with their requests, in one statement.
func (t *tx) putBackAll(ctx context.Context, list []putBack) error {
	if len(list) == 0 {
		return nil
	}
	records, runs := make([]backRecord, len(list)), make([]xid.ID, len(list))
	for i, b := range list {
		records[i], runs[i] = b.record(t.Now), b.run.id
	}
	encoded, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode what goes back: %w", err)
	}
	back, err := pgtx.QueryOne[int](ctx, t, putBackQuery, encoded, t.Now, pgtx.IDs(runs))
	if err == nil && back != len(list) {
		err = fmt.Errorf("changed %d of %d", back, len(list))
	}
	if err != nil {
		return fmt.Errorf("put runs back: %w", err)
	}
	for _, b := range list {
		t.Publish(event.Event{Kind: event.Run, WorkspaceID: b.run.workspaceID, ID: b.run.id})
		if b.retry != nil {
			t.fed(b.run.workspaceID)
			t.onCommit(func(s *base) { s.tellRetry(b) })
		}
		t.leaveClaimed(b.run, b.leave)
	}
	return nil
}

const putBackQuery = `
-- $1 what goes back as JSON, $2 now, $3 the runs again, so that the plan looks them up by their ids
WITH n AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1) AS n (run text, number int, kind text, data jsonb, due timestamptz,
    parked text, until timestamptz, retries bigint, added bigint, limits bigint, code text, message text, source text,
    reset timestamptz, session text, activity text, entry text, words text, actor_kind text, actor text, feed jsonb)),
r AS (
  UPDATE runs
  SET status = 'QUEUED', claimed_at = NULL, started_at = NULL, parked_reason = n.parked, parked_until = n.until,
    due_at = n.due, revision = revision + 1, event_seq = event_seq + 1,
    retry_count = coalesce(n.retries, retry_count), limits = coalesce(n.limits, runs.limits),
    limited_since = CASE
      WHEN n.limits IS NULL THEN limited_since
      WHEN n.limits > 0 THEN coalesce(limited_since, $2::timestamptz) END,
    error_code = coalesce(n.code::run_error_code, error_code), error_message = coalesce(n.message, error_message),
    error_retryable = error_retryable OR n.code IS NOT NULL,
    retry_source = coalesce(n.source::retry_source, retry_source),
    rate_limit_reset_at = CASE WHEN n.code IS NULL THEN rate_limit_reset_at ELSE n.reset END,
    session_id = coalesce(n.session, session_id)
  FROM n
  WHERE id = n.run AND id = ANY($3)
  RETURNING id, workspace_id, agent_id, task_id, causation_id, event_seq, n.kind, n.number, n.data,
    n.activity, n.entry, n.words, n.actor_kind, n.actor, n.feed),
requests AS (
  UPDATE wakeup_requests q
  SET status = CASE q.status WHEN 'CLAIMED' THEN 'QUEUED' ELSE q.status END,
    claimed_at = CASE q.status WHEN 'CLAIMED' THEN NULL ELSE q.claimed_at END,
    retry_count = q.retry_count + n.added, scheduled_retry_at = coalesce(n.until, q.scheduled_retry_at),
    retry_source = coalesce(n.source::retry_source, q.retry_source)
  FROM n
  WHERE q.run_id = n.run AND q.run_id = ANY($3)
    AND (q.status = 'CLAIMED' OR n.until IS NOT NULL AND q.status IN ('QUEUED', 'COALESCED'))),
event AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
  SELECT workspace_id, id, event_seq, kind, number, data, $2 FROM r),
told AS (` + activityInto + `
  SELECT activity, workspace_id, entry, words, actor_kind, actor, id, agent_id, task_id, feed, causation_id, $2
  FROM r
  WHERE activity IS NOT NULL)
SELECT count(*) FROM r`

// tellRetry writes a line into the log for a retry that was planned.
func (s *base) tellRetry(b putBack) {
	p := b.retry
	fields := keysOf(b.run, "code", strings.ToLower(string(p.failure.Code)), "cause", p.failure.Message, "until", p.At, "retry_source", strings.ToLower(string(p.Source)))
	if _, reset := p.parked(); reset != nil {
		fields = append(fields, "parsed_reset_at", *reset)
	}
	s.log.Info("retry scheduled", fields...)
}

// giveBack makes a live run due again, as its next attempt, at its old place in the order.
func (t *tx) giveBack(ctx context.Context, run runRow, attempt domain.RunAttemptStatus, launched bool) error {
	return t.putBackAll(ctx, []putBack{givenBack(run, attempt, launched)})
}

// requeue puts a live run back into the queue, due (reason nil) or parked.
func (t *tx) requeue(ctx context.Context, run runRow, reason *domain.ParkedReason, until *time.Time) error {
	const query = `
UPDATE runs
SET status = 'QUEUED', claimed_at = NULL, started_at = NULL, parked_reason = $2, parked_until = $3,
  due_at = $4, revision = revision + 1
WHERE id = $1`
	var parked domain.ParkedReason
	if reason != nil {
		parked = *reason
	}
	if err := pgtx.ExecOne(ctx, t, query, run.id, reason, until, dueFrom(parked, t.Now)); err != nil {
		return fmt.Errorf("put run back: %w", err)
	}
	if _, err := pgtx.Exec(ctx, t, `UPDATE wakeup_requests SET status = 'QUEUED', claimed_at = NULL WHERE run_id = $1 AND status = 'CLAIMED'`, run.id); err != nil {
		return fmt.Errorf("put requests back: %w", err)
	}
	return nil
}
