package graph

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
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

// createRoutine makes a routine with its triggers; the secrets of webhooks are shown by this answer only.
func (r *Resolver) createRoutine(ctx context.Context, in model.CreateRoutineInput) (store.Made, []*model.TriggerSecret, error) {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return store.Made{}, nil, err
	}
	triggers, secrets, triggersErr := r.triggerSpecs(in.Triggers)
	once, onceErr := idempotency(in, in.IdempotencyKey)
	if err := joinProblems(triggersErr, onceErr); err != nil {
		return store.Made{}, nil, err
	}
	out := store.CreateRoutine{
		WorkspaceID: in.WorkspaceID, Name: in.Name, Description: valueOf(in.Description), AssigneeID: in.AssigneeID,
		ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap,
		CatchUpMax: defaultCatchUpMax, Variables: declarations(in.Variables), Triggers: triggers, Idempotency: once,
	}
	out.TaskTemplate = template(in.TaskTemplate)
	if in.ConcurrencyPolicy != nil {
		out.ConcurrencyPolicy = *in.ConcurrencyPolicy
	}
	if in.CatchUpPolicy != nil {
		out.CatchUpPolicy = *in.CatchUpPolicy
	}
	if in.CatchUpMax != nil {
		out.CatchUpMax = *in.CatchUpMax
	}
	made, err := r.Store.CreateRoutine(ctx, out)
	if err != nil || made.Replayed {
		secrets = nil
	}
	return made, secrets, err
}

// readFire reads the input of a fire by hand, and of its preview, which refuses what the fire would.
func (r *Resolver) readFire(ctx context.Context, in model.FireRoutineInput) (*ent.Routine, store.FireRoutine, error) {
	x, err := r.presentRoutine(ctx, in.RoutineID)
	if err != nil {
		return nil, store.FireRoutine{}, err
	}
	variables, err := domain.ProvidedValues(in.Variables)
	if err := joinProblems(err, checkObject([]string{"variables"}, in.Variables, givenBytesMax)); err != nil {
		return nil, store.FireRoutine{}, err
	}
	once, err := idempotency(in, in.IdempotencyKey)
	return x, store.FireRoutine{WorkspaceID: x.WorkspaceID, RoutineID: x.ID, TriggerID: idOf(in.TriggerID), Variables: variables, Idempotency: once}, err
}

// fireRoutine fires by hand and routes what the fire made before it answers.
func (r *Resolver) fireRoutine(ctx context.Context, in model.FireRoutineInput) (*model.FireRoutinePayload, error) {
	out := &model.FireRoutinePayload{Resolved: []*model.ResolvedVariable{}}
	x, fire, err := r.readFire(ctx, in)
	if err != nil {
		return out, err
	}
	made, agentID, err := r.Store.FireRoutine(ctx, fire)
	if err != nil {
		return out, err
	}
	if agentID != "" {
		r.route(ctx, agentID)
	}
	out.Replayed = made.Replayed
	if out.RoutineRun, err = there(r.singles.fires.find(ctx, made.ID)); err != nil {
		return nil, fmt.Errorf("read new routine run: %w", err)
	}
	out.Resolved = resolvedOf(x, out.RoutineRun, fire.Variables)
	return out, nil
}

// template reads the template of a heavy routine; nil makes it lightweight.
func template(in *model.TaskTemplateInput) *domain.TaskTemplate {
	if in == nil {
		return nil
	}
	return &domain.TaskTemplate{Title: in.Title, Description: valueOf(in.Description), ProjectID: idOf(in.ProjectID), RequiresApproval: valueOf(in.RequiresApproval)}
}
