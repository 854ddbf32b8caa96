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
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// DueTrigger is a schedule that is due, and a position in the order in which they are fired. AgentID is whose it was when
// it was listed.
type DueTrigger struct {
	ID, AgentID xid.ID
	NextRunAt   time.Time
}

// DueTriggers lists enabled schedules whose slot has come, after the given position, in the order (next_run_at, id).
func (s *Store) DueTriggers(ctx context.Context, after DueTrigger, limit int) ([]DueTrigger, error) {
	const query = `
SELECT t.id, r.assignee_id, t.next_run_at FROM routine_triggers t JOIN routines r ON r.id = t.routine_id
WHERE t.kind = 'SCHEDULE' AND t.enabled AND t.next_run_at IS NOT NULL AND t.next_run_at <= clock_timestamp() AND (t.next_run_at, t.id) > ($1, $2)
ORDER BY t.next_run_at, t.id LIMIT $3`
	due, err := collect(ctx, s.db, func(rows *sql.Rows) (d DueTrigger, err error) { return d, rows.Scan(&d.ID, &d.AgentID, &d.NextRunAt) }, query, after.NextRunAt, string(after.ID), limit)
	if err != nil {
		return nil, fmt.Errorf("list due triggers: %w", err)
	}
	return due, nil
}

// triggerRow is a schedule that is due.
type triggerRow struct {
	id, workspaceID, routineID, assigneeID xid.ID
	cron, zone                             string
	nextRunAt                              time.Time
	lastFiredAt                            *time.Time
}

// FireDue fires one due trigger, all or nothing (SPEC S4.3): the cursor by compare-and-set, a routine run and a request
// for each slot that fires. It returns the agents to route; none when another process was first.
func (s *Store) FireDue(ctx context.Context, triggerID xid.ID) (agents []xid.ID, err error) {
	for range maxTries {
		if agents, err = s.fireDueOnce(ctx, triggerID); !errors.Is(err, errMoved) {
			break
		}
	}
	return agents, wrap("fire trigger "+string(triggerID), err)
}

func (s *Store) fireDueOnce(ctx context.Context, triggerID xid.ID) (agents []xid.ID, err error) {
	trigger, err := s.readDue(ctx, triggerID)
	if isNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read trigger: %w", err)
	}
	schedule, err := cron.Parse(trigger.cron, trigger.zone)
	if err != nil {
		return nil, s.disableTrigger(ctx, trigger, err)
	}
	err = s.inTx(ctx, func(t *tx) error {
		agents = nil
		sent, err := t.fireDue(ctx, trigger, schedule)
		if sent {
			agents = []xid.ID{trigger.assigneeID}
		}
		return err
	})
	return agents, err
}

func (s *Store) readDue(ctx context.Context, id xid.ID) (triggerRow, error) {
	t := triggerRow{id: id}
	const query = `
SELECT t.workspace_id, t.routine_id, r.assignee_id, t.cron, t.time_zone, t.next_run_at, t.last_fired_at
FROM routine_triggers t JOIN routines r ON r.id = t.routine_id
WHERE t.id = $1 AND t.enabled AND t.next_run_at <= clock_timestamp() AND r.deleted_at IS NULL`
	return t, queryRow(ctx, s.db, []any{&t.workspaceID, &t.routineID, &t.assigneeID, &t.cron, &t.zone, &t.nextRunAt, &t.lastFiredAt}, query, id)
}

// fireDue fires a trigger in one transaction; sent says whether a request was made.
func (t *tx) fireDue(ctx context.Context, trigger triggerRow, schedule cron.Schedule) (sent bool, err error) {
	l, err := t.lockLane(ctx, trigger.assigneeID)
	if err != nil {
		return false, err
	}
	r, err := t.lockRoutine(ctx, trigger.routineID)
	if isNoRows(err) { // deleted meanwhile
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if r.assigneeID != trigger.assigneeID {
		return false, errMoved
	}
	return t.fireSlots(ctx, l, r, trigger, schedule)
}

// fireSlots fires the slots of a trigger that are due, with the lane and the routine locked.
func (t *tx) fireSlots(ctx context.Context, l lane, r routineRow, trigger triggerRow, schedule cron.Schedule) (sent bool, err error) {
	f := firing{tx: t, lane: l, routine: r, triggerID: trigger.id, source: domain.RoutineRunSourceCron}
	if err := f.readFacts(ctx); err != nil {
		return false, err
	}
	fired, err := t.moveCursor(ctx, trigger, schedule, domain.PlanFire(f.facts).Answer == domain.FireRecord)
	if err != nil || !fired {
		return false, err
	}
	sent, recorded, err := f.catchUp(ctx, schedule, trigger.nextRunAt)
	if err != nil || !recorded {
		return sent, err
	}
	return sent, t.touchLastRun(ctx, r, t.now)
}

// moveCursor takes the due slots by compare-and-set; false means that another process did. The next slot depends on
// expression, zone and now alone. A suppressed fire moves the cursor and leaves last_fired_at as it is (C30).
func (t *tx) moveCursor(ctx context.Context, trigger triggerRow, schedule cron.Schedule, fires bool) (bool, error) {
	const query = `
UPDATE routine_triggers SET next_run_at = $3, last_fired_at = CASE WHEN $4 THEN $5 ELSE last_fired_at END
WHERE id = $1 AND enabled AND next_run_at = $2`
	n, err := exec(ctx, t, query, trigger.id, trigger.nextRunAt, nullableTime(schedule.Next(afterFire(t.now, trigger.lastFiredAt))), fires, t.now)
	if err != nil {
		return false, fmt.Errorf("move the trigger's cursor: %w", err)
	}
	return n == 1, nil
}

// catchUp fires the slots that have elapsed since the cursor, the due one included (SPEC S4.5).
func (f *firing) catchUp(ctx context.Context, schedule cron.Schedule, cursor time.Time) (sent, recorded bool, err error) {
	elapsed := schedule.Elapsed(cursor, f.now, domain.CatchUpLimit(f.routine.catchUp, f.routine.catchUpMax))
	for _, slot := range domain.PlanCatchUp(f.routine.catchUp, elapsed) {
		f.renewIDs()
		f.facts.Slot = slot.Slot
		plan := domain.PlanFire(f.facts)
		if plan.Answer != domain.FireRecord {
			return sent, recorded, f.noteMissingAgent(ctx, plan)
		}
		resolved, problems := domain.ResolveVariables(f.routine.variables, nil, domain.BuiltIns(slot.Slot, schedule.Zone()))
		if err := domain.AsUserError(problems); err != nil {
			return sent, recorded, err
		}
		if err := f.record(ctx, plan, slot, domain.VariableValues(resolved)); err != nil {
			return sent, recorded, err
		}
		f.count(func(c *metrics.Counters) { c.TriggerClaimed(f.routine.workspaceID) })
		sent, recorded = sent || plan.Request != nil, true
		f.facts = f.facts.Then(plan)
	}
	return sent, recorded, nil
}

// noteMissingAgent says in the feed why a routine whose agent is gone did not fire (C220).
func (f *firing) noteMissingAgent(ctx context.Context, plan domain.FirePlan) error {
	if !plan.AgentMissing {
		return nil
	}
	return f.note(ctx, entry{workspaceID: f.routine.workspaceID, code: domain.ActivityCodeRoutineChanged, by: system("cron"),
		summary:   "The routine did not fire: its agent was deleted. Give it another assignee.",
		subjectID: f.routine.id, agentID: f.routine.assigneeID})
}

// disableTrigger switches off a schedule whose stored expression cannot be read, with the reason (SPEC S4.3, C46).
func (s *Store) disableTrigger(ctx context.Context, trigger triggerRow, cause error) error {
	err := s.inTx(ctx, func(t *tx) error {
		const query = `UPDATE routine_triggers SET enabled = false, next_run_at = NULL, error = left($2::text, 1000), updated_at = clock_timestamp() WHERE id = $1 AND enabled`
		n, err := exec(ctx, t, query, trigger.id, cause.Error())
		if err != nil || n == 0 {
			return err
		}
		if err := t.readClock(ctx); err != nil {
			return err
		}
		return t.note(ctx, entry{workspaceID: trigger.workspaceID, code: domain.ActivityCodeTriggerChanged, by: system("cron"),
			summary:   "The schedule cannot be computed and was switched off: " + cause.Error(),
			subjectID: trigger.routineID, agentID: trigger.assigneeID, data: map[string]any{"triggerId": trigger.id}})
	})
	return wrap("switch off trigger "+string(trigger.id), err)
}

// armBatch bounds the schedules armed in one pass.
const armBatch = 200

// ArmTriggers gives enabled schedules without a next slot their first one after now, without a fire (C47). It returns how
// many it armed.
func (s *Store) ArmTriggers(ctx context.Context) (int, error) {
	const query = `
SELECT t.id, t.workspace_id, t.routine_id, r.assignee_id, t.cron, t.time_zone FROM routine_triggers t JOIN routines r ON r.id = t.routine_id
WHERE t.kind = 'SCHEDULE' AND t.enabled AND t.next_run_at IS NULL AND r.deleted_at IS NULL LIMIT $1`
	unarmed, err := collect(ctx, s.db, func(rows *sql.Rows) (t triggerRow, err error) {
		return t, rows.Scan(&t.id, &t.workspaceID, &t.routineID, &t.assigneeID, &t.cron, &t.zone)
	}, query, armBatch)
	if err != nil {
		return 0, fmt.Errorf("list unarmed triggers: %w", err)
	}
	armed := 0
	for _, trigger := range unarmed {
		schedule, err := cron.Parse(trigger.cron, trigger.zone)
		if err != nil {
			if err := s.disableTrigger(ctx, trigger, err); err != nil {
				return armed, err
			}
			continue
		}
		now, err := queryOne[time.Time](ctx, s.db, `SELECT clock_timestamp()`)
		if err != nil {
			return armed, fmt.Errorf("read the database's clock: %w", err)
		}
		n, err := exec(ctx, s.db, `UPDATE routine_triggers SET next_run_at = $2 WHERE id = $1 AND enabled AND next_run_at IS NULL`, trigger.id, nullableTime(schedule.Next(now)))
		if err != nil {
			return armed, fmt.Errorf("arm trigger: %w", err)
		}
		armed += int(n)
	}
	if armed > 0 {
		s.events.Publish(event.Event{Kind: event.Queue})
	}
	return armed, nil
}
