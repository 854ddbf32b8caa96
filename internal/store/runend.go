package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// runEnd is how a run ends for good.
type runEnd struct {
	status             domain.RunStatus
	outcome            string // "" unless FINISHED
	reason             *domain.EndReason
	sessionID, summary string
	result             map[string]any
	failure            *Failure
	event              domain.RunEventKind
	eventData          any
}

// endRun writes a run's end, its event and its terminal shape's count. The lane and the run are locked.
func (t *tx) endRun(ctx context.Context, run runRow, e runEnd) error {
	data, err := encodeData(e.eventData)
	if err != nil {
		return err
	}
	var code *domain.RunErrorCode
	var message *string
	if e.failure != nil {
		code, message = &e.failure.Code, &e.failure.Message
	}
	const query = `
-- $1 status, $2 outcome, $3 why it ended, $4 now, $5 session, or "" to keep the one it has, $6 summary, $7
-- code of the error, $8 its message, $9 run, $10 kind of the event, $11 attempt, or 0, $12 details of the
-- event, $13 id of the entry
WITH r AS (
  UPDATE runs
  SET status = $1, outcome = NULLIF($2, ''), end_reason = $3, finished_at = $4, parked_reason = NULL,
    parked_until = NULL, session_id = coalesce(NULLIF($5, ''), session_id), summary = NULLIF($6, ''),
    error_code = $7, error_message = $8, error_retryable = false, revision = revision + 1,
    event_seq = event_seq + 1
  WHERE id = $9 RETURNING id, workspace_id, agent_id, task_id, causation_id, event_seq, session_id)
, e AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
  SELECT workspace_id, id, event_seq, $10, NULLIF($11::int, 0), $12, $4 FROM r)
, a AS (` + activityInto + `
  SELECT $13, workspace_id, '` + string(domain.ActivityCodeRunFinished) + `', 'The run finished.', 'SYSTEM',
    'queue', id, agent_id, task_id,
    jsonb_strip_nulls(jsonb_build_object('agent', agent_id, 'task_id', task_id,
        'attempt', NULLIF($11::int, 0), 'outcome', $2::text)), causation_id, $4
  FROM r
  WHERE $2 = '` + domain.OutcomeProcessed + `') -- the feed has the other ends with their own words
, secrets AS (DELETE FROM run_secrets WHERE run_id = $9)
SELECT session_id FROM r`
	session, err := pgtx.QueryOne[*string](ctx, t, query, e.status, e.outcome, e.reason, t.Now, e.sessionID, e.summary, code, message, run.id, e.event, run.attempt, data,
		xid.New("act"))
	if err != nil {
		return fmt.Errorf("end run: %w", err)
	}
	if e.outcome == domain.OutcomeProcessed {
		t.fed(run.workspaceID)
	}
	if err := t.keepResultObject(ctx, run, e.result); err != nil {
		return err
	}
	t.countEnd(run, e, session)
	return nil
}

func (t *tx) keepResultObject(ctx context.Context, run runRow, result map[string]any) error {
	if result == nil {
		return nil
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if err := pgtx.ExecOne(ctx, t, `UPDATE run_contents SET result = $2 WHERE run_id = $1`, run.id, encoded); err != nil {
		return fmt.Errorf("store result: %w", err)
	}
	return nil
}

// keepPrompt makes the stored prompt what the agent was told in the end: the full one, when the session to resume was gone.
func (t *tx) keepPrompt(ctx context.Context, run runRow, fresh bool) error {
	if !fresh {
		return nil
	}
	_, err := pgtx.Exec(ctx, t, `
UPDATE run_contents
SET assembled_prompt = full_prompt, full_prompt = ''
WHERE run_id = $1 AND full_prompt <> ''`, run.id)
	return pgtx.Wrap("keep the full prompt", err)
}

// countEnd counts the run's terminal shape once its end has committed.
func (t *tx) countEnd(run runRow, e runEnd, session *string) {
	facts := domain.ShapeFacts{Status: e.status, Outcome: e.outcome, RequestedAt: run.requestedAt}
	if session != nil {
		facts.SessionID = *session
	}
	if e.reason != nil {
		facts.EndReason = *e.reason
	}
	t.onCommit(func(s *base) {
		facts.ActivatedAt = s.activated.Load()
		s.counters.TerminalRun(run.workspaceID, domain.ShapeOf(facts))
	})
	t.traceRun(run, e)
	t.Publish(event.Event{Kind: event.Run, WorkspaceID: run.workspaceID, ID: run.id})
}

func eventOf(s domain.RunStatus) domain.RunEventKind {
	switch s {
	case domain.RunStatusFailed:
		return domain.RunEventKindFailed
	case domain.RunStatusCancelled:
		return domain.RunEventKindCancelled
	}
	return domain.RunEventKindFinished
}

// settledFire is the disposition of a fire whose request ended so (SPEC S4.6).
func settledFire(status domain.WakeupStatus) domain.RoutineRunStatus {
	switch status {
	case domain.WakeupStatusCancelled:
		return domain.RoutineRunStatusCancelled
	case domain.WakeupStatusFailed:
		return domain.RoutineRunStatusFailed
	}
	return domain.RoutineRunStatusSkipped
}

// routineRunEnd is how fires end.
type routineRunEnd struct {
	status domain.RoutineRunStatus
	reason *domain.EndReason
	err    string
}

// endRoutineRuns ends the fires among ids that have not ended yet. A heavy one ends with its task, or with the last run about
// it (endFiresOfTasks). One that was COALESCED stays so: it says what the policy did, and its run how the work ended.
func (t *tx) endRoutineRuns(ctx context.Context, list []xid.ID, e routineRunEnd) error {
	var fires []xid.ID
	for _, id := range list {
		if id != "" {
			fires = append(fires, id)
		}
	}
	if len(fires) == 0 {
		return nil
	}
	const query = `
-- $1 the fires, $2 status, $3 why they ended, $4 error, $5 now
UPDATE routine_runs
SET status = CASE status WHEN 'COALESCED' THEN status ELSE $2 END,
  skip_reason = CASE status WHEN 'COALESCED' THEN skip_reason ELSE $3 END, error = NULLIF($4, ''),
  completed_at = $5
WHERE id = ANY($1) AND completed_at IS NULL AND task_id IS NULL`
	if _, err := pgtx.Exec(ctx, t, query, pgtx.IDs(fires), e.status, e.reason, e.err, t.Now); err != nil {
		return fmt.Errorf("end routine runs: %w", err)
	}
	return nil
}

// leave is how a live attempt ends, whatever becomes of its run.
type leave struct {
	attempt  domain.RunAttemptStatus
	failure  *Failure
	launched bool // an agent was at work: the cooldown follows (SPEC S6.1)

	countLater bool // the caller takes it off the workspace's count and charges its budgets, at the end of a batch
}

// leaveClaimed is every way out of CLAIMED (docs/queue.md rule 5): the attempt ended, the lease gone, the counts down,
// the scope released, the checkout freed. What a run that goes on was launched with is kept for its next attempt's mask
// (SPEC S7.6). The run's own row is changed by the caller, before. The workspace's lane comes last, though the lock
// order has it before runs. That is safe, because nobody who holds it waits for a run of a lane that he does not hold.
// It keeps the time short for which everybody else waits for that row. Budgets follow it, as in the claim.
func (t *tx) leaveClaimed(ctx context.Context, l lane, run runRow, e leave) error {
	var code *domain.RunErrorCode
	var message *string
	if e.failure != nil {
		code, message = &e.failure.Code, &e.failure.Message
	}
	endAttempt := `
-- $1 agent, $2 scope, $3 run, $4 attempt, $5 status of the attempt, $6 now, $7 code of the error, $8 its
-- message
WITH gone AS (
  DELETE FROM attempt_leases
  WHERE run_id = $3 AND attempt = $4
  RETURNING run_id, workspace_id, secrets),
-- a run that goes on may still show what was secret in this attempt
lease AS (SELECT gone.* FROM gone JOIN runs r ON r.id = gone.run_id WHERE r.status = 'QUEUED'),
former AS (` + keepFormer + `),
attempt AS (
  UPDATE run_attempts
  SET status = $5, finished_at = $6, error_code = $7, error_message = $8
  WHERE run_id = $3 AND number = $4
  RETURNING started_at, executor),
released AS (` + releaseScopeQuery + `)
SELECT started_at, coalesce(executor, '') FROM attempt`
	var claimedAt time.Time
	var executor string
	err := pgtx.QueryRow(ctx, t, []any{&claimedAt, &executor}, endAttempt, run.agentID, run.scope, run.id, run.attempt, e.attempt, t.Now, code, message)
	if pgtx.NoRows(err) { // somebody deleted the row of a live attempt by hand: its run must be able to end all the same
		t.onCommit(func(s *base) {
			s.log.Warn("a live attempt had no row any more, so its end is on the run alone", keysOf(run)...)
		})
	} else if err != nil {
		return fmt.Errorf("end attempt: %w", err)
	}
	if err := t.freeCheckout(ctx, run); err != nil {
		return err
	}
	if err := t.restSession(ctx, run); err != nil {
		return err
	}
	budgeted, err := t.leaveLane(ctx, l, e)
	if err != nil {
		return err
	}
	t.traceAttempt(run, e, claimedAt, executor)
	t.Publish(event.Event{Kind: event.Run, WorkspaceID: run.workspaceID, ID: run.id}, event.Event{Kind: event.Queue, WorkspaceID: l.workspaceID, ID: l.agentID})
	if !budgeted || e.countLater {
		return nil
	}
	return t.chargeBudgets(ctx, []runRow{run})
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

// Failure is why an attempt failed. Message is masked. A Permanent one is not tried again. Usage nil means that the agent
// did not say what it used. Result is what the agent gave with its error; its actions are not carried out. SessionID,
// Resumable and Fresh are as in Success.
type Failure struct {
	Code      domain.RunErrorCode
	Message   string
	Permanent bool
	// Words are those of an error, in which a rate limit is looked for; what an agent printed ordinarily is not among them. Zone is
	// that of the machine whose program said them; nil: UTC. Code RATE_LIMITED says as data that it is one.
	Words string
	Zone  *time.Location
	// RetryAfter is how long to wait before a retry, as the other side said in data; 0 when it did not say.
	RetryAfter time.Duration
	Result     map[string]any
	SessionID  string
	Resumable  bool
	Fresh      bool
	Usage      *Usage
}
