package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

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

// triggerRow is a schedule.
type triggerRow struct {
	id, workspaceID, routineID, assigneeID xid.ID
	cron, zone                             string
}

// disableTrigger switches off a schedule whose stored expression cannot be read, with the reason (SPEC S4.3, C46). A
// trigger that has been edited since stays on.
func (s *Routines) disableTrigger(ctx context.Context, trigger triggerRow, cause error) error {
	err := s.inTx(ctx, func(t *tx) error {
		const query = `
UPDATE routine_triggers
SET enabled = false, next_run_at = NULL, error = left($2::text, 1000), updated_at = clock_timestamp()
WHERE id = $1 AND enabled AND cron = $3 AND time_zone = $4`
		n, err := pgtx.Exec(ctx, t, query, trigger.id, cause.Error(), trigger.cron, trigger.zone)
		if err != nil || n == 0 {
			return err
		}
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		return t.note(ctx, entry{workspaceID: trigger.workspaceID, code: domain.ActivityCodeTriggerChanged, by: system("cron"),
			summary:   "The schedule cannot be computed and was switched off: " + cause.Error(),
			subjectID: trigger.routineID, agentID: trigger.assigneeID, data: map[string]any{"triggerId": trigger.id, "routineId": trigger.routineID, "enabled": false, "error": domain.FirstRunes(cause.Error(), maxTriggerError)}})
	})
	return pgtx.Wrap("switch off trigger "+string(trigger.id), err)
}

// armBatch bounds the schedules armed in one pass.
const armBatch = 200

// ArmTriggers gives enabled schedules without a next slot their first one after now, without a fire (C47). It returns how
// many it armed.
func (s *Routines) ArmTriggers(ctx context.Context) (int, error) {
	const query = `
SELECT t.id, t.workspace_id, t.routine_id, r.assignee_id, t.cron, t.time_zone
FROM routine_triggers t
JOIN routines r ON r.id = t.routine_id
WHERE t.kind = 'SCHEDULE' AND t.enabled AND t.next_run_at IS NULL AND r.deleted_at IS NULL LIMIT $1`
	unarmed, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (t triggerRow, err error) {
		return t, rows.Scan(&t.id, &t.workspaceID, &t.routineID, &t.assigneeID, &t.cron, &t.zone)
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
	schedule, err := cron.Parse(trigger.cron, trigger.zone)
	if err != nil {
		return 0, s.disableTrigger(ctx, trigger, err)
	}
	now, err := pgtx.QueryOne[time.Time](ctx, s.db, `SELECT clock_timestamp()`)
	if err != nil {
		return 0, fmt.Errorf("read the database's clock: %w", err)
	}
	n, err := pgtx.Exec(ctx, s.db, `UPDATE routine_triggers SET next_run_at = $2 WHERE id = $1 AND enabled AND next_run_at IS NULL`, trigger.id, pgtx.NullableTime(schedule.Next(now)))
	if err != nil {
		return 0, fmt.Errorf("arm trigger %s: %w", trigger.id, err)
	}
	return int(n), nil
}
