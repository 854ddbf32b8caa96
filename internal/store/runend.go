package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

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
	named              bool // the session is told with the end: it was not recorded before
	result             map[string]any
	failure            *Failure
	event              domain.RunEventKind
	eventData          any
	told               *entry // of the feed; nil: none
}

// ending is a run with how it ends.
type ending struct {
	run runRow
	runEnd
}

// endRun writes a run's end, its event and its terminal shape's count. The lane and the run are locked.
func (t *tx) endRun(ctx context.Context, run runRow, e runEnd) error {
	return t.endRuns(ctx, []ending{{run, e}})
}

// endRecord is the end of a run as the statement that writes it reads it.
type endRecord struct {
	Run     xid.ID               `json:"run"`
	Status  domain.RunStatus     `json:"status"`
	Outcome string               `json:"outcome,omitempty"`
	Reason  *domain.EndReason    `json:"reason"`
	Session string               `json:"session,omitempty"`
	Named   bool                 `json:"named"`
	Summary string               `json:"summary,omitempty"`
	Code    *domain.RunErrorCode `json:"code"`
	Message *string              `json:"message"`
	Kind    domain.RunEventKind  `json:"kind"`
	Attempt int                  `json:"attempt,omitempty"`
	Data    any                  `json:"data"`
	Result  any                  `json:"result,omitempty"`
	feedRecord
}

// feedRecord is an entry of the feed about a run, as a larger statement reads it; the zero value is none.
type feedRecord struct {
	Activity xid.ID              `json:"activity,omitempty"`
	Entry    domain.ActivityCode `json:"entry,omitempty"`
	Words    string              `json:"words,omitempty"`
	By       domain.AuthorKind   `json:"actor_kind,omitempty"`
	Actor    string              `json:"actor,omitempty"`
	Feed     map[string]any      `json:"feed,omitempty"`
}

func (e *entry) record() feedRecord {
	if e == nil {
		return feedRecord{}
	}
	return feedRecord{Activity: xid.New("act"), Entry: e.code, Words: e.summary, By: e.by.kind, Actor: e.by.name, Feed: e.details()}
}

// aboutRun is an entry of the feed about a run.
func aboutRun(run runRow, code domain.ActivityCode, by actor, summary string, data map[string]any) *entry {
	return &entry{workspaceID: run.workspaceID, code: code, by: by, summary: summary, subjectID: run.id, agentID: run.agentID, taskID: run.taskID,
		causationID: run.causationID, data: data}
}

func (e ending) record() endRecord {
	r := endRecord{Run: e.run.id, Status: e.status, Outcome: e.outcome, Reason: e.reason, Session: e.sessionID, Named: e.named, Summary: e.summary, Kind: e.event,
		Attempt: e.run.attempt, Data: e.eventData, feedRecord: e.told.record()}
	if e.result != nil {
		r.Result = e.result
	}
	if e.failure != nil {
		r.Code, r.Message = &e.failure.Code, &e.failure.Message
	}
	return r
}

// endRuns is endRun for several runs, in one statement.
func (t *tx) endRuns(ctx context.Context, ends []ending) error {
	if len(ends) == 0 {
		return nil
	}
	records, runs := make([]endRecord, len(ends)), make([]xid.ID, len(ends))
	for i, e := range ends {
		records[i], runs[i] = e.record(), e.run.id
	}
	encoded, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode the ends of runs: %w", err)
	}
	const query = `
-- $1 the ends as JSON, $2 now, $3 the runs again, so that the plan looks them up by their ids
WITH n AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1) AS n (run text, status text, outcome text, reason text, session text,
    named boolean, summary text, code text, message text, kind text, attempt int, data jsonb, result jsonb, activity text,
    entry text, words text, actor_kind text, actor text, feed jsonb)),
r AS (
  UPDATE runs
  SET status = n.status, outcome = n.outcome, end_reason = n.reason, finished_at = $2, parked_reason = NULL,
    parked_until = NULL, session_id = coalesce(n.session, session_id), summary = n.summary,
    error_code = n.code, error_message = n.message, error_retryable = false, revision = revision + 1,
    event_seq = event_seq + 1 + n.named::int
  FROM n
  WHERE id = n.run AND id = ANY($3)
  RETURNING id, workspace_id, agent_id, task_id, causation_id, event_seq, session_id, n.named, n.kind,
    n.attempt AS number, n.data, n.activity, n.entry, n.words, n.actor_kind, n.actor, n.feed),
event AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
  SELECT workspace_id, id, event_seq - e.before, e.kind, number, e.data, $2
  FROM r
  CROSS JOIN LATERAL (VALUES
    (1, named, '` + string(domain.RunEventKindSessionRecorded) + `', jsonb_build_object('sessionId', session_id)),
    (0, true, r.kind, r.data))
    AS e (before, holds, kind, data)
  WHERE e.holds),
told AS (` + activityInto + `
  SELECT activity, workspace_id, entry, words, actor_kind, actor, id, agent_id, task_id, feed, causation_id, $2
  FROM r
  WHERE activity IS NOT NULL),
content AS (
  UPDATE run_contents c
  SET result = n.result
  FROM n
  WHERE c.run_id = n.run AND n.result IS NOT NULL AND c.run_id = ANY($3)
  RETURNING c.run_id),
secrets AS (DELETE FROM run_secrets WHERE run_id = ANY($3))
SELECT r.id, r.session_id, content.run_id IS NOT NULL
FROM r LEFT JOIN content ON content.run_id = r.id`
	type written struct {
		session *string
		result  bool
	}
	found := map[xid.ID]written{}
	_, err = pgtx.Collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
		var id xid.ID
		var w written
		err = rows.Scan(&id, &w.session, &w.result)
		found[id] = w
		return struct{}{}, err
	}, query, encoded, t.Now, pgtx.IDs(runs))
	if err != nil {
		return fmt.Errorf("end runs: %w", err)
	}
	for _, e := range ends {
		w, there := found[e.run.id]
		if !there || e.result != nil && !w.result {
			return fmt.Errorf("end run %s: a row of it is gone", e.run.id)
		}
		if e.told != nil {
			t.fed(e.run.workspaceID)
		}
		t.countEnd(e.run, e.runEnd, w.session)
	}
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
		if run.launched() {
			s.counters.RunTook(run.workspaceID, t.Now.Sub(*run.startedAt))
		}
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
