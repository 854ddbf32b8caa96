package graph

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/ent/routinetrigger"
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
	variables, variablesErr := declarations(in.Variables)
	err := joinProblems(r.checkAgentIn(ctx, in.WorkspaceID, in.AssigneeID, "assigneeId"), triggersErr, variablesErr, checkKey(in.IdempotencyKey))
	if err != nil {
		return store.Made{}, err
	}
	fingerprint, err := digest(in)
	if err != nil {
		return store.Made{}, err
	}
	out := store.CreateRoutine{
		WorkspaceID: in.WorkspaceID, Name: in.Name, Description: valueOf(in.Description), AssigneeID: in.AssigneeID,
		ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap,
		CatchUpMax: defaultCatchUpMax, Variables: variables, Triggers: triggers,
		Idempotency: store.Idempotency{Key: valueOf(in.IdempotencyKey), InputDigest: fingerprint},
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
	variables, variablesErr := variableTexts(in.Variables)
	if err := joinProblems(r.checkTrigger(ctx, in), variablesErr, checkKey(in.IdempotencyKey)); err != nil {
		return store.Made{}, err
	}
	fingerprint, err := digest(in)
	if err != nil {
		return store.Made{}, err
	}
	made, agentID, err := r.Store.FireRoutine(ctx, store.FireRoutine{
		WorkspaceID: x.WorkspaceID, RoutineID: x.ID, TriggerID: idOf(in.TriggerID), Variables: variables,
		Idempotency: store.Idempotency{Key: valueOf(in.IdempotencyKey), InputDigest: fingerprint},
	})
	if err != nil {
		return store.Made{}, err
	}
	if agentID != "" {
		r.route(ctx, agentID)
	}
	return made, nil
}

func (r *Resolver) checkTrigger(ctx context.Context, in model.FireRoutineInput) error {
	if in.TriggerID == nil {
		return nil
	}
	ok, err := r.Reader.RoutineTrigger.Query().Where(routinetrigger.ID(*in.TriggerID), routinetrigger.RoutineID(in.RoutineID)).Exist(ctx)
	if err != nil {
		return fmt.Errorf("look for trigger: %w", err)
	}
	if !ok {
		return domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeNotFound, "there is no such trigger of this routine")
	}
	return nil
}
