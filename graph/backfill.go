package graph

import (
	"context"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// backfillRoutine fires the slots of a window anew, and routes what they sent before it answers.
func (r *Resolver) backfillRoutine(ctx context.Context, in model.BackfillRoutineInput) (*model.BackfillRoutinePayload, error) {
	out := &model.BackfillRoutinePayload{Slots: []*model.BackfilledSlot{}}
	x, err := r.presentRoutine(ctx, in.RoutineID)
	if err != nil {
		return out, err
	}
	slots, sent, err := r.Store.BackfillRoutine(ctx, store.BackfillRoutine{WorkspaceID: x.WorkspaceID, RoutineID: x.ID, TriggerID: in.TriggerID,
		From: in.From, Until: in.Until, DryRun: in.DryRun})
	if err != nil {
		return out, err
	}
	if _, err := r.routed(ctx, sent); err != nil {
		return out, err
	}
	for _, s := range slots {
		out.Slots = append(out.Slots, &model.BackfilledSlot{At: s.Slot, Outcome: s.Outcome, RoutineRunID: s.FireID})
		if s.Outcome == domain.BackfillOutcomeFired {
			out.FiredCount++
		}
	}
	return out, nil
}
