package graph_test

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/xid"
)

// advised is the codes of warnings, with the members that they name.
type advised []struct {
	Code, Message string
	Field         []string
}

func (a advised) String() string {
	var said []string
	for _, x := range a {
		said = append(said, strings.Join(append([]string{x.Code}, x.Field...), "."))
	}
	return strings.Join(said, " ")
}

const warningFields = ` warnings { code message field }`

// A routine that would do nothing says so when it is saved, when its trigger is, in a preview as its schedule, and on itself; and
// not any more once that is mended.
func TestARoutineThatWouldSkipEachFireSaysSoWhereverItIsSavedOrShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	w.sql(`UPDATE workspaces SET default_executor = NULL`)
	w.sql(`UPDATE agents SET executor = NULL`)
	echo := map[string]any{"echo": map[string]any{}}
	var out struct {
		CreateRoutine struct {
			Routine  struct{ ID string }
			Warnings advised
		}
		CreateTrigger, UpdateTrigger struct {
			Trigger  *struct{ ID string }
			Warnings advised
		}
		UpdateRoutine, UpdateAgent struct{ Warnings advised }
		PreviewFire                struct {
			Disposition string
			Warnings    advised
			UserErrors  userErrors
		}
		Routine struct{ Warnings advised }
	}
	do := func(mutation, of string, input map[string]any) {
		t.Helper()
		if e := w.mutate(mutation, of+warningFields, input, &out); e != "" {
			t.Fatal(e)
		}
	}
	want := func(where string, got advised, want string) {
		t.Helper()
		if got.String() != want {
			t.Errorf("%s: %q, want %q", where, got, want)
		}
	}
	do("updateAgent", "", map[string]any{"agentId": agent, "skipIdleWakeups": true})
	want("an agent without executor", out.UpdateAgent.Warnings, "NO_EXECUTOR")
	do("createRoutine", "routine { id }", map[string]any{"workspaceId": w.workspace, "name": "Daily", "assigneeId": agent})
	routine := out.CreateRoutine.Routine.ID
	want("a routine by hand alone", out.CreateRoutine.Warnings, "NO_EXECUTOR")
	do("createTrigger", "trigger { id }", map[string]any{"routineId": routine, "spec": scheduled("0 9 * * *", "UTC")})
	trigger := out.CreateTrigger.Trigger.ID
	want("its schedule", out.CreateTrigger.Warnings, "IDLE_SKIP NO_EXECUTOR")
	do("updateAgent", "", map[string]any{"agentId": agent, "executor": echo, "skipIdleWakeups": true})
	want("its agent", out.UpdateAgent.Warnings, "IDLE_SKIP.input.skipIdleWakeups")
	do("updateRoutine", "", map[string]any{"routineId": routine, "name": "Each day"})
	want("its change", out.UpdateRoutine.Warnings, "IDLE_SKIP")

	preview := func(as string, variables map[string]any) {
		t.Helper()
		out.PreviewFire.Warnings, out.PreviewFire.UserErrors = nil, nil
		w.Do(t.Context(), `query($i: FireRoutineInput!) { previewFire(input: $i, as: `+as+`) { disposition userErrors { code message field }`+warningFields+` } }`,
			map[string]any{"i": map[string]any{"routineId": routine, "variables": variables}}, &out)
	}
	shown := func() advised {
		out.Routine.Warnings = nil
		w.Do(t.Context(), `query($id: ID!) { routine(id: $id) {`+warningFields+` } }`, map[string]any{"id": routine}, &out)
		return out.Routine.Warnings
	}
	preview("SCHEDULED", nil)
	want("a preview as its schedule", out.PreviewFire.Warnings, "IDLE_SKIP")
	if out.PreviewFire.Disposition != "SKIPPED" || len(out.PreviewFire.UserErrors) > 0 {
		t.Errorf("as its schedule it would be %s, %v", out.PreviewFire.Disposition, out.PreviewFire.UserErrors)
	}
	if preview("MANUAL", nil); out.PreviewFire.Disposition != "ENQUEUED" {
		t.Errorf("by hand it would be %s", out.PreviewFire.Disposition)
	}
	preview("SCHEDULED", map[string]any{"x": "1"})
	if got := out.PreviewFire.UserErrors.String(); got != "INVALID input.variables" {
		t.Errorf("values of a schedule: %s", got)
	}
	want("the routine", shown(), "IDLE_SKIP")
	if e := w.mutate("pauseAgent", "agent { id }", map[string]any{"agentId": agent}, nil); e != "" {
		t.Fatal(e)
	}
	do("updateRoutine", "", map[string]any{"routineId": routine, "assigneeId": agent})
	want("a paused agent's", out.UpdateRoutine.Warnings, "IDLE_SKIP ASSIGNEE_PAUSED.input.assigneeId")
	if e := w.mutate("resumeAgent", "agent { id }", map[string]any{"agentId": agent}, nil); e != "" {
		t.Fatal(e)
	}
	do("updateAgent", "", map[string]any{"agentId": agent, "skipIdleWakeups": false})
	want("an agent that takes idle wakes", out.UpdateAgent.Warnings, "")
	if preview("SCHEDULED", nil); out.PreviewFire.Disposition != "ENQUEUED" || len(out.PreviewFire.Warnings) > 0 {
		t.Errorf("mended: %s, %v", out.PreviewFire.Disposition, out.PreviewFire.Warnings)
	}
	do("updateAgent", "", map[string]any{"agentId": agent, "executor": map[string]any{"command": map[string]any{"argv": []string{"x"}}}})
	want("an agent that costs money", out.UpdateAgent.Warnings, "NO_BUDGET")
	want("a schedule that costs money", shown(), "NO_BUDGET")
	do("updateTrigger", "", map[string]any{"triggerId": trigger, "enabled": false})
	want("switched off", out.UpdateTrigger.Warnings, "")
	do("createTrigger", "", map[string]any{"routineId": routine, "spec": map[string]any{"webhook": map[string]any{"signingMode": "NONE", "secret": "0123456789abcdef", "enabled": false}}})
	want("a secret that nobody is asked for", out.CreateTrigger.Warnings, "SECRET_UNUSED")
}

// health is what Routine.health shows.
type health struct {
	LastSuccessAt                         *string
	ConsecutiveFailures, ConsecutiveSkips int
	SkipReason                            *string
	HeldBy                                *struct {
		Fire  struct{ ID string }
		Run   *struct{ ID string }
		Count int
	}
	P50Duration, CostUsdLast30Days string
	CostIsPartial                  bool
}

// The health of a page of routines is shown with them, each its own, in as many statements as of one.
func TestAPageOfRoutinesShowsTheHealthOfEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	sound, held := w.routine(agent, nil), w.routine(agent, nil)
	end := func(routine, status, reason, ago string) {
		w.sql(`INSERT INTO routine_runs (id, workspace_id, causation_id, routine_id, source, status, skip_reason, variables, missed_ticks, missed_truncated, dispatch_fingerprint, started_at, completed_at)
			VALUES ($1, $2, 'cau', $3, 'CRON', $4, NULLIF($5, '')::end_reason, '{}', 0, false, '', clock_timestamp() - $6::interval, clock_timestamp() - $6::interval)`,
			xid.New("rrn"), w.workspace, routine, status, reason, ago)
	}
	end(sound.ID, "DONE", "", "5 hours")
	end(sound.ID, "FAILED", "", "4 hours")
	end(sound.ID, "FAILED", "", "3 hours")
	end(sound.ID, "SKIPPED", "IDLE_SKIPPED", "2 hours")
	for range 2 {
		if e := w.mutate("fireRoutine", "routineRun { id }", map[string]any{"routineId": held.ID}, nil); e != "" {
			t.Fatal(e)
		}
	}
	var out struct {
		Workspace struct {
			Routines struct {
				Edges []struct {
					Node struct {
						ID     string
						Health health
					}
				}
			}
		}
	}
	w.Do(t.Context(), `query($w: ID!) { workspace(id: $w) { routines { edges { node { id health { lastSuccessAt consecutiveFailures consecutiveSkips skipReason
		heldBy { fire { id } run { id } since count } p50Duration costUsdLast30Days costIsPartial } } } } } }`, map[string]any{"w": w.workspace}, &out)
	shown := map[string]health{}
	for _, e := range out.Workspace.Routines.Edges {
		shown[e.Node.ID] = e.Node.Health
	}
	if h := shown[sound.ID]; h.LastSuccessAt == nil || h.ConsecutiveFailures != 2 || h.ConsecutiveSkips != 1 || h.SkipReason == nil || *h.SkipReason != "IDLE_SKIPPED" || h.HeldBy != nil {
		t.Errorf("the first is %+v", h)
	}
	if h := shown[held.ID]; h.LastSuccessAt != nil || h.HeldBy == nil || h.HeldBy.Count != 1 || h.HeldBy.Run == nil || h.CostUsdLast30Days == "" {
		t.Errorf("the second is %+v", h)
	}
}
