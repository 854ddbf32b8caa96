package graph_test

import "testing"

// Fires that wait for one without work are evidence, and each names what holds it.
func TestFiresThatWaitAreShownThroughTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	var made struct {
		CreateRoutine struct{ Routine struct{ ID string } }
	}
	w.Do(t.Context(), `mutation($w: ID!, $a: ID!) { createRoutine(input: {workspaceId: $w, name: "review", assigneeId: $a, taskTemplate: {title: "Review"}}) {
  routine { id } userErrors { code message field } } }`, map[string]any{"w": w.workspace, "a": agent}, &made)
	fire := func() string {
		t.Helper()
		var out struct {
			FireRoutine struct{ RoutineRun struct{ ID string } }
		}
		w.Do(t.Context(), `mutation($r: ID!) { fireRoutine(input: {routineId: $r}) { routineRun { id } userErrors { code message field } } }`,
			map[string]any{"r": made.CreateRoutine.Routine.ID}, &out)
		return out.FireRoutine.RoutineRun.ID
	}
	first := fire()
	task := w.one(`SELECT id FROM tasks`)
	w.sql(`UPDATE tasks SET state = 'BLOCKED'`)
	w.sql(`UPDATE runs SET status = 'FINISHED', outcome = 'processed', session_id = 's', parked_reason = NULL, finished_at = now() - interval '1 hour', requested_at = now() - interval '1 hour'`)
	w.sql(`UPDATE wakeup_requests SET status = 'FINISHED', finished_at = now() - interval '1 hour'`)
	w.sql(`UPDATE routine_runs SET started_at = now() - interval '1 hour'`)
	second := fire()
	w.sql(`UPDATE routine_runs SET started_at = now() - interval '6 minutes' WHERE id = $1`, second)
	var out struct {
		Workspace struct {
			LoopLiveness struct {
				Verdict string
				Gates   struct {
					Cap, Total int
					Capped     bool
					Rows       []struct {
						Condition, Age string
						Fires          int
						RoutineRun     struct{ ID string }
						Task           struct{ ID string }
						Run            *struct{ ID string }
					}
				}
			}
		}
	}
	w.Do(t.Context(), `query($w: ID!) { workspace(id: $w) {
  loopLiveness { verdict gates { cap capped total rows { condition fires since age routineRun { id } task { id } run { id } } } }
} }`, map[string]any{"w": w.workspace}, &out)
	l := out.Workspace.LoopLiveness
	if l.Verdict != "DEGRADED" || l.Gates.Total != 1 || l.Gates.Cap != 50 || l.Gates.Capped || len(l.Gates.Rows) != 1 {
		t.Fatalf("liveness is %+v", l)
	}
	if g := l.Gates.Rows[0]; g.Condition != "NO_LIVE_RUN" || g.Fires != 1 || g.RoutineRun.ID != first || g.Task.ID != task || g.Run != nil {
		t.Errorf("the gate is %+v", g)
	}
	var held struct {
		Node struct {
			HeldBy struct {
				ID   string
				Task struct{ ID string }
			}
		}
	}
	w.Do(t.Context(), `query($id: ID!) { node(id: $id) { ... on RoutineRun { heldBy { id task { id } } } } }`, map[string]any{"id": second}, &held)
	if held.Node.HeldBy.ID != first || held.Node.HeldBy.Task.ID != task {
		t.Errorf("the second fire is held by %+v", held)
	}
	if got := w.one(`SELECT kind || ' ' || subject_id FROM inbox_items`); got != "FIRES_WAIT "+made.CreateRoutine.Routine.ID {
		t.Errorf("the inbox has %q", got)
	}
}
