package graph

import (
	"context"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// presentRoutine finds a routine that the caller sees and that is not deleted.
func (r *Resolver) presentRoutine(ctx context.Context, id xid.ID) (*ent.Routine, error) {
	x, err := r.singles.routines.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if x == nil {
		return nil, notFound("routineId", "routine")
	}
	return x, nil
}

func (r *Resolver) updateRoutine(ctx context.Context, in model.UpdateRoutineInput) (*ent.Routine, []string, error) {
	x, err := r.presentRoutine(ctx, in.RoutineID)
	if err != nil {
		return nil, nil, err
	}
	if err := checkTexts(in); err != nil {
		return nil, nil, err
	}
	variables := domain.Change[[]domain.RoutineVariable]{Set: in.Variables.IsSet()}
	if list := in.Variables.Value(); list != nil {
		variables.Value = new(declarations(list))
	}
	clamped, err := r.Store.UpdateRoutine(ctx, store.UpdateRoutine{
		WorkspaceID: x.WorkspaceID, RoutineID: x.ID, ExpectedRevision: in.ExpectedRevision,
		Patch: domain.RoutinePatch{
			Name: changeOf(in.Name), Description: changeOf(in.Description), AssigneeID: changeOf(in.AssigneeID), Policy: changeOf(in.ConcurrencyPolicy),
			CatchUp: changeOf(in.CatchUpPolicy), CatchUpMax: changeOf(in.CatchUpMax), Variables: variables,
			Template: domain.Change[domain.TaskTemplate]{Set: in.TaskTemplate.IsSet(), Value: template(in.TaskTemplate.Value())},
		},
	})
	if err != nil {
		return nil, nil, err
	}
	x, err = r.Reader.Routine.Get(ctx, x.ID)
	return x, clamped, err
}

// changeRoutine changes the status of a routine and reads it again.
func (r *Resolver) changeRoutine(ctx context.Context, id xid.ID, change func(ctx context.Context, workspaceID, routineID xid.ID) error) (*ent.Routine, error) {
	x, err := r.presentRoutine(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := change(ctx, x.WorkspaceID, x.ID); err != nil {
		return nil, err
	}
	return r.Reader.Routine.Get(ctx, x.ID)
}

func (r *Resolver) deleteRoutine(ctx context.Context, in model.DeleteRoutineInput) error {
	x, err := r.presentRoutine(ctx, in.RoutineID)
	if err != nil {
		return err
	}
	return r.Store.DeleteRoutine(ctx, x.WorkspaceID, x.ID)
}
