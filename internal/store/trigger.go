package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/cron"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// DueTrigger is a schedule that is due, and a position in the order in which they are fired. AgentID is whose it was when
// it was listed.
type DueTrigger struct {
	ID, AgentID xid.ID
	NextRunAt   time.Time
}

// DueTriggers lists enabled schedules whose slot has come, after the given position, in the order (next_run_at, id). Slots that wait
// because a person holds their workspace have not come.
func (s *Routines) DueTriggers(ctx context.Context, after DueTrigger, limit int) ([]DueTrigger, error) {
	query := `
SELECT t.id, r.assignee_id, t.next_run_at FROM routine_triggers t JOIN routines r ON r.id = t.routine_id
WHERE t.kind = 'SCHEDULE'
  AND t.enabled
  AND t.next_run_at IS NOT NULL
  AND t.next_run_at <= clock_timestamp()
  AND (t.next_run_at, t.id) > ($1, $2)
  AND NOT ` + guard.HoldsFires("t.workspace_id") + `
ORDER BY t.next_run_at, t.id LIMIT $3`
	due, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (d DueTrigger, err error) { return d, rows.Scan(&d.ID, &d.AgentID, &d.NextRunAt) }, query, after.NextRunAt, string(after.ID), limit)
	if err != nil {
		return nil, fmt.Errorf("list due triggers: %w", err)
	}
	return due, nil
}

// triggerRow is a schedule. deadline is 0 without one, and missed what the next fire tells of.
type triggerRow struct {
	id, workspaceID, routineID, assigneeID xid.ID
	spec                                   cron.Spec
	deadline                               time.Duration
	missed                                 domain.Missed
}

// timingColumns are what says when the trigger t fires, as scanTiming reads them.
const timingColumns = `coalesce(t.cron, ''), t.time_zone, t.at, t.starts_at, t.ends_at, t.jitter_ms, t.skip_dates,
  coalesce(t.start_deadline_ms, 0), t.missed_ticks, coalesce(t.missed_since, '0001-01-01Z'), t.missed_truncated`

// timingScan holds the timingColumns of a row while it is read.
type timingScan struct {
	jitter, deadline int64
	dates            []byte
}

func (s *timingScan) into(t *triggerRow) []any {
	return []any{&t.spec.Expression, &t.spec.Zone, &t.spec.At, &t.spec.StartsAt, &t.spec.EndsAt, &s.jitter, &s.dates, &s.deadline,
		&t.missed.Ticks, &t.missed.Since, &t.missed.Truncated}
}

// done takes over what was read; t.id is known.
func (s *timingScan) done(t *triggerRow) error {
	t.spec.Seed, t.spec.Jitter, t.deadline = string(t.id), time.Duration(s.jitter)*time.Millisecond, time.Duration(s.deadline)*time.Millisecond
	if err := json.Unmarshal(s.dates, &t.spec.SkipDates); err != nil {
		return fmt.Errorf("decode the dates of trigger %s: %w", t.id, err)
	}
	return nil
}

// TimingSpec says when a schedule fires.
func TimingSpec(row *ent.RoutineTrigger) cron.Spec {
	spec := cron.Spec{At: row.At, StartsAt: row.StartsAt, EndsAt: row.EndsAt, Jitter: time.Duration(row.JitterMs) * time.Millisecond, SkipDates: row.SkipDates, Seed: string(row.ID)}
	if row.Cron != nil {
		spec.Expression = *row.Cron
	}
	if row.TimeZone != nil {
		spec.Zone = *row.TimeZone
	}
	return spec
}

// scheduleRow is a trigger's row as the tick has it.
func scheduleRow(row *ent.RoutineTrigger, assigneeID xid.ID) triggerRow {
	t := triggerRow{id: row.ID, workspaceID: row.WorkspaceID, routineID: row.RoutineID, assigneeID: assigneeID, spec: TimingSpec(row),
		missed: domain.Missed{Ticks: row.MissedTicks, Since: pgtx.OrZero(row.MissedSince), Truncated: row.MissedTruncated}}
	if row.StartDeadlineMs != nil {
		t.deadline = time.Duration(*row.StartDeadlineMs) * time.Millisecond
	}
	return t
}

// disableTrigger switches off a schedule whose stored expression cannot be read, with the reason (SPEC S4.3, C46). A
// trigger that has been edited since stays on.
func (s *Routines) disableTrigger(ctx context.Context, trigger triggerRow, cause error) error {
	err := s.inTx(ctx, func(t *tx) error {
		const query = `
UPDATE routine_triggers
SET enabled = false, next_run_at = NULL, error = left($2::text, 1000), updated_at = clock_timestamp()
WHERE id = $1 AND enabled AND coalesce(cron, '') = $3 AND time_zone = $4`
		n, err := pgtx.Exec(ctx, t, query, trigger.id, cause.Error(), trigger.spec.Expression, trigger.spec.Zone)
		if err != nil || n == 0 {
			return err
		}
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		return t.note(ctx, entry{workspaceID: trigger.workspaceID, code: domain.ActivityCodeTriggerChanged, by: system("cron"),
			summary:   "The schedule was switched off: " + cause.Error(),
			subjectID: trigger.routineID, agentID: trigger.assigneeID, data: map[string]any{"triggerId": trigger.id, "routineId": trigger.routineID, "enabled": false, "error": domain.FirstRunes(cause.Error(), maxTriggerError)}})
	})
	return pgtx.Wrap("switch off trigger "+string(trigger.id), err)
}

// errNoSlotLeft is why a schedule that is over is switched off.
var errNoSlotLeft = errors.New(domain.NoSlotLeft)

// armBatch bounds the schedules armed in one pass.
const armBatch = 200

// ArmTriggers gives enabled schedules without a next slot their first one after now, without a fire (C47). It returns how
// many it armed.
func (s *Routines) ArmTriggers(ctx context.Context) (int, error) {
	query := `
SELECT t.id, t.workspace_id, t.routine_id, r.assignee_id, ` + timingColumns + `
FROM routine_triggers t
JOIN routines r ON r.id = t.routine_id
WHERE t.kind = 'SCHEDULE' AND t.enabled AND t.next_run_at IS NULL AND r.deleted_at IS NULL LIMIT $1`
	unarmed, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (t triggerRow, err error) {
		var timing timingScan
		if err := rows.Scan(append([]any{&t.id, &t.workspaceID, &t.routineID, &t.assigneeID}, timing.into(&t)...)...); err != nil {
			return t, err
		}
		return t, timing.done(&t)
	}, query, armBatch)
	if err != nil {
		return 0, fmt.Errorf("list unarmed triggers: %w", err)
	}
	armed := 0
	var failed error
	for _, trigger := range unarmed { // one that fails keeps no other from its slot (SPEC S4.3)
		n, err := s.armTrigger(ctx, trigger)
		armed += n
		failed = errors.Join(failed, err)
	}
	if armed > 0 {
		s.events.Publish(event.Event{Kind: event.Queue})
	}
	return armed, failed
}

// armTrigger gives one trigger its first slot, or switches it off when there can be none.
func (s *Routines) armTrigger(ctx context.Context, trigger triggerRow) (armed int, err error) {
	schedule, err := cron.ParseTiming(trigger.spec)
	if err != nil {
		return 0, s.disableTrigger(ctx, trigger, err)
	}
	now, err := pgtx.QueryOne[time.Time](ctx, s.db, `SELECT clock_timestamp()`)
	if err != nil {
		return 0, fmt.Errorf("read the database's clock: %w", err)
	}
	first := schedule.FirstDue(now)
	if first.IsZero() {
		return 0, s.disableTrigger(ctx, trigger, errNoSlotLeft)
	}
	n, err := pgtx.Exec(ctx, s.db, `UPDATE routine_triggers SET next_run_at = $2 WHERE id = $1 AND enabled AND next_run_at IS NULL`, trigger.id, first)
	if err != nil {
		return 0, fmt.Errorf("arm trigger %s: %w", trigger.id, err)
	}
	return int(n), nil
}
