package graph

import (
	"context"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// healthOf is how the fires of a routine fare. What they cost is read when it is asked for.
func healthOf(ctx context.Context, x *ent.Routine) (*model.RoutineHealth, error) {
	h, err := load(ctx).healths.Load(ctx, x.ID)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, fmt.Errorf("routine %s has no health", x.ID)
	}
	out := &model.RoutineHealth{RoutineID: x.ID, LastSuccessAt: h.LastSuccessAt, ConsecutiveFailures: h.Failures, ConsecutiveSkips: h.Skips,
		SkipReason: h.SkipReason, P50Duration: h.P50}
	if h.Held.ID != "" {
		out.HeldBy = &model.RoutineHold{FireID: h.Held.ID, RunID: h.Held.RunID, Since: h.Held.Since, Count: h.Held.Fires}
	}
	return out, nil
}

// routineCosts is what routines cost in the period of their health.
func (r *Resolver) routineCosts(ctx context.Context, ids []xid.ID) (map[xid.ID]reads.RoutineCost, error) {
	now, err := load(ctx).now()
	if err != nil {
		return nil, err
	}
	return r.Store.RoutineCosts(ctx, ids, now.Add(-reads.HealthPeriod))
}
