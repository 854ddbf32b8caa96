package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/cron"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// FireDue fires due triggers in batches (SPEC S4.3): the cursor of each by compare-and-set, a routine run and a request
// for each slot that fires, with its run. A batch is one transaction, all or nothing. Triggers that cannot be fired are found by
// bisecting and left alone, so that they stop no other. It returns the agents to route, and the errors of the triggers
// that failed, joined; a trigger that another process fired first is neither.
func (s *Routines) FireDue(ctx context.Context, triggers ...xid.ID) (agents []xid.ID, err error) {
	var unfit []error
	failed := pgtx.Bisect(ctx, triggers, func(some []xid.ID) error {
		return s.fireSome(ctx, some, func(b *fireBatch) {
			agents = append(agents, b.toRoute...)
			unfit = append(unfit, b.unfit...)
			for _, x := range b.unparsable {
				unfit = pgtx.AppendError(unfit, s.disableTrigger(ctx, x.triggerRow, x.err))
			}
		})
	}, func(some []xid.ID, err error) error {
		return fmt.Errorf("fire %s: %w", pgtx.Named("trigger", some), err)
	})
	return pgtx.Distinct(agents), errors.Join(append(unfit, failed...)...)
}

// fireSome fires triggers, a batch at a time, until none of them is due; committed is called with each batch. Lanes that
// others hold are left for a transaction that waits for them, so that nobody holds a whole batch's lanes while he waits for
// one unless it has to be; several are waited for in the order of their agents, as the lock order has it.
func (s *Routines) fireSome(ctx context.Context, triggers []xid.ID, committed func(*fireBatch)) error {
	for tries := 0; tries < pgtx.MaxTries; tries++ {
		var b *fireBatch
		err := s.routingTx(ctx, func(t *tx) error {
			b = &fireBatch{tx: t, wait: tries > 0 || len(triggers) == 1}
			return b.fire(ctx, triggers)
		})
		if err != nil {
			return err
		}
		committed(b)
		if triggers = pgtx.Remaining(triggers, b.done); b.nothing || len(triggers) == 0 {
			return nil
		}
		if len(b.done) > 0 {
			tries = 0 // it goes on: the limit is for those that change hands again and again
		}
	}
	return errMoved
}

// maxFires bounds the slots that a batch fires; one trigger alone may have up to MaxCatchUpMax.
const maxFires = 1000

// fireBatch is one transaction that fires triggers of one or several agents.
type fireBatch struct {
	*tx
	wait bool // for lanes that are locked

	nothing    bool // none of the triggers is due
	done       []xid.ID
	unfit      []error
	unparsable []unparsable
}

type unparsable struct {
	triggerRow
	err error
}

// dueTrigger is a trigger of the batch whose slot has come.
type dueTrigger struct {
	triggerRow
	nextRunAt   time.Time
	lastFiredAt time.Time // zero: never

	routine  *routineRow
	schedule cron.Timing
	fires    bool // the status gate is open
	slots    []domain.SlotFire
	left     domain.Missed       // what no fire has told of
	next     time.Time           // zero: none is left
	values   []map[string]string // of each slot
}

func (b *fireBatch) fire(ctx context.Context, triggers []xid.ID) error {
	lanes, err := b.lockLanesOf(ctx, triggers)
	if err != nil {
		return err
	}
	if len(lanes) == 0 {
		b.nothing = b.wait
		return nil
	}
	due, err := b.readDue(ctx, triggers, lanes)
	if err != nil {
		return err
	}
	return b.fireAll(ctx, due)
}

// fireAll fires triggers that are due, whose lanes and routines are locked, as far as one batch takes them.
func (b *fireBatch) fireAll(ctx context.Context, due []*dueTrigger) error {
	taken, err := b.take(ctx, b.plan(due))
	if err != nil || len(taken) == 0 {
		return err
	}
	if err := b.noteOver(ctx, taken); err != nil {
		return err
	}
	fires, err := b.decide(ctx, taken)
	if err != nil {
		return err
	}
	if err := b.writeFires(ctx, fires); err != nil {
		return err
	}
	return b.touchLastRun(ctx, b.Now, firedRoutines(fires)...)
}

// lockLanesOf locks the lanes of the agents that have triggers due among these, and reads the clock.
func (b *fireBatch) lockLanesOf(ctx context.Context, triggers []xid.ID) ([]lane, error) {
	query := `
SELECT ` + laneColumns + ` FROM agent_lanes WHERE agent_id = ANY (ARRAY(
  SELECT r.assignee_id FROM routine_triggers t JOIN routines r ON r.id = t.routine_id
  WHERE t.id = ANY($1) AND t.enabled AND t.next_run_at <= clock_timestamp() AND r.deleted_at IS NULL
    AND NOT ` + guard.HoldsFires("r.workspace_id") + `))
ORDER BY agent_id FOR NO KEY UPDATE`
	if !b.wait {
		query += ` SKIP LOCKED`
	}
	lanes, err := b.lockLanes(ctx, query, pgtx.IDs(triggers))
	return lanes, pgtx.Wrap("lock the lanes of due triggers", err)
}

// readDue locks the routines that are due, in the order of their ids, and reads their triggers, in the order in which they
// fire. A trigger that was edited since its row was read has another cursor, and is not taken.
func (b *fireBatch) readDue(ctx context.Context, triggers []xid.ID, lanes []lane) ([]*dueTrigger, error) {
	query := `
SELECT ` + routineColumns + `, t.id, t.next_run_at, coalesce(t.last_fired_at, '0001-01-01Z'),
  ` + timingColumns + `
FROM routine_triggers t JOIN routines r ON r.id = t.routine_id JOIN agents a ON a.id = r.assignee_id
WHERE t.id = ANY($1) AND t.enabled AND t.next_run_at <= $2 AND r.assignee_id = ANY($3) AND r.deleted_at IS NULL
  AND NOT ` + guard.HoldsFires("r.workspace_id") + `
ORDER BY r.id FOR NO KEY UPDATE OF r`
	agents := make([]xid.ID, len(lanes))
	for i, l := range lanes {
		agents[i] = l.agentID
	}
	routines := map[xid.ID]*routineRow{}
	due, err := pgtx.Collect(ctx, b, func(rows *sql.Rows) (*dueTrigger, error) {
		d := &dueTrigger{}
		var timing timingScan
		r, err := scanRoutine(rows, append([]any{&d.id, &d.nextRunAt, &d.lastFiredAt}, timing.into(&d.triggerRow)...)...)
		if err == nil {
			err = timing.done(&d.triggerRow)
		}
		if routines[r.id] == nil {
			routines[r.id] = &r
		}
		d.routine = routines[r.id]
		d.workspaceID, d.routineID, d.assigneeID = r.workspaceID, r.id, r.assigneeID
		return d, err
	}, query, pgtx.IDs(triggers), b.Now, pgtx.IDs(agents))
	if err != nil {
		return nil, fmt.Errorf("lock the routines of due triggers: %w", err)
	}
	slices.SortFunc(due, func(a, b *dueTrigger) int { return cmp.Or(a.nextRunAt.Compare(b.nextRunAt), cmp.Compare(a.id, b.id)) })
	return due, nil
}

// plan works out which slots each trigger fires, with which values, as long as the batch has room. A trigger whose schedule
// cannot be read, or whose variables have no value, is put aside with the reason.
func (b *fireBatch) plan(due []*dueTrigger) (planned []*dueTrigger) {
	room := maxFires
	for _, d := range due {
		if room <= 0 {
			break
		}
		b.done = append(b.done, d.id)
		var err error
		if d.schedule, err = cron.ParseTiming(d.spec); err != nil {
			b.unparsable = append(b.unparsable, unparsable{d.triggerRow, err})
			continue
		}
		if d.fires = d.routine.fires(); d.fires {
			if err := d.catchUp(b.Now); err != nil {
				b.unfit = append(b.unfit, fmt.Errorf("fire trigger %s: %w", d.id, err))
				continue
			}
		}
		planned = append(planned, d)
		room -= len(d.slots)
	}
	return planned
}

// catchUp finds the slots that have elapsed since the cursor, the due one included, as far as they fire, and counts those that are
// older than the deadline (SPEC S4.5).
func (d *dueTrigger) catchUp(now time.Time) error {
	r := d.routine
	from, tooOld := d.nextRunAt, d.missed
	if oldest := now.Add(-d.deadline); d.deadline > 0 && oldest.After(from) {
		tooOld = d.schedule.Elapsed(from, oldest.Add(-time.Nanosecond), 1).All().And(tooOld)
		from = oldest
	}
	elapsed := d.schedule.Elapsed(from, now, domain.CatchUpLimit(r.catchUp, r.catchUpMax))
	d.slots, d.left = domain.TellMissed(domain.PlanCatchUp(r.catchUp, elapsed), tooOld)
	for i, slot := range d.slots {
		d.slots[i].LateBy = domain.Lateness(d.schedule.Due(slot.Slot), now)
		resolved, problems := domain.ResolveVariables(r.variables, nil, domain.BuiltIns(slot.Slot, d.schedule.Zone()))
		if err := domain.AsUserError(problems); err != nil {
			return err
		}
		d.values = append(d.values, domain.VariableValues(resolved))
	}
	return nil
}

// take moves the cursors by compare-and-set, and returns the triggers that were not another's. The next slot depends on
// expression, zone, bounds and now alone; a schedule that has none any more is switched off. A suppressed fire moves the cursor and leaves last_fired_at as it is (C30).
func (b *fireBatch) take(ctx context.Context, planned []*dueTrigger) ([]*dueTrigger, error) {
	if len(planned) == 0 {
		return nil, nil
	}
	type cursor struct {
		ID        xid.ID    `json:"id"`
		Due       time.Time `json:"due"`
		Next      time.Time `json:"next,omitzero"`
		Fires     bool      `json:"fires"`
		Ticks     int       `json:"ticks"`
		Since     time.Time `json:"since,omitzero"`
		Truncated bool      `json:"truncated"`
	}
	cursors := make([]cursor, len(planned))
	for i, d := range planned {
		d.next = d.schedule.NextDue(afterFire(b.Now, d.lastFiredAt))
		cursors[i] = cursor{d.id, d.nextRunAt, d.next, len(d.slots) > 0, d.left.Ticks, d.left.Since, d.left.Truncated}
	}
	encoded, err := json.Marshal(cursors)
	if err != nil {
		return nil, fmt.Errorf("encode cursors: %w", err)
	}
	const query = `
UPDATE routine_triggers t
SET next_run_at = n.next, last_fired_at = CASE WHEN n.fires THEN $3 ELSE t.last_fired_at END,
  enabled = n.next IS NOT NULL, error = CASE WHEN n.next IS NULL THEN $4 ELSE t.error END,
  missed_ticks = n.ticks, missed_since = n.since, missed_truncated = n.truncated
FROM json_to_recordset($1) AS n (id text, due timestamptz, next timestamptz, fires boolean, ticks int,
    since timestamptz, truncated boolean)
WHERE t.id = n.id AND t.id = ANY($2) AND t.enabled AND t.next_run_at = n.due RETURNING t.id`
	moved, err := pgtx.Collect(ctx, b, pgtx.ScanOne[xid.ID], query, encoded, pgtx.IDs(triggerIDs(planned)), b.Now, domain.NoSlotLeft)
	if err != nil {
		return nil, fmt.Errorf("move the cursors of due triggers: %w", err)
	}
	if len(moved) == len(planned) {
		return planned, nil
	}
	return slices.DeleteFunc(planned, func(d *dueTrigger) bool { return !slices.Contains(moved, d.id) }), nil
}

// noteOver says in the feed that schedules have no slot left.
func (b *fireBatch) noteOver(ctx context.Context, taken []*dueTrigger) error {
	for _, d := range taken {
		if !d.next.IsZero() {
			continue
		}
		err := b.note(ctx, entry{workspaceID: d.workspaceID, code: domain.ActivityCodeTriggerChanged, by: system("cron"),
			summary:   "The schedule is over and was switched off: " + domain.NoSlotLeft + ".",
			subjectID: d.routineID, agentID: d.assigneeID, data: map[string]any{"triggerId": d.id, "routineId": d.routineID, "enabled": false, "error": domain.NoSlotLeft}})
		if err != nil {
			return err
		}
	}
	return nil
}

// decide decides the fires of the triggers that were taken, in order: each finds those before it.
func (b *fireBatch) decide(ctx context.Context, taken []*dueTrigger) ([]fire, error) {
	marks := map[*routineRow]string{}
	for _, d := range taken {
		if d.fires && marks[d.routine] == "" {
			marks[d.routine] = d.routine.fingerprint(nil)
		}
	}
	var marked []markedRoutine
	for r, mark := range marks {
		marked = append(marked, markedRoutine{r, mark})
	}
	queue, err := b.readFireQueue(ctx, marked)
	if err != nil {
		return nil, err
	}
	var fires []fire
	for _, d := range taken {
		if err := b.noteMissingAgent(ctx, d.routine); err != nil {
			return nil, err
		}
		for i, slot := range d.slots {
			facts := queue.facts(d.routine, domain.FireFacts{TriggerID: string(d.id), Source: domain.RoutineRunSourceCron, Fingerprint: marks[d.routine], Slot: slot.Slot})
			plan := domain.PlanFire(facts)
			queue.note(d.routine, facts, plan)
			fires = append(fires, fire{source: domain.RoutineRunSourceCron, by: system("cron"), routine: d.routine, id: xid.ID(facts.RoutineRunID), triggerID: d.id, causationID: xid.New("cau"),
				fingerprint: facts.Fingerprint, plan: plan, slot: slot, values: d.values[i]})
		}
	}
	return fires, nil
}

// noteMissingAgent says in the feed why a routine whose agent is gone did not fire (C220).
func (b *fireBatch) noteMissingAgent(ctx context.Context, r *routineRow) error {
	if !domain.PlanFire(domain.FireFacts{Source: domain.RoutineRunSourceCron, RoutineStatus: r.status, AgentGone: r.agentGone}).AgentMissing {
		return nil
	}
	return b.note(ctx, entry{workspaceID: r.workspaceID, code: domain.ActivityCodeRoutineChanged, by: system("cron"),
		summary:   "The routine did not fire: its agent was deleted. Give it another assignee.",
		subjectID: r.id, agentID: r.assigneeID, data: map[string]any{"routineId": r.id, "reason": domain.EndReasonAgentDeleted}})
}

func firedRoutines(fires []fire) (routines []*routineRow) {
	for _, f := range fires {
		routines = append(routines, f.routine)
	}
	return pgtx.Distinct(routines)
}

func routineIDs(routines []*routineRow) []xid.ID {
	list := make([]xid.ID, len(routines))
	for i, r := range routines {
		list[i] = r.id
	}
	return list
}

func triggerIDs(triggers []*dueTrigger) []xid.ID {
	list := make([]xid.ID, len(triggers))
	for i, d := range triggers {
		list[i] = d.id
	}
	return list
}
