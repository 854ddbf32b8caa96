package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/cron"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// BackfillRoutine asks for the slots of a schedule in [From, Until) to be fired anew.
type BackfillRoutine struct {
	WorkspaceID, RoutineID, TriggerID xid.ID
	From, Until                       time.Time
	DryRun                            bool
}

// BackfilledSlot is a slot of the window. FireID is its fire, also one that it had before; "" where it has none.
type BackfilledSlot struct {
	Slot    time.Time
	Outcome domain.BackfillOutcome
	FireID  xid.ID
}

// BackfillRoutine fires the slots of a window that have not fired, under the routine's policy, and marks them. A slot never fires
// twice: it is told by its key, and the cursor's own are left to the tick. It returns the requests that were sent.
func (s *Routines) BackfillRoutine(ctx context.Context, in BackfillRoutine) (slots []BackfilledSlot, sent []xid.ID, err error) {
	err = s.withTrigger(ctx, in.WorkspaceID, in.TriggerID, func(t *tx, _ lane, r routineRow, row *ent.RoutineTrigger) error {
		slots, sent = nil, nil
		if err := refuseBackfill(r, row, in, t.Now); err != nil {
			return err
		}
		schedule, err := cron.ParseTiming(TimingSpec(row))
		if err != nil {
			return domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeInvalidState, "the schedule cannot be computed: %s", err)
		}
		if slots, err = t.planBackfill(ctx, r, row, schedule, in); err != nil || in.DryRun {
			return err
		}
		fires, err := t.backfillFires(ctx, &r, row.ID, schedule.Zone(), slots)
		if err != nil || len(fires) == 0 {
			return err
		}
		if err := t.writeFires(ctx, fires); err != nil {
			return err
		}
		sent = t.sent
		return t.touchLastRun(ctx, t.Now, &r)
	})
	return slots, sent, pgtx.Wrap("fire slots anew", err)
}

// refuseBackfill says why no slot of a trigger can be fired anew.
func refuseBackfill(r routineRow, row *ent.RoutineTrigger, in BackfillRoutine, now time.Time) error {
	if row.RoutineID != in.RoutineID {
		return domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeNotFound, "the routine has no trigger %s", row.ID)
	}
	if row.Kind != domain.TriggerKindSchedule {
		return domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeInvalid, "only a schedule has slots")
	}
	plan := domain.PlanFire(domain.FireFacts{Source: domain.RoutineRunSourceManual, RoutineStatus: r.status, AgentGone: r.agentGone})
	if plan.Answer == domain.FireRefuse {
		return domain.AsUserError([]domain.FieldError{plan.Problem})
	}
	return domain.AsUserError(domain.CheckBackfill(in.From, in.Until, now))
}

// planBackfill says of each slot of the window what becomes of it.
func (t *tx) planBackfill(ctx context.Context, r routineRow, row *ent.RoutineTrigger, schedule cron.Timing, in BackfillRoutine) (slots []BackfilledSlot, err error) {
	var keys []string
	for slot := range schedule.Slots(in.From.Add(-time.Nanosecond)) {
		if !slot.Before(in.Until) {
			break
		}
		if len(slots) == domain.MaxBackfill {
			return nil, domain.RefuseField([]string{"until"}, domain.UserErrorCodeOutOfRange, "the window has more than %d slots: choose a shorter one", domain.MaxBackfill)
		}
		slots = append(slots, BackfilledSlot{Slot: slot})
		keys = append(keys, domain.CronFireKey(string(r.id), string(row.ID), slot))
	}
	fired, err := t.firedSlots(ctx, row.ID, keys)
	for i := range slots {
		x := &slots[i]
		x.FireID = fired[keys[i]]
		x.Outcome = domain.PlanBackfill(domain.BackfillFacts{Due: schedule.Due(x.Slot), Fired: x.FireID != "", Cursor: row.NextRunAt})
	}
	return slots, err
}

// firedSlots are the fires of a trigger by the keys of their slots.
func (t *tx) firedSlots(ctx context.Context, triggerID xid.ID, keys []string) (map[string]xid.ID, error) {
	found := map[string]xid.ID{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var key string
		var id xid.ID
		err := rows.Scan(&key, &id)
		found[key] = id
		return struct{}{}, err
	}, `SELECT fire_key, id FROM routine_runs WHERE trigger_id = $1 AND fire_key = ANY($2)`, triggerID, pgtx.TextArray(keys))
	return found, pgtx.Wrap("look for fires of slots", err)
}

// backfillFires decides the fires of slots, in order: each finds those before it. With a full backlog none fires.
func (t *tx) backfillFires(ctx context.Context, r *routineRow, triggerID xid.ID, zone *time.Location, slots []BackfilledSlot) ([]fire, error) {
	mark := r.fingerprint(nil)
	queue, err := t.readFireQueue(ctx, []markedRoutine{{r, mark}})
	if err != nil {
		return nil, err
	}
	var fires []fire
	for i := range slots {
		x := &slots[i]
		if x.Outcome != domain.BackfillOutcomeFired {
			continue
		}
		resolved, problems := domain.ResolveVariables(r.variables, nil, domain.BuiltIns(x.Slot, zone))
		if err := domain.AsUserError(problems); err != nil {
			return nil, fmt.Errorf("fill in a slot's values: %w", err)
		}
		facts := queue.facts(r, domain.FireFacts{TriggerID: string(triggerID), Source: domain.RoutineRunSourceCron, Fingerprint: mark, Slot: x.Slot})
		plan := domain.PlanFire(facts)
		if plan.SkipReason == domain.EndReasonBacklogFull {
			return nil, domain.AsUserError([]domain.FieldError{domain.BacklogFull(facts.QueuedRuns)})
		}
		queue.note(r, facts, plan)
		x.FireID = xid.ID(facts.RoutineRunID)
		fires = append(fires, fire{source: domain.RoutineRunSourceCron, by: callerOr(ctx, "routines"), routine: r, id: x.FireID, triggerID: triggerID, causationID: xid.New("cau"),
			fingerprint: mark, plan: plan, slot: domain.SlotFire{Slot: x.Slot}, backfilled: true, values: domain.VariableValues(resolved)})
	}
	return fires, nil
}
