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
// session to resume was gone, and the agent was told the full prompt in a new one.
type Success struct {
	Result    map[string]any
	Summary   string
	SessionID string
	Resumable bool
	Fresh     bool
	Usage     *Usage
}

// finish ends one run well: what its result asks for is done, its requests and fires end with it, and event requests that
// came too late for the prompt go back to unrouted (SPEC S3.6). tasks are those of lockFollowUps.
func (t *tx) finish(ctx context.Context, l lane, run runRow, ok Success, tasks map[xid.ID]*taskRow, e leave) error {
	follow := &followUp{run: run, actions: domain.ParseActions(ok.Result, run.taskID != ""), tasks: tasks, cause: causeOfRun(run)}
	outcomes, err := t.carryOut(ctx, follow)
	if err != nil {
		return err
	}
	run, err = t.spend(ctx, run, ok.Usage)
	if err != nil {
		return err
	}
	data := run.endData(map[string]any{"outcome": domain.OutcomeProcessed})
	if len(outcomes) > 0 {
		data["actions"] = outcomes
	}
	if follow.leftOpen != "" {
		data["taskLeftOpen"] = follow.leftOpen
	}
	if err := t.endServedRequests(ctx, run, domain.WakeupStatusFinished, nil, routineRunEnd{status: domain.RoutineRunStatusDone}); err != nil {
		return err
	}
	if err := t.keepSession(ctx, run, ok.SessionID, ok.Resumable); err != nil { // before the end: it keeps what the run knew
		return err
	}
	err = t.endRun(ctx, run, runEnd{status: domain.RunStatusFinished, outcome: domain.OutcomeProcessed, sessionID: ok.SessionID,
		summary: ok.Summary, result: ok.Result, event: domain.RunEventKindFinished, eventData: data})
	if err != nil {
		return err
	}
	t.countLaunch(run, ok.SessionID)
	t.countLaunchWithoutSession(run, ok.SessionID)
	if err := t.keepPrompt(ctx, run, ok.Fresh); err != nil {
		return err
	}
	if err := t.remember(ctx, run, ok.Result); err != nil {
		return err
	}
	e.attempt, e.launched = domain.RunAttemptStatusSucceeded, run.launched()
	return t.leaveClaimed(ctx, l, run, e)
}

// endServedRequests ends what a launched run served: its own requests take the run's status, merged ones stay COALESCED
// with an end, and the fires behind all of them end too. Events that no prompt contained are sent again instead, as by
// sendAgainUndelivered.
func (t *tx) endServedRequests(ctx context.Context, run runRow, status domain.WakeupStatus, reason *domain.EndReason, fire routineRunEnd) error {
	const query = `
UPDATE wakeup_requests q SET
  status = CASE WHEN again THEN 'QUEUED' WHEN q.status = 'COALESCED' THEN q.status ELSE $3 END,
  finished_at = CASE WHEN again THEN NULL ELSE $2::timestamptz END,
  end_reason = CASE WHEN again THEN NULL ELSE $4 END,
  run_id = CASE WHEN again THEN NULL ELSE q.run_id END,
  claimed_at = CASE WHEN again THEN NULL ELSE q.claimed_at END,
  resends = q.resends + again::int
FROM (SELECT id, delivered_at IS NULL AND wake_class = 'EVENT' AS again FROM wakeup_requests
      WHERE run_id = $1 AND ` + guard.RequestLives + `) AS open
WHERE q.id = open.id
RETURNING q.id, q.routine_run_id, again`
	var resent, fires []xid.ID
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var id, routineRun xid.ID
		var again bool
		err := rows.Scan(&id, &routineRun, &again)
		if again {
			resent = append(resent, id)
		} else {
			fires = append(fires, routineRun)
		}
		return struct{}{}, err
	}, query, run.id, t.Now, status, reason)
	if err != nil {
		return fmt.Errorf("end requests: %w", err)
	}
	if len(resent) > 0 {
		if err := t.noteResent(ctx, run, resent); err != nil {
			return err
		}
	}
	return t.endRoutineRuns(ctx, fires, fire)
}
