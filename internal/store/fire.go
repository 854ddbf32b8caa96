package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/cron"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// FireRoutine is a fire by hand. TriggerID may be empty.
type FireRoutine struct {
	WorkspaceID, RoutineID, TriggerID xid.ID
	Variables                         map[string]string
	Idempotency
}

// FireRoutine fires a routine by hand: a routine run and, unless the policy drops it, an unrouted request (SPEC S4.10).
// agentID is whose queue it went into.
func (s *Store) FireRoutine(ctx context.Context, in FireRoutine) (made Made, agentID xid.ID, err error) {
	agentID, err = queryOne[xid.ID](ctx, s.db, `SELECT assignee_id FROM routines WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`, in.RoutineID, in.WorkspaceID)
	if err != nil {
		return Made{}, "", notFound(err, []string{"routineId"}, "routine", in.RoutineID)
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.once(ctx, in.WorkspaceID, "fireRoutine", in.Idempotency, func() (Made, error) { return t.fireByHand(ctx, agentID, in) })
		return err
	})
	return made, agentID, wrap("fire routine", err)
}

func (t *tx) fireByHand(ctx context.Context, agentID xid.ID, in FireRoutine) (Made, error) {
	l, err := t.lockLane(ctx, agentID)
	if err != nil {
		return Made{}, err
	}
	r, err := t.lockRoutine(ctx, in.RoutineID)
	if err != nil {
		return Made{}, err
	}
	if r.assigneeID != agentID {
		return Made{}, errMoved
	}
	if err := t.checkTrigger(ctx, in); err != nil {
		return Made{}, err
	}
	resolved, problems := domain.ResolveVariables(r.variables, in.Variables, domain.BuiltIns(t.now, time.UTC))
	if err := domain.AsUserError(problems); err != nil {
		return Made{}, err
	}
	f := firing{tx: t, lane: l, routine: r, triggerID: in.TriggerID, source: domain.RoutineRunSourceManual, provided: in.Variables}
	if err := f.readFacts(ctx); err != nil {
		return Made{}, err
	}
	plan := domain.PlanFire(f.facts)
	if plan.Answer != domain.FireRecord {
		return Made{}, domain.AsUserError([]domain.FieldError{plan.Problem})
	}
	if err := f.record(ctx, plan, domain.SlotFire{}, domain.VariableValues(resolved)); err != nil {
		return Made{}, err
	}
	return Made{ID: xid.ID(f.facts.RoutineRunID)}, t.touchLastRun(ctx, r, t.now)
}

// errMoved says that a routine changed its assignee between the look without locks and the lock; the caller repeats.
var errMoved = errors.New("the routine was given to another agent meanwhile; try again")

func (t *tx) checkTrigger(ctx context.Context, in FireRoutine) error {
	if in.TriggerID == "" {
		return nil
	}
	enabled, err := queryOne[bool](ctx, t, `SELECT enabled FROM routine_triggers WHERE id = $1 AND routine_id = $2`, in.TriggerID, in.RoutineID)
	if err != nil {
		return notFound(err, []string{"triggerId"}, "trigger", in.TriggerID)
	}
	if !enabled {
		return domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeInvalidState, "the trigger is switched off; switch it on, or fire without naming it")
	}
	return nil
}

// routineRow is a routine, locked.
type routineRow struct {
	id, workspaceID, assigneeID xid.ID
	name                        string
	status                      domain.RoutineStatus
	policy                      domain.ConcurrencyPolicy
	catchUp                     domain.CatchUpPolicy
	catchUpMax                  int
	template                    *domain.TaskTemplate
	variables                   []domain.RoutineVariable
	agentGone                   bool
}

func (t *tx) lockRoutine(ctx context.Context, id xid.ID) (routineRow, error) {
	r := routineRow{id: id}
	var template, variables []byte
	const query = `
SELECT r.workspace_id, r.assignee_id, r.name, r.status, r.concurrency_policy, r.catch_up_policy, r.catch_up_max, r.task_template, r.variables,
  a.deleted_at IS NOT NULL
FROM routines r JOIN agents a ON a.id = r.assignee_id WHERE r.id = $1 AND r.deleted_at IS NULL FOR NO KEY UPDATE OF r`
	err := queryRow(ctx, t, []any{&r.workspaceID, &r.assigneeID, &r.name, &r.status, &r.policy, &r.catchUp, &r.catchUpMax, &template, &variables, &r.agentGone}, query, id)
	if err != nil {
		return r, fmt.Errorf("lock routine: %w", err)
	}
	if template != nil {
		if err := json.Unmarshal(template, &r.template); err != nil {
			return r, fmt.Errorf("read the routine's template: %w", err)
		}
	}
	if err := json.Unmarshal(variables, &r.variables); err != nil {
		return r, fmt.Errorf("read the routine's variables: %w", err)
	}
	return r, nil
}

// firing is one or more fires of a routine whose agent's lane is held.
type firing struct {
	*tx
	lane      lane
	routine   routineRow
	triggerID xid.ID
	source    domain.RoutineRunSource
	provided  map[string]string
	facts     domain.FireFacts
}

// readFacts gathers what the fire is decided on, after the lane lock (SPEC S4.6).
func (f *firing) readFacts(ctx context.Context) error {
	r := f.routine
	f.facts = domain.FireFacts{
		RoutineID: string(r.id), TriggerID: string(f.triggerID), Source: f.source, RoutineStatus: r.status, AgentGone: r.agentGone,
		Heavy: r.template != nil, Policy: r.policy,
		Fingerprint: domain.Fingerprint(string(r.id), string(r.assigneeID), r.template, f.provided),
	}
	f.renewIDs()
	var err error
	if r.policy != domain.ConcurrencyPolicyAlwaysEnqueue { // it asks for no active fire, and may have a thousand
		if f.facts.ActiveRoutineRun, err = f.activeFire(ctx); err != nil {
			return err
		}
	}
	f.facts.QueuedRuns, err = f.queuedRuns(ctx, r.assigneeID)
	return err
}

// renewIDs mints the ids of the next fire.
func (f *firing) renewIDs() { f.facts.RoutineRunID = string(xid.New("rrn")) }

// activeFire is the oldest fire with the same fingerprint whose work has not ended; "" when there is none.
func (f *firing) activeFire(ctx context.Context) (string, error) {
	const query = `
SELECT f.id, q.status = 'QUEUED' AND q.run_id IS NULL, coalesce(r.status, '')
FROM routine_runs f JOIN wakeup_requests q ON q.routine_run_id = f.id LEFT JOIN runs r ON r.id = q.run_id
WHERE f.routine_id = $1 AND f.dispatch_fingerprint = $2 AND f.completed_at IS NULL ORDER BY f.started_at, f.id`
	type fire struct {
		id   string
		work domain.FireWork
	}
	fires, err := collect(ctx, f, func(rows *sql.Rows) (v fire, err error) {
		return v, rows.Scan(&v.id, &v.work.RequestUnrouted, &v.work.RunStatus)
	}, query, f.routine.id, f.facts.Fingerprint)
	if err != nil {
		return "", fmt.Errorf("look for an active fire: %w", err)
	}
	for _, v := range fires {
		if v.work.Active() {
			return v.id, nil
		}
	}
	return "", nil
}

// record writes one fire as planned: its routine run, and its request unless the policy drops it.
func (f *firing) record(ctx context.Context, plan domain.FirePlan, slot domain.SlotFire, values map[string]string) error {
	encoded, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("encode variables: %w", err)
	}
	causationID := xid.New("cau")
	var completed *time.Time
	if plan.Request == nil || plan.Status == domain.RoutineRunStatusCoalesced {
		completed = &f.now
	}
	const query = `
INSERT INTO routine_runs (id, workspace_id, causation_id, routine_id, trigger_id, source, status, skip_reason, fire_key, variables, missed_ticks,
  missed_since, missed_truncated, coalesced_into_id, dispatch_fingerprint, scheduled_for, started_at, completed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
ON CONFLICT (trigger_id, fire_key) WHERE fire_key IS NOT NULL DO NOTHING`
	n, err := exec(ctx, f, query, f.facts.RoutineRunID, f.routine.workspaceID, causationID, f.routine.id, f.triggerID, f.source, plan.Status,
		nullable(plan.SkipReason), nullable(plan.Key), encoded, slot.Missed.Ticks, nullableTime(slot.Missed.Since), slot.Missed.Truncated,
		nullable(plan.CoalescedInto), f.facts.Fingerprint, nullableTime(slot.Slot), f.now, completed)
	if err != nil {
		return fmt.Errorf("insert routine run: %w", err)
	}
	if n == 0 { // this slot or delivery has fired already (SPEC S3.3, C49)
		return nil
	}
	f.count(func(c *metrics.Counters) { c.RoutineRun(f.routine.workspaceID, f.source, plan.Status) })
	if plan.Request == nil {
		return nil
	}
	return f.send(ctx, plan, slot, values, causationID)
}

func (f *firing) send(ctx context.Context, plan domain.FirePlan, slot domain.SlotFire, values map[string]string, causationID xid.ID) error {
	_, _, err := f.insertRequest(ctx, newRequest{
		workspaceID: f.routine.workspaceID, agentID: f.routine.assigneeID, routineID: f.routine.id, routineRunID: xid.ID(f.facts.RoutineRunID),
		causationID: causationID, scope: plan.Request.Scope, source: plan.Request.Source, class: plan.Request.Class,
		personWaiting: plan.Request.PersonWaiting, fingerprint: &f.facts.Fingerprint, reason: "routine " + f.routine.name, key: plan.Key,
		payload: &domain.RoutinePayload{
			RoutineID: string(f.routine.id), TriggerID: string(f.triggerID), RoutineRunID: f.facts.RoutineRunID, Variables: values,
			ScheduledFor: slot.Slot, MissedTicks: slot.Missed.Ticks, MissedSince: slot.Missed.Since, MissedTruncated: slot.Missed.Truncated,
		},
	})
	return err
}

// touchLastRun moves last_run_at forward, never back, in a savepoint: its failure never fails the fire, and is counted
// (AC-OFFICE-LOOP-LIVENESS-001).
func (t *tx) touchLastRun(ctx context.Context, r routineRow, at time.Time) error {
	err := t.savepoint(ctx, func() error {
		const query = `
UPDATE routines SET last_run_at = $2, updated_at = $3 WHERE id = $1 AND (last_run_at IS NULL OR last_run_at < $2)`
		_, err := exec(ctx, t, query, r.id, at, t.now)
		return err
	})
	if err == nil || ctx.Err() != nil || isConnectionError(err) || isRetryable(err) {
		return err
	}
	t.onCommit(func(s *Store) {
		s.counters.LastRunAtWriteFailed(r.workspaceID)
		s.log.Error("last_run_at could not be written", "routine_id", r.id, "error", err)
	})
	return nil
}

// DueTrigger is a position in the order in which due schedules are fired.
type DueTrigger struct {
	ID        xid.ID
	NextRunAt time.Time
}

// DueTriggers lists enabled schedules whose slot has come, after the given position, in the order (next_run_at, id).
func (s *Store) DueTriggers(ctx context.Context, after DueTrigger, limit int) ([]DueTrigger, error) {
	const query = `
SELECT id, next_run_at FROM routine_triggers
WHERE kind = 'SCHEDULE' AND enabled AND next_run_at IS NOT NULL AND next_run_at <= clock_timestamp() AND (next_run_at, id) > ($1, $2)
ORDER BY next_run_at, id LIMIT $3`
	due, err := collect(ctx, s.db, func(rows *sql.Rows) (d DueTrigger, err error) { return d, rows.Scan(&d.ID, &d.NextRunAt) }, query, after.NextRunAt, string(after.ID), limit)
	if err != nil {
		return nil, fmt.Errorf("list due triggers: %w", err)
	}
	return due, nil
}

// triggerRow is a schedule that is due.
type triggerRow struct {
	id, routineID, assigneeID xid.ID
	cron, zone                string
	nextRunAt                 time.Time
	lastFiredAt               *time.Time
}

// FireDue fires one due trigger, all or nothing (SPEC S4.3): the cursor by compare-and-set, a routine run and a request
// for each slot that fires. It returns the agents to route; none when another process was first.
func (s *Store) FireDue(ctx context.Context, triggerID xid.ID) (agents []xid.ID, err error) {
	trigger, err := s.readDue(ctx, triggerID)
	if isNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap("read trigger", err)
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
	return agents, wrap("fire trigger "+string(triggerID), err)
}

func (s *Store) readDue(ctx context.Context, id xid.ID) (triggerRow, error) {
	t := triggerRow{id: id}
	const query = `
SELECT t.routine_id, r.assignee_id, t.cron, t.time_zone, t.next_run_at, t.last_fired_at
FROM routine_triggers t JOIN routines r ON r.id = t.routine_id
WHERE t.id = $1 AND t.enabled AND t.next_run_at <= clock_timestamp() AND r.deleted_at IS NULL`
	return t, queryRow(ctx, s.db, []any{&t.routineID, &t.assigneeID, &t.cron, &t.zone, &t.nextRunAt, &t.lastFiredAt}, query, id)
}

// fireDue fires a trigger in one transaction; sent says whether a request was made.
func (t *tx) fireDue(ctx context.Context, trigger triggerRow, schedule cron.Schedule) (sent bool, err error) {
	l, err := t.lockLane(ctx, trigger.assigneeID)
	if err != nil {
		return false, err
	}
	r, err := t.lockRoutine(ctx, trigger.routineID)
	if err != nil {
		return false, err
	}
	if r.assigneeID != trigger.assigneeID {
		return false, errMoved
	}
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
	after := t.now
	if trigger.lastFiredAt != nil && trigger.lastFiredAt.After(after) {
		after = *trigger.lastFiredAt
	}
	const query = `
UPDATE routine_triggers SET next_run_at = $3, last_fired_at = CASE WHEN $4 THEN $5 ELSE last_fired_at END
WHERE id = $1 AND enabled AND next_run_at = $2`
	n, err := exec(ctx, t, query, trigger.id, trigger.nextRunAt, nullableTime(schedule.Next(after)), fires, t.now)
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
	const query = `
INSERT INTO activities (id, workspace_id, code, summary, actor_kind, actor, subject_id, agent_id, data, occurred_at)
VALUES ($1, $2, 'ROUTINE_CHANGED', 'The routine did not fire: its agent was deleted. Give it another assignee.', 'SYSTEM', 'cron', $3, $4, '{}', $5)`
	if err := execOne(ctx, f, query, xid.New("act"), f.routine.workspaceID, f.routine.id, f.routine.assigneeID, f.now); err != nil {
		return fmt.Errorf("append activity: %w", err)
	}
	return nil
}

// disableTrigger switches off a schedule whose stored expression cannot be read, with the reason (SPEC S4.3, C46).
func (s *Store) disableTrigger(ctx context.Context, trigger triggerRow, cause error) error {
	err := s.inTx(ctx, func(t *tx) error {
		const query = `UPDATE routine_triggers SET enabled = false, next_run_at = NULL, error = left($2::text, 1000), updated_at = clock_timestamp() WHERE id = $1 AND enabled`
		n, err := exec(ctx, t, query, trigger.id, cause.Error())
		if err != nil || n == 0 {
			return err
		}
		const note = `
INSERT INTO activities (id, workspace_id, code, summary, actor_kind, actor, subject_id, data, occurred_at)
SELECT $1, workspace_id, 'TRIGGER_CHANGED', 'The schedule cannot be computed and was switched off: ' || $3::text, 'SYSTEM', 'cron', id, '{}', clock_timestamp()
FROM routine_triggers WHERE id = $2`
		return execOne(ctx, t, note, xid.New("act"), string(trigger.id), cause.Error())
	})
	return wrap("switch off trigger "+string(trigger.id), err)
}

// armBatch bounds the schedules armed in one pass.
const armBatch = 200

// ArmTriggers gives enabled schedules without a next slot their first one after now, without a fire (C47). It returns how
// many it armed.
func (s *Store) ArmTriggers(ctx context.Context) (int, error) {
	const query = `
SELECT t.id, t.routine_id, t.cron, t.time_zone FROM routine_triggers t JOIN routines r ON r.id = t.routine_id
WHERE t.kind = 'SCHEDULE' AND t.enabled AND t.next_run_at IS NULL AND r.deleted_at IS NULL LIMIT $1`
	unarmed, err := collect(ctx, s.db, func(rows *sql.Rows) (t triggerRow, err error) {
		return t, rows.Scan(&t.id, &t.routineID, &t.cron, &t.zone)
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
