package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/domain"
)

// installHeartbeat gives a new coordinator the routine that wakes it every five minutes, in a savepoint: that it fails
// never fails the agent; it is logged, and the agent shows that it has no scheduled wake-ups (SPEC S4.11). The routine is
// like any other: people may change, pause and delete it.
func (t *tx) installHeartbeat(ctx context.Context, in CreateAgent) error {
	err := t.savepoint(ctx, func() error {
		taken, err := queryOne[bool](ctx, t, `SELECT EXISTS (SELECT 1 FROM routines WHERE workspace_id = $1 AND name = $2 AND deleted_at IS NULL)`,
			in.WorkspaceID, domain.HeartbeatName(""))
		if err != nil {
			return fmt.Errorf("look for another heartbeat: %w", err)
		}
		name := domain.HeartbeatName("")
		if taken {
			name = domain.HeartbeatName(in.Name)
		}
		_, err = t.createRoutine(ctx, CreateRoutine{WorkspaceID: in.WorkspaceID, Name: name, Description: domain.HeartbeatText, AssigneeID: in.ID,
			ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap,
			CatchUpMax: domain.DefaultCatchUpMax, Variables: []domain.RoutineVariable{},
			Triggers: []TriggerSpec{{Kind: domain.TriggerKindSchedule, Cron: domain.HeartbeatCron, Enabled: true}}})
		return err
	})
	if err == nil || ctx.Err() != nil || isConnectionError(err) || isRetryable(err) {
		return err
	}
	t.onCommit(func(s *Store) {
		s.log.Warn("the coordinator's heartbeat could not be installed: it has no scheduled wake-ups until somebody makes a routine for it",
			"agent_id", in.ID, "workspace_id", in.WorkspaceID, "error", err)
	})
	return nil
}
