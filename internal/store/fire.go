package store

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// FireRoutine is a fire by hand. TriggerID may be empty.
type FireRoutine struct {
	WorkspaceID, RoutineID, TriggerID xid.ID
	Variables                         map[string]string
	Idempotency
}

// FireRoutine fires a routine by hand: a routine run and, unless the policy drops it, a request with its run (SPEC S4.10).
// agentID is who is to be routed; "": nobody.
func (s *Routines) FireRoutine(ctx context.Context, in FireRoutine) (made Made, agentID xid.ID, err error) {
	err = s.onceAtRoutine(ctx, s.routingTx, in.WorkspaceID, in.RoutineID, "fireRoutine", in.Idempotency, &made, func(t *tx, _ lane, r routineRow) (Made, error) {
		fired, err := t.fireByHand(ctx, r, in)
		if agentID = ""; t.sentUnrouted(r.assigneeID) {
			agentID = r.assigneeID
		}
		return fired, err
	})
	return made, agentID, pgtx.Wrap("fire routine", err)
}

func (t *tx) fireByHand(ctx context.Context, r routineRow, in FireRoutine) (Made, error) {
	if err := t.checkTrigger(ctx, in); err != nil {
		return Made{}, err
	}
	f := firing{tx: t, routine: r, triggerID: in.TriggerID, source: domain.RoutineRunSourceManual, provided: in.Variables}
	values, err := f.valuesNow(ctx)
	if err != nil {
		return Made{}, err
	}
	if err := f.readFacts(ctx); err != nil {
		return Made{}, err
	}
	plan := domain.PlanFire(f.facts)
	if plan.Answer != domain.FireRecord {
		return Made{}, domain.AsUserError([]domain.FieldError{plan.Problem})
	}
	return Made{ID: xid.ID(f.facts.RoutineRunID)}, f.record(ctx, plan, values)
}

// valuesNow resolves the variables of a fire without a slot.
func (f *firing) valuesNow(ctx context.Context) (map[string]string, error) {
	location, err := f.zoneOfFire(ctx, f.routine, f.triggerID)
	if err != nil {
		return nil, err
	}
	resolved, problems := domain.ResolveVariables(f.routine.variables, f.provided, domain.BuiltIns(f.Now, location))
	return domain.VariableValues(resolved), domain.AsUserError(problems)
}

// zoneOfFire is where the instant of a fire without a slot, which stands for one, is told: the zone of the schedule that it
// names, if that is the routine's, else the workspace's (SPEC S4.8).
func (t *tx) zoneOfFire(ctx context.Context, r routineRow, triggerID xid.ID) (*time.Location, error) {
	const query = `
SELECT coalesce((
    SELECT time_zone
    FROM routine_triggers
    WHERE id = $3 AND routine_id = $2 AND kind = 'SCHEDULE' AND deleted_at IS NULL), default_time_zone)
FROM workspaces WHERE id = $1`
	zone, err := pgtx.QueryOne[string](ctx, t, query, r.workspaceID, r.id, triggerID)
	if err != nil {
		return nil, fmt.Errorf("read the time zone of a fire: %w", err)
	}
	location, err := time.LoadLocation(zone)
	return location, pgtx.Wrap("read the time zone of a fire", err)
}

func (t *tx) checkTrigger(ctx context.Context, in FireRoutine) error {
	if in.TriggerID == "" {
		return nil
	}
	enabled, err := pgtx.QueryOne[bool](ctx, t, `SELECT enabled FROM routine_triggers WHERE id = $1 AND routine_id = $2 AND deleted_at IS NULL`, in.TriggerID, in.RoutineID)
	if err != nil {
		return pgtx.NotFound(err, []string{"triggerId"}, "trigger", in.TriggerID)
	}
	if !enabled {
		return domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeInvalidState, "the trigger is switched off; switch it on, or fire without naming it")
	}
	return nil
}

// firing is one manual or webhook fire, of a routine that is locked with its agent's lane.
type firing struct {
	*tx
	routine   routineRow
	triggerID xid.ID
	source    domain.RoutineRunSource
	provided  map[string]string
	facts     domain.FireFacts
}

// readFacts gathers what the fire is decided on, after the lane lock (SPEC S4.6).
func (f *firing) readFacts(ctx context.Context) error {
	mark := f.routine.fingerprint(f.provided)
	queue, err := f.readFireQueue(ctx, map[*routineRow]string{&f.routine: mark})
	if err != nil {
		return err
	}
	f.facts = queue.facts(&f.routine, domain.FireFacts{TriggerID: string(f.triggerID), Source: f.source, Fingerprint: mark})
	return nil
}

// record writes the fire as planned.
func (f *firing) record(ctx context.Context, plan domain.FirePlan, values map[string]string) error {
	err := f.writeFires(ctx, f.source, []fire{{routine: &f.routine, id: xid.ID(f.facts.RoutineRunID), triggerID: f.triggerID, causationID: xid.New("cau"),
		fingerprint: f.facts.Fingerprint, plan: plan, values: values}})
	if err != nil {
		return err
	}
	if err := f.touchTrigger(ctx); err != nil {
		return err
	}
	return f.touchLastRun(ctx, f.Now, &f.routine)
}

// touchTrigger notes the last fire of a trigger that is not a schedule. The last_fired_at of a schedule is written with
// its cursor.
func (f *firing) touchTrigger(ctx context.Context) error {
	if f.triggerID == "" {
		return nil
	}
	_, err := pgtx.Exec(ctx, f, `UPDATE routine_triggers SET last_fired_at = $2 WHERE id = $1 AND kind <> 'SCHEDULE'`, f.triggerID, f.Now)
	return pgtx.Wrap("note the trigger's last fire", err)
}
