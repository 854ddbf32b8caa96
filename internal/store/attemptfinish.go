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

// Success is what an attempt that ended well brought back. Result nil means there was no result object, Usage nil that the
// agent did not say. Resumable: the agent named the session itself, so that the task's next run may resume it. Fresh: the
// session to resume was gone, and the agent was told the full prompt in a new one. Named: the session was not recorded before, because
// the attempt was over at once; it is recorded with the end. Lines are output that is not stored yet.
type Success struct {
	Result    map[string]any
	Summary   string
	SessionID string
	Named     bool
	Lines     []LogLine
	Resumable bool
	Fresh     bool
	Usage     *Usage
}

// Finish ends a run well. ErrFenced when the attempt is not the live one any more. An end with actions has a transaction of its
// own, because they may touch more than others wait for.
func (s *Attempts) Finish(ctx context.Context, a Attempt, ok Success) error {
	x := &transition{Attempt: a, kind: toFinish, success: ok}
	if ok.Result["actions"] != nil {
		return pgtx.Wrap("finish run", s.transitAlone(ctx, x))
	}
	return pgtx.Wrap("finish run", s.transit(ctx, x))
}

// finishAll ends runs well: what their results ask for is done, their requests and fires end with them, and event requests that
// came too late for the prompt go back to unrouted (SPEC S3.6). tasks are those of lockFollowUps.
func (t *tx) finishAll(ctx context.Context, list []*transition, tasks map[xid.ID]*taskRow) error {
	if len(list) == 0 {
		return nil
	}
	data, err := t.followSuccess(ctx, list, tasks)
	if err != nil {
		return err
	}
	ends, runs, sessions := make([]ending, len(list)), make([]runRow, len(list)), make([]sessionEnd, len(list))
	for i, x := range list {
		ok := x.success
		told := aboutRun(x.run, domain.ActivityCodeRunFinished, system("queue"), "The run finished.", map[string]any{"attempt": x.run.attempt, "outcome": domain.OutcomeProcessed})
		runs[i], ends[i] = x.run, ending{x.run, runEnd{status: domain.RunStatusFinished, outcome: domain.OutcomeProcessed, sessionID: ok.SessionID,
			named: ok.Named && ok.SessionID != "", summary: ok.Summary, result: ok.Result, event: domain.RunEventKindFinished, eventData: data[i], told: told}}
		sessions[i] = sessionEnd{x.run, ok.SessionID, ok.Resumable}
	}
	if err := t.endServedRequests(ctx, runs, domain.WakeupStatusFinished, nil, routineRunEnd{status: domain.RoutineRunStatusDone}); err != nil {
		return err
	}
	if err := t.keepSessions(ctx, sessions); err != nil { // before the ends: a session keeps what its runs knew
		return err
	}
	for _, x := range list {
		if err := t.keepTold(ctx, x.run, x.success.SessionID, x.told); err != nil {
			return err
		}
	}
	if err := t.appendLast(ctx, list); err != nil {
		return err
	}
	if err := t.endRuns(ctx, ends); err != nil {
		return err
	}
	return t.keepSuccesses(ctx, list)
}

// followSuccess does what results ask for and notes what the attempts used. It returns the data of the runs' last events.
func (t *tx) followSuccess(ctx context.Context, list []*transition, tasks map[xid.ID]*taskRow) ([]map[string]any, error) {
	data, spent := make([]map[string]any, len(list)), make([]spending, len(list))
	for i, x := range list {
		follow := &followUp{run: x.run, actions: domain.ParseActions(x.success.Result, x.run.taskID != ""), tasks: tasks, cause: causeOfRun(x.run)}
		outcomes, err := t.carryOut(ctx, follow)
		if err != nil {
			return nil, err
		}
		data[i] = map[string]any{"outcome": domain.OutcomeProcessed}
		if len(outcomes) > 0 {
			data[i]["actions"] = outcomes
		}
		if follow.leftOpen != "" {
			data[i]["taskLeftOpen"] = follow.leftOpen
		}
		used, told, err := t.newUse(ctx, x.run, x.success.SessionID, x.success.Usage)
		if err != nil {
			return nil, err
		}
		x.told, spent[i] = told, spending{&x.run, used}
	}
	if err := t.spendAll(ctx, spent); err != nil {
		return nil, err
	}
	for i, x := range list {
		x.run.endData(data[i])
	}
	return data, nil
}

// keepSuccesses keeps the prompts that agents were told, and the summaries from which later runs go on.
func (t *tx) keepSuccesses(ctx context.Context, list []*transition) error {
	var ended []remembered
	for _, x := range list {
		ok := x.success
		t.countLaunch(x.run, ok.SessionID)
		t.countLaunchWithoutSession(x.run, ok.SessionID)
		if err := t.keepPrompt(ctx, x.run, ok.Fresh); err != nil {
			return err
		}
		if x.run.remembers() {
			ended = append(ended, remembered{x.run, ok.Result})
		}
		left := leave{attempt: domain.RunAttemptStatusSucceeded, launched: x.run.launched()}
		if ok.Named {
			left.session = ok.SessionID
		}
		t.leaveClaimed(x.run, left)
	}
	return t.remember(ctx, ended)
}

// endServedRequests ends what launched runs served: their own requests take the runs' status, merged ones stay COALESCED
// with an end, and the fires behind all of them end too. Events that no prompt contained are sent again instead, as by
// sendAgainUndelivered.
func (t *tx) endServedRequests(ctx context.Context, runs []runRow, status domain.WakeupStatus, reason *domain.EndReason, fire routineRunEnd) error {
	const query = `
UPDATE wakeup_requests q SET
  status = CASE WHEN again THEN 'QUEUED' WHEN q.status = 'COALESCED' THEN q.status ELSE $3 END,
  finished_at = CASE WHEN again THEN NULL ELSE $2::timestamptz END,
  end_reason = CASE WHEN again THEN NULL ELSE $4 END,
  run_id = CASE WHEN again THEN NULL ELSE q.run_id END,
  claimed_at = CASE WHEN again THEN NULL ELSE q.claimed_at END,
  resends = q.resends + again::int
FROM (SELECT id, run_id AS run, delivered_at IS NULL AND wake_class = 'EVENT' AS again FROM wakeup_requests
      WHERE run_id = ANY($1) AND ` + guard.RequestLives + `) AS open
WHERE q.id = open.id
RETURNING q.id, q.routine_run_id, open.run, again`
	resent := map[xid.ID][]xid.ID{}
	var fires []xid.ID
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var id, routineRun, run xid.ID
		var again bool
		err := rows.Scan(&id, &routineRun, &run, &again)
		if again {
			resent[run] = append(resent[run], id)
		} else {
			fires = append(fires, routineRun)
		}
		return struct{}{}, err
	}, query, pgtx.IDs(idsOf(runs)), t.Now, status, reason)
	if err != nil {
		return fmt.Errorf("end requests: %w", err)
	}
	if err := t.noteAllResent(ctx, runs, resent); err != nil {
		return err
	}
	return t.endRoutineRuns(ctx, fires, fire)
}
