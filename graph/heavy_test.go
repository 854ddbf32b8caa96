package graph_test

import (
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/xid"
)

type heavyFire struct {
	ID, Status    string
	CoalescedInto *struct{ ID string }
	WakeupRequest *struct{ Source, Status string }
	Task          *struct{ ID, Title, Description, State string }
}

// heavyFires are the fires of a routine, oldest first.
func (w *world) heavyFires(routine string) []heavyFire {
	w.t.Helper()
	var out struct {
		Routine struct {
			Runs struct{ Edges []struct{ Node heavyFire } }
		}
	}
	w.Do(w.t.Context(), `query($id: ID!) { routine(id: $id) { runs(first: 50) { edges { node { id status coalescedInto { id } wakeupRequest { source status }
		task { id title description state } } } } } }`, map[string]any{"id": routine}, &out)
	var fires []heavyFire
	for _, e := range out.Routine.Runs.Edges {
		fires = append([]heavyFire{e.Node}, fires...)
	}
	return fires
}

// SPEC S4.7: one task in the hidden workflow, linked, and one TASK_ASSIGNED.
func TestAHeavyRoutineMakesATaskAndTellsItsAssignee(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.agent("Ada")
	long := strings.Repeat("long ", 100)
	r := w.routine(ada, map[string]any{"taskTemplate": map[string]any{"title": "Daily review {{date}}, {{datetime}} " + long, "description": long + "{{area}}"},
		"triggers": []any{scheduled("* * * * *", "UTC")}})
	if r.Kind != "HEAVY" || len(r.Variables) != 1 || r.Variables[0].Name != "area" {
		t.Fatalf("the routine is %+v", r)
	}
	w.down(r.Triggers[0].ID, 0)
	w.tick()
	fires := w.heavyFires(r.ID)
	if len(fires) != 1 || fires[0].Status != "TASK_CREATED" || fires[0].Task == nil || fires[0].WakeupRequest == nil || fires[0].WakeupRequest.Source != "TASK_ASSIGNED" {
		t.Fatalf("C54 the fires are %+v", fires)
	}
	task := *fires[0].Task
	if !strings.HasPrefix(task.Title, "Daily review "+time.Now().UTC().Format("2006-")) || len([]rune(task.Title)) != 200 || task.Description != long+"{{area}}" {
		t.Errorf("C54 the task is %+v", task)
	}
	fire := func() heavyFire {
		t.Helper()
		w.byHand(r)
		all := w.heavyFires(r.ID)
		return all[len(all)-1]
	}
	if f := fire(); f.Status != "COALESCED" || f.CoalescedInto == nil || f.CoalescedInto.ID != fires[0].ID || f.Task != nil || f.WakeupRequest != nil {
		t.Errorf("C212 the second fire is %+v", f)
	}
	for _, state := range []string{"BLOCKED", "IN_REVIEW"} {
		w.sql(`UPDATE tasks SET state = $2 WHERE id = $1`, task.ID, state)
		if f := fire(); f.Status != "COALESCED" {
			t.Errorf("C211 beside a task that is %s: %+v", state, f)
		}
	}
	w.sql(`UPDATE tasks SET archived_at = now() WHERE id = $1`, task.ID)
	second := fire()
	if second.Status != "TASK_CREATED" {
		t.Errorf("C53 beside an archived task: %+v", second)
	}
	w.sql(`UPDATE tasks SET deleted_at = now() WHERE id = $1`, second.Task.ID)
	if f := fire(); f.Status != "TASK_CREATED" {
		t.Errorf("C53 beside a task that is gone: %+v", f)
	}
}

func TestATemplateIsKeptChangedAndTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.agent("Ada")
	r := w.routine(ada, map[string]any{"taskTemplate": map[string]any{"title": "Review", "requiresApproval": true}})
	var out struct {
		UpdateRoutine struct {
			Routine *struct {
				Kind         string
				TaskTemplate *struct {
					Title, Description string
					RequiresApproval   bool
					Project            *struct{ ID string }
				}
			}
		}
	}
	update := func(input map[string]any) string {
		t.Helper()
		input["routineId"], out.UpdateRoutine.Routine = r.ID, nil
		return w.mutate("updateRoutine", "routine { kind taskTemplate { title description requiresApproval project { id } } }", input, &out)
	}
	if e := update(map[string]any{"name": "Another"}); e != "" || out.UpdateRoutine.Routine.TaskTemplate == nil || !out.UpdateRoutine.Routine.TaskTemplate.RequiresApproval {
		t.Errorf("absent, it stays: %q %+v", e, out.UpdateRoutine.Routine)
	}
	if e := update(map[string]any{"taskTemplate": map[string]any{"title": " "}}); e != "REQUIRED input.taskTemplate.title" {
		t.Errorf("without a title: %q", e)
	}
	if e := update(map[string]any{"taskTemplate": map[string]any{"title": "x", "projectId": xid.New("prj")}}); e != "NOT_FOUND input.taskTemplate.projectId" {
		t.Errorf("a project that is not there: %q", e)
	}
	if e := update(map[string]any{"taskTemplate": nil}); e != "" || out.UpdateRoutine.Routine.Kind != "LIGHTWEIGHT" || out.UpdateRoutine.Routine.TaskTemplate != nil {
		t.Errorf("null makes it lightweight: %q %+v", e, out.UpdateRoutine.Routine)
	}
}
