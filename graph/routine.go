package graph

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

const defaultCatchUpMax = 25

// nextFire is the slot that a schedule will fire; nil while it is switched off.
func nextFire(t *ent.RoutineTrigger) *time.Time {
	if !t.Enabled {
		return nil
	}
	return t.NextRunAt
}

func (r *Resolver) createRoutine(ctx context.Context, in model.CreateRoutineInput) (store.Made, error) {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return store.Made{}, err
	}
	triggers, triggersErr := triggerSpecs(in.Triggers)
	once, onceErr := idempotency(in, in.IdempotencyKey)
	if err := joinProblems(triggersErr, onceErr); err != nil {
		return store.Made{}, err
	}
	out := store.CreateRoutine{
		WorkspaceID: in.WorkspaceID, Name: in.Name, Description: valueOf(in.Description), AssigneeID: in.AssigneeID,
		ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap,
		CatchUpMax: defaultCatchUpMax, Variables: declarations(in.Variables), Triggers: triggers, Idempotency: once,
	}
	if in.ConcurrencyPolicy != nil {
		out.ConcurrencyPolicy = *in.ConcurrencyPolicy
	}
	if in.CatchUpPolicy != nil {
		out.CatchUpPolicy = *in.CatchUpPolicy
	}
	if in.CatchUpMax != nil {
		out.CatchUpMax = *in.CatchUpMax
	}
	return r.Store.CreateRoutine(ctx, out)
}

// fireRoutine fires by hand and routes what the fire made before it answers.
func (r *Resolver) fireRoutine(ctx context.Context, in model.FireRoutineInput) (store.Made, error) {
	x, err := visible(r.Reader.Routine.Query().Where(routine.ID(in.RoutineID), routine.DeletedAtIsNil()).Only(ctx))
	if err != nil {
		return store.Made{}, fmt.Errorf("look for routine: %w", err)
	}
	if x == nil {
		return store.Made{}, notFound("routineId", "routine")
	}
	variables, err := variableTexts(in.Variables)
	if err := joinProblems(err, checkObject([]string{"variables"}, in.Variables, givenBytesMax)); err != nil {
		return store.Made{}, err
	}
	once, err := idempotency(in, in.IdempotencyKey)
	if err != nil {
		return store.Made{}, err
	}
	made, agentID, err := r.Store.FireRoutine(ctx, store.FireRoutine{
		WorkspaceID: x.WorkspaceID, RoutineID: x.ID, TriggerID: idOf(in.TriggerID), Variables: variables, Idempotency: once,
	})
	if err != nil {
		return store.Made{}, err
	}
	if agentID != "" {
		r.route(ctx, agentID)
	}
	return made, nil
}
