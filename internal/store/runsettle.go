package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// settle ends a run that is not launched, with all its requests alike, COALESCED and earlier delivered ones too (SPEC
// S3.8). It touches neither running nor cooldown.
func (t *tx) settle(ctx context.Context, run runRow, s domain.Settlement) error {
	return t.settleAll(ctx, []runRow{run}, s)
}

// settleAll is settle for several runs of one lane, in as many statements as for one. The lane and the runs are locked.
func (t *tx) settleAll(ctx context.Context, runs []runRow, s domain.Settlement) error {
	by := system("queue")
	if s.Reason == domain.EndReasonCancelledByUser {
		by = callerOr(ctx, "cancel")
	}
	told := entry{code: s.Activity, by: by, summary: "The run was not launched: " + string(s.Reason), data: withNote(map[string]any{"reason": s.Reason}, s.Note)}
	if err := t.endUnlaunched(ctx, runs, s, told); err != nil {
		return err
	}
	requests, err := t.endRequestsOf(ctx, runs, s)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := t.tellSettled(ctx, run, requests[run.id], s); err != nil {
			return err
		}
	}
	return t.releaseScopesOf(ctx, runs)
}

// endUnlaunched writes the end of runs that are not launched, their events, and an entry of the feed for each, with the agent and
// the task for those who compare.
func (t *tx) endUnlaunched(ctx context.Context, runs []runRow, s domain.Settlement, told entry) error {
	if len(runs) == 0 {
		return nil
	}
	data, err := encodeData(map[string]any{"reason": s.Reason})
	if err != nil {
		return err
	}
	feed, err := encodeData(told.data)
	if err != nil {
		return err
	}
	const query = `
-- $1 runs, $2 ids of the entries, $3 status, $4 outcome, $5 why they ended, $6 now, $7 kind of the event, $8
-- its details, $9 code of the entry, $10 its summary, $11 kind of actor, $12 actor, $13 details of the entry,
-- $14 whether the entry names the agent as the old one
WITH n AS (SELECT * FROM unnest($1::text[], $2::text[]) AS n (run, activity)),
r AS (
  UPDATE runs
  SET status = $3, outcome = NULLIF($4, ''), end_reason = $5, finished_at = $6, parked_reason = NULL,
    parked_until = NULL, summary = NULL, error_code = NULL, error_message = NULL, error_retryable = false,
    revision = revision + 1, event_seq = event_seq + 1
  FROM n
  WHERE id = n.run AND id = ANY($1) -- the list too: the planner sees how many they are, and uses the index
  RETURNING id, workspace_id, agent_id, task_id, causation_id, event_seq, attempt, n.activity),
e AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
  SELECT workspace_id, id, event_seq, $7, NULLIF(attempt, 0), $8::jsonb, $6 FROM r),
a AS (` + activityInto + `
  SELECT activity, workspace_id, $9, $10, $11, $12, id, agent_id, task_id,
    $13::jsonb || jsonb_strip_nulls(jsonb_build_object('agent', agent_id, 'task_id', task_id,
        'old_agent', CASE WHEN $14::boolean THEN agent_id END)), causation_id, $6
  FROM r)
, secrets AS (DELETE FROM run_secrets WHERE run_id = ANY($1))
SELECT count(*) FROM r`
	ended, err := pgtx.QueryOne[int](ctx, t, query, pgtx.IDs(idsOf(runs)), pgtx.IDs(newIDs("act", len(runs))), s.Run, s.Outcome, s.Reason, t.Now, eventOf(s.Run), data,
		told.code, told.summary, told.by.kind, told.by.name, feed, told.code == domain.ActivityCodeWakeupRetryCancelled)
	if err == nil && ended != len(runs) {
		err = fmt.Errorf("ended %d of %d", ended, len(runs))
	}
	if err != nil {
		return fmt.Errorf("end runs: %w", err)
	}
	for _, run := range runs {
		t.countEnd(run, runEnd{status: s.Run, outcome: s.Outcome, reason: &s.Reason}, run.sessionID)
		t.fed(run.workspaceID)
	}
	return nil
}

// endRequestsOf ends every request of the runs alike, and the fires behind them and of their tasks, and returns the requests
// by run.
func (t *tx) endRequestsOf(ctx context.Context, runs []runRow, s domain.Settlement) (map[xid.ID][]xid.ID, error) {
	return t.endRequestsAlike(ctx, runs, s.Request, s.Reason, routineRunEnd{status: settledFire(s.Request), reason: &s.Reason})
}

// endRequestsAlike ends every request of the runs, and the fires behind them in the given way, and returns the requests
// by run. The runs have ended, or end in this transaction after it: then who ends them looks at the fires of their
// tasks again.
func (t *tx) endRequestsAlike(ctx context.Context, runs []runRow, status domain.WakeupStatus, reason domain.EndReason, fire routineRunEnd) (map[xid.ID][]xid.ID, error) {
	const query = `
UPDATE wakeup_requests SET status = $2, end_reason = $3, finished_at = $4
WHERE run_id = ANY($1) AND ` + guard.RequestLives + ` RETURNING id, run_id, routine_run_id`
	requests := map[xid.ID][]xid.ID{}
	var fires []xid.ID
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var request, run, fire xid.ID
		err := rows.Scan(&request, &run, &fire)
		requests[run], fires = append(requests[run], request), append(fires, fire)
		return struct{}{}, err
	}, query, pgtx.IDs(idsOf(runs)), status, reason, t.Now)
	if err != nil {
		return nil, fmt.Errorf("end requests: %w", err)
	}
	return requests, t.endFires(ctx, fires, tasksOf(runs), fire)
}

// releaseScopesOf is releaseScope for the scopes of several runs.
func (t *tx) releaseScopesOf(ctx context.Context, runs []runRow) error {
	if len(runs) == 0 {
		return nil
	}
	agents, scopes := make([]xid.ID, len(runs)), make([]string, len(runs))
	for i, run := range runs {
		agents[i], scopes[i] = run.agentID, run.scope
	}
	return t.releaseScopes(ctx, agents, scopes)
}

func idsOf(runs []runRow) []xid.ID {
	list := make([]xid.ID, len(runs))
	for i, run := range runs {
		list[i] = run.id
	}
	return list
}
