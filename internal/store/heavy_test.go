package store

import (
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// A heavy fire is active as long as its task, whatever becomes of its run (SPEC S4.6, C211).
func TestAHeavyFireEndsWithItsTaskAndNotWithItsRun(t *testing.T) {
	w := newWorld(t)
	agent := w.agent("worker")
	w.routine(agent, func(r *CreateRoutine) {
		r.TaskTemplate = &domain.TaskTemplate{Title: "Review {{datetime}}", RequiresApproval: true}
	})
	routine := one[xid.ID](w, `SELECT id FROM routines`)
	fire := func() domain.RoutineRunStatus {
		t.Helper()
		made, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: routine})
		w.ok(err)
		w.route(agent)
		return one[domain.RoutineRunStatus](w, `SELECT status FROM routine_runs WHERE id = $1`, made.ID)
	}
	if got := fire(); got != domain.RoutineRunStatusTaskCreated {
		t.Fatalf("the first fire is %s", got)
	}
	claimed := w.claimOne()
	w.start(claimed)
	w.finish(claimed)
	if got := one[string](w, `SELECT state FROM tasks`); got != "IN_REVIEW" {
		t.Fatalf("the task is %s", got)
	}
	if got := fire(); got != domain.RoutineRunStatusCoalesced {
		t.Errorf("C211 beside a task that waits for its approval a fire is %s", got)
	}
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE status = 'TASK_CREATED' AND completed_at IS NULL`); n != 1 {
		t.Error("the first fire ended with its run")
	}
	heavy := one[xid.ID](w, `SELECT id FROM tasks`)
	w.moveTo(heavy, domain.TaskStateCancelled)
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE status = 'CANCELLED' AND completed_at IS NOT NULL AND task_id = $1`, heavy); n != 1 {
		t.Error("the first fire did not end with its task")
	}
	w.moveTo(heavy, domain.TaskStateInProgress)
	if got := fire(); got != domain.RoutineRunStatusCoalesced {
		t.Errorf("beside a task that is worked on again a fire is %s", got)
	}
	w.moveTo(heavy, domain.TaskStateCancelled)
	if got := fire(); got != domain.RoutineRunStatusTaskCreated {
		t.Errorf("C53 beside a task that was cancelled a fire is %s", got)
	}
}
