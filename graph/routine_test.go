package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// shownRoutine is a routine as these tests read it.
type shownRoutine struct {
	ID, Name, Description, Status, Kind, ScheduleState string
	Revision, CatchUpMax                               int
	NextFireAt, LastRunAt                              *time.Time
	Assignee                                           *struct{ Name string }
	Variables                                          []struct{ Name, Type string }
	Triggers                                           []shownTrigger
	Runs                                               struct {
		TotalCount int
		Edges      []struct {
			Node struct {
				ID, Status string
				Variables  map[string]string
				Trigger    *struct{ ID string }
			}
		}
	}
}

type shownTrigger struct {
	ID, Cron, TimeZone, Description, Condition string
	Revision                                   int
	Enabled                                    bool
	NextFireAt, LastFiredAt                    *time.Time
	NextFireTimes                              []time.Time
	Error                                      *string
}

const (
	triggerFields = `id revision enabled lastFiredAt ... on ScheduleTrigger { cron timeZone description condition nextFireAt nextFireTimes(n: 3) error }`
	routineFields = `id revision name description status kind scheduleState catchUpMax nextFireAt lastRunAt assignee { name } variables { name type }
		triggers { ` + triggerFields + ` } runs { totalCount edges { node { id status variables trigger { id } } } }`
)

// routine makes a routine; more fields of the input come as a JSON object.
func (w *world) routine(agentID string, more map[string]any) shownRoutine {
	w.t.Helper()
	input := map[string]any{"workspaceId": w.workspace, "name": fmt.Sprint("routine ", xid.New("x")), "assigneeId": agentID}
	for k, v := range more {
		input[k] = v
	}
	var out struct {
		CreateRoutine struct{ Routine *shownRoutine }
	}
	if e := w.mutate("createRoutine", "routine { "+routineFields+" }", input, &out); e != "" {
		w.t.Fatal(e)
	}
	return *out.CreateRoutine.Routine
}

// scheduled is a trigger to make.
func scheduled(cron, zone string) map[string]any {
	return map[string]any{"schedule": map[string]any{"cron": cron, "timeZone": zone}}
}

func (w *world) readRoutine(id string) shownRoutine {
	w.t.Helper()
	var out struct{ Routine *shownRoutine }
	w.Do(w.t.Context(), `query($id: ID!) { routine(id: $id) { `+routineFields+` } }`, map[string]any{"id": id}, &out)
	if out.Routine == nil {
		w.t.Fatalf("there is no routine %s", id)
	}
	return *out.Routine
}

// tick fires what is due and routes what was sent, as the cron tick does.
func (w *world) tick() {
	w.t.Helper()
	due, err := w.store.DueTriggers(w.t.Context(), store.DueTrigger{}, 1000)
	w.ok(err)
	for _, d := range due {
		agents, err := w.store.FireDue(w.t.Context(), d.ID)
		w.ok(err)
		for _, agent := range agents {
			_, err := w.store.Route(w.t.Context(), agent)
			w.ok(err)
		}
	}
}

// down moves the cursor of a trigger back, as if nothing had ticked for so long.
func (w *world) down(trigger string, d time.Duration) {
	w.t.Helper()
	w.sql(`UPDATE routine_triggers SET next_run_at = date_trunc('minute', clock_timestamp()) - make_interval(secs => $2) WHERE id = $1`, trigger, d.Seconds())
}

func TestARoutineIsChangedFieldByFieldAndItsRunsKeepTheirSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.agent("Ada"), w.agent("Bob")
	r := w.routine(ada, map[string]any{"name": "Daily", "description": "Look at {{branch}}."})
	var fired struct {
		FireRoutine struct{ RoutineRun struct{ ID string } }
	}
	if e := w.mutate("fireRoutine", "routineRun { id }", map[string]any{"routineId": r.ID, "variables": map[string]any{"branch": "main"}}, &fired); e != "" {
		t.Fatal(e)
	}
	var out struct {
		UpdateRoutine struct {
			Clamped []string
			Routine *shownRoutine
		}
	}
	update := func(input map[string]any) string {
		t.Helper()
		input["routineId"], out.UpdateRoutine.Routine = r.ID, nil
		return w.mutate("updateRoutine", "clamped routine { "+routineFields+" }", input, &out)
	}
	e := update(map[string]any{"expectedRevision": 1, "description": "Look at {{repo}}.", "catchUpMax": 5000, "assigneeId": bob})
	x := out.UpdateRoutine.Routine
	if e != "" || len(x.Variables) != 2 {
		t.Fatalf("changed: %q %+v", e, out)
	}
	compare(t, "the changed routine",
		is("name", x.Name, "Daily"),
		is("description", x.Description, "Look at {{repo}}."),
		is("catchUpMax", x.CatchUpMax, 1000),
		is("revision", x.Revision, 2),
		is("assignee", x.Assignee.Name, "Bob"),
		is("second variable", x.Variables[1].Name, "repo"),
		is("clamped", out.UpdateRoutine.Clamped, []string{"catchUpMax"}))
	if n := x.Runs.Edges; len(n) != 1 || n[0].Node.Variables["branch"] != "main" {
		t.Errorf("the fire from before shows %+v", n)
	}
	attempt := w.start() // Ada still has what she was sent
	var run struct {
		Run struct {
			Agent           struct{ Name string }
			AssembledPrompt string
		}
	}
	w.Do(t.Context(), `query($id: ID!) { run(id: $id) { agent { name } assembledPrompt } }`, map[string]any{"id": attempt.RunID}, &run)
	if run.Run.Agent.Name != "Ada" || !strings.Contains(run.Run.AssembledPrompt, "Look at main.") {
		t.Errorf("the run from before got %+v", run)
	}
	if e = update(map[string]any{"catchUpMax": nil, "variables": nil}); e != "" || out.UpdateRoutine.Routine.CatchUpMax != 25 || len(out.UpdateRoutine.Routine.Variables) != 1 {
		t.Errorf("null is the default, and what the text uses stays declared: %q %+v", e, out)
	}
	for want, input := range map[string]map[string]any{
		"CONFLICT input.expectedRevision":    {"expectedRevision": 1, "name": "Weekly"},
		"REQUIRED input.name":                {"name": nil},
		"REQUIRED input.assigneeId":          {"assigneeId": nil},
		"NOT_FOUND input.assigneeId":         {"assigneeId": xid.New("agt")},
		"INVALID input.variables.0.name":     {"variables": []any{map[string]any{"name": "no name"}}},
		"REQUIRED input.variables.0.options": {"variables": []any{map[string]any{"name": "v", "type": "SELECT"}}},
		"INVALID input.variables.0.default":  {"variables": []any{map[string]any{"name": "v", "type": "NUMBER", "default": "x"}}},
		"INVALID input.description":          {"description": "\x00"},
	} {
		if got := update(input); got != want || out.UpdateRoutine.Routine != nil {
			t.Errorf("%v: %q, want %q", input, got, want)
		}
	}
}

// SPEC S4.1, S4.3, S4.4: paused, without nextFireAt; resuming goes on from now.
func TestAPausedRoutineDoesNotFireAndGoesOnFromNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), map[string]any{"triggers": []any{scheduled("*/5 * * * *", "UTC")}})
	id := map[string]any{"routineId": r.ID}
	var paused struct {
		PauseRoutine struct{ Routine shownRoutine }
	}
	if e := w.mutate("pauseRoutine", "routine { "+routineFields+" }", id, &paused); e != "" || paused.PauseRoutine.Routine.Status != "PAUSED" {
		t.Fatalf("paused: %q %+v", e, paused)
	}
	if x := paused.PauseRoutine.Routine; x.NextFireAt != nil || x.Triggers[0].NextFireAt != nil || len(x.Triggers[0].NextFireTimes) != 0 || x.ScheduleState != "ARMED" {
		t.Errorf("a paused routine shows %+v", x)
	}
	if e := w.mutate("fireRoutine", "routineRun { id }", id, nil); e != "INVALID_STATE " {
		t.Errorf("C29 fired by hand: %q", e)
	}
	w.down(r.Triggers[0].ID, 3*time.Hour)
	w.tick()
	if x := w.readRoutine(r.ID); x.Runs.TotalCount != 0 || x.LastRunAt != nil || x.Triggers[0].LastFiredAt != nil {
		t.Errorf("C30 while paused: %+v", x)
	}
	w.down(r.Triggers[0].ID, 4*time.Hour) // C210: as if no tick had moved the cursor
	var resumed struct {
		ResumeRoutine struct{ Routine shownRoutine }
	}
	if e := w.mutate("resumeRoutine", "routine { "+routineFields+" }", id, &resumed); e != "" || resumed.ResumeRoutine.Routine.Status != "ACTIVE" {
		t.Fatalf("resumed: %q %+v", e, resumed)
	}
	if next := resumed.ResumeRoutine.Routine.NextFireAt; next == nil || !next.After(time.Now().Add(-time.Minute)) {
		t.Errorf("C31 C210 the next fire is %v", next)
	}
	w.tick()
	w.sql(`UPDATE routine_triggers SET next_run_at = date_bin('5 minutes', clock_timestamp(), '2020-01-01Z')`)
	w.tick()
	var missed int
	w.ok(w.db.QueryRow(`SELECT count(*) + sum(missed_ticks) FROM routine_runs`).Scan(&missed))
	if missed != 1 {
		t.Errorf("C31 %d fires and missed ticks after it was resumed, want 1 and 0", missed)
	}
}

// SPEC S4.1: ARCHIVED is terminal and switches the triggers off.
func TestAnArchivedRoutineIsRetiredForGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), map[string]any{"triggers": []any{scheduled("* * * * *", "UTC")}})
	id := map[string]any{"routineId": r.ID}
	var archived struct {
		ArchiveRoutine struct{ Routine shownRoutine }
	}
	if e := w.mutate("archiveRoutine", "routine { "+routineFields+" }", id, &archived); e != "" {
		t.Fatal(e)
	}
	if x := archived.ArchiveRoutine.Routine; x.Status != "ARCHIVED" || x.ScheduleState != "TRIGGER_DISABLED" || x.Triggers[0].Enabled || x.Triggers[0].Condition != "DISABLED" {
		t.Errorf("archived: %+v", x)
	}
	trigger := map[string]any{"triggerId": r.Triggers[0].ID, "enabled": true}
	for mutation, want := range map[string]string{"resumeRoutine": "INVALID_STATE input.routineId", "pauseRoutine": "INVALID_STATE input.routineId", "archiveRoutine": ""} {
		if e := w.mutate(mutation, "routine { id }", id, nil); e != want {
			t.Errorf("%s: %q, want %q", mutation, e, want)
		}
	}
	if e := w.mutate("updateTrigger", "trigger { id }", trigger, nil); e != "INVALID_STATE input.routineId" {
		t.Errorf("switched on: %q", e)
	}
}

func TestADeletedRoutineIsGoneAndItsHistoryIsNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), map[string]any{"triggers": []any{scheduled("* * * * *", "UTC")}})
	w.down(r.Triggers[0].ID, 0)
	w.tick()
	fire := w.readRoutine(r.ID).Runs.Edges[0].Node
	var deleted struct {
		DeleteRoutine struct{ DeletedRoutineID string }
	}
	if e := w.mutate("deleteRoutine", "deletedRoutineId", map[string]any{"routineId": r.ID}, &deleted); e != "" || deleted.DeleteRoutine.DeletedRoutineID != r.ID {
		t.Fatalf("deleted: %q %+v", e, deleted)
	}
	if e := w.mutate("deleteRoutine", "deletedRoutineId", map[string]any{"routineId": r.ID}, nil); e != "NOT_FOUND input.routineId" {
		t.Errorf("deleted again: %q", e)
	}
	var out struct {
		Node struct {
			Status, SkipReason string
			Trigger            *struct{ ID string }
			Routine            struct{ Name string }
			WakeupRequest      struct {
				Status, EndReason string
				Run               struct{ Status string }
			}
		}
		Workspace struct{ Routines struct{ TotalCount int } }
	}
	w.Do(t.Context(), `query($id: ID!, $w: ID!) { node(id: $id) { ... on RoutineRun { status skipReason trigger { id } routine { name }
		wakeupRequest { status endReason run { status } } } } workspace(id: $w) { routines { totalCount } } }`, map[string]any{"id": fire.ID, "w": w.workspace}, &out)
	n := out.Node
	compare(t, "what is left of a deleted routine",
		is("status of the fire", n.Status, "CANCELLED"),
		is("skipReason", n.SkipReason, "ROUTINE_DELETED"),
		holds("the trigger is gone", n.Trigger == nil),
		is("name of the routine", n.Routine.Name, r.Name),
		is("status of the request", n.WakeupRequest.Status, "CANCELLED"),
		is("status of the run", n.WakeupRequest.Run.Status, "CANCELLED"),
		is("endReason", n.WakeupRequest.EndReason, "ROUTINE_DELETED"),
		is("number of routines", out.Workspace.Routines.TotalCount, 0))
	w.routine(w.agent("Bob"), map[string]any{"name": r.Name}) // the name is free again
}

func TestTriggersAreAddedChangedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), nil)
	if r.ScheduleState != "UNSCHEDULED_NO_TRIGGER" {
		t.Errorf("C110 without a trigger: %s", r.ScheduleState)
	}
	var made struct {
		CreateTrigger struct {
			Trigger  *shownTrigger
			Replayed bool
		}
	}
	create := func(spec map[string]any, key string) string {
		t.Helper()
		made.CreateTrigger.Trigger = nil
		input := map[string]any{"routineId": r.ID, "spec": spec}
		if key != "" {
			input["idempotencyKey"] = key
		}
		return w.mutate("createTrigger", "replayed trigger { "+triggerFields+" }", input, &made)
	}
	if e := create(scheduled("0 9 * * *", "Europe/Lisbon"), "k"); e != "" || made.CreateTrigger.Trigger.Description != "at 09:00 every day" || made.CreateTrigger.Trigger.Condition != "ON_TIME" || len(made.CreateTrigger.Trigger.NextFireTimes) != 3 {
		t.Fatalf("added: %q %+v", e, made)
	}
	first := *made.CreateTrigger.Trigger
	if e := create(scheduled("0 9 * * *", "Europe/Lisbon"), "k"); e != "" || !made.CreateTrigger.Replayed || made.CreateTrigger.Trigger.ID != first.ID {
		t.Errorf("the same key: %q %+v", e, made)
	}
	for want, spec := range map[string]map[string]any{
		"INVALID input.spec.schedule.cron":               scheduled("0 0 0 * * *", "UTC"),
		"CRON_NEVER_FIRES input.spec.schedule.cron":      scheduled("0 0 30 2 *", "UTC"),
		"UNKNOWN_TIME_ZONE input.spec.schedule.timeZone": scheduled("0 0 * * *", "Mars/Olympus"),
	} {
		if e := create(spec, ""); e != want {
			t.Errorf("%v: %q, want %q", spec, e, want)
		}
	}
	var out struct {
		UpdateTrigger struct{ Trigger *shownTrigger }
	}
	update := func(input map[string]any) string {
		t.Helper()
		input["triggerId"], out.UpdateTrigger.Trigger = first.ID, nil
		return w.mutate("updateTrigger", "trigger { "+triggerFields+" }", input, &out)
	}
	if e := update(map[string]any{"enabled": false, "expectedRevision": 1}); e != "" || out.UpdateTrigger.Trigger.NextFireAt != nil || out.UpdateTrigger.Trigger.Condition != "DISABLED" {
		t.Errorf("switched off: %q %+v", e, out)
	}
	if x := w.readRoutine(r.ID); x.ScheduleState != "TRIGGER_DISABLED" || x.NextFireAt != nil {
		t.Errorf("C110 with a schedule that is off: %+v", x)
	}
	if e := update(map[string]any{"enabled": true, "timeZone": nil, "cron": "30 * * * *"}); e != "" || out.UpdateTrigger.Trigger.TimeZone != "UTC" || out.UpdateTrigger.Trigger.NextFireAt == nil {
		t.Errorf("switched on in the workspace's zone: %q %+v", e, out)
	}
	for want, input := range map[string]map[string]any{
		"CONFLICT input.expectedRevision":  {"expectedRevision": 1, "enabled": false},
		"INVALID input.cron":               {"cron": nil},
		"UNKNOWN_TIME_ZONE input.timeZone": {"timeZone": "Mars/Olympus"},
		"INVALID input.signingMode":        {"signingMode": "NONE"},
	} {
		if got := update(input); got != want {
			t.Errorf("%v: %q, want %q", input, got, want)
		}
	}
	required := map[string]any{"routineId": r.ID, "variables": []any{map[string]any{"name": "v", "required": true}}}
	if e := w.mutate("updateRoutine", "routine { id }", required, nil); e != "REQUIRED input.variables.0.default" {
		t.Errorf("a required variable beside a schedule: %q", e)
	}
	w.sql(`UPDATE routine_triggers SET next_run_at = date_bin('60 minutes', clock_timestamp() - interval '30 minutes', '2020-01-01Z') + interval '30 minutes'`)
	w.tick()
	if e := w.mutate("deleteTrigger", "deletedTriggerId", map[string]any{"triggerId": first.ID}, nil); e != "" {
		t.Fatal(e)
	}
	x := w.readRoutine(r.ID)
	if len(x.Triggers) != 0 || x.ScheduleState != "UNSCHEDULED_NO_TRIGGER" || x.Runs.TotalCount != 1 || x.Runs.Edges[0].Node.Trigger != nil {
		t.Errorf("after the trigger was deleted: %+v", x)
	}
	if e := w.mutate("updateRoutine", "routine { id }", required, nil); e != "" {
		t.Errorf("a required variable without a schedule: %q", e)
	}
	if e := create(scheduled("0 9 * * *", "UTC"), ""); e != "INVALID_STATE input.spec.schedule" {
		t.Errorf("a schedule beside a required variable: %q", e)
	}
}

// SPEC S4.3: an edit loses no slot and goes on from now.
func TestASlotThatIsDueFiresBeforeItsExpressionChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), map[string]any{"triggers": []any{scheduled("* * * * *", "UTC")}})
	w.down(r.Triggers[0].ID, 2*time.Minute)
	var out struct {
		UpdateTrigger struct{ Trigger shownTrigger }
	}
	if e := w.mutate("updateTrigger", "trigger { "+triggerFields+" }", map[string]any{"triggerId": r.Triggers[0].ID, "cron": "0 0 1 1 *"}, &out); e != "" {
		t.Fatal(e)
	}
	if next := out.UpdateTrigger.Trigger.NextFireAt; next == nil || next.Month() != time.January {
		t.Errorf("C204 the next fire is %v", next)
	}
	w.tick()
	if x := w.readRoutine(r.ID); x.Runs.TotalCount != 3 {
		t.Errorf("C204 %d fires, want the 3 slots that were due", x.Runs.TotalCount)
	}
}

// SPEC S4.10: the next slots, with those that a clock change removes or repeats.
func TestSchedulesArePreviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type preview struct {
		Times       []string
		Description string
		DstNotes    []string
		UserErrors  userErrors
	}
	var out struct{ Gap, Repeat, Never, Nowhere preview }
	w.Do(t.Context(), `{
		gap: nextFireTimes(cron: "30 2 * * *", timeZone: "America/New_York", n: 2, from: "2026-03-07T12:00:00Z") { ...p }
		repeat: nextFireTimes(cron: "30 1 * * *", timeZone: "America/New_York", n: 2, from: "2026-10-31T16:00:00Z") { ...p }
		never: nextFireTimes(cron: "0 0 30 2 *") { ...p }
		nowhere: nextFireTimes(cron: "* * * * *", timeZone: "Mars/Olympus") { ...p }
	} fragment p on SchedulePreview { times description dstNotes userErrors { code message field } }`, nil, &out)
	if !slices.Equal(out.Gap.Times, []string{"2026-03-09T06:30:00.000Z", "2026-03-10T06:30:00.000Z"}) || out.Gap.Description != "at 02:30 every day" ||
		len(out.Gap.DstNotes) != 1 || !strings.Contains(out.Gap.DstNotes[0], "does not exist") {
		t.Errorf("C8 across the gap: %+v", out.Gap)
	}
	if !slices.Equal(out.Repeat.Times, []string{"2026-11-01T05:30:00.000Z", "2026-11-02T06:30:00.000Z"}) || len(out.Repeat.DstNotes) != 1 || !strings.Contains(out.Repeat.DstNotes[0], "comes twice") {
		t.Errorf("C9 across the repetition: %+v", out.Repeat)
	}
	if out.Never.UserErrors.String() != "CRON_NEVER_FIRES cron" || out.Nowhere.UserErrors.String() != "UNKNOWN_TIME_ZONE timeZone" {
		t.Errorf("problems: %v, %v", out.Never.UserErrors, out.Nowhere.UserErrors)
	}
	if _, errs := w.Try(t.Context(), `{ nextFireTimes(cron: "* * * * *", n: 51) { times } }`, nil); codeOf(errs) != "BAD_INPUT" {
		t.Errorf("51 times: %v", errs)
	}
}

func TestUpcomingFiresOfAWorkspaceComeSoonestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.agent("Ada")
	hourly := w.routine(ada, map[string]any{"triggers": []any{scheduled("0 * * * *", "UTC")}})
	often := w.routine(ada, map[string]any{"triggers": []any{scheduled("*/10 * * * *", "UTC")}})
	paused := w.routine(ada, map[string]any{"triggers": []any{scheduled("* * * * *", "UTC")}})
	if e := w.mutate("pauseRoutine", "routine { id }", map[string]any{"routineId": paused.ID}, nil); e != "" {
		t.Fatal(e)
	}
	var out struct {
		Workspace struct {
			UpcomingFires []struct {
				At      time.Time
				Routine struct{ ID string }
				Trigger struct{ Cron string }
			}
		}
	}
	ask := func(until time.Time, first int) {
		t.Helper()
		out.Workspace.UpcomingFires = nil
		w.Do(t.Context(), `query($w: ID!, $u: DateTime!, $n: Int!) { workspace(id: $w) { upcomingFires(until: $u, first: $n) { at routine { id } trigger { cron } } } }`,
			map[string]any{"w": w.workspace, "u": until.UTC().Format(time.RFC3339), "n": first}, &out)
	}
	ask(time.Now().Add(24*time.Hour), 1000)
	all := out.Workspace.UpcomingFires
	count := map[string]int{}
	for i, f := range all {
		count[f.Routine.ID]++
		if i > 0 && f.At.Before(all[i-1].At) {
			t.Errorf("%s comes after %s", f.At, all[i-1].At)
		}
	}
	if n := count[hourly.ID]; n < 23 || n > 24 || count[often.ID] < 143 || count[often.ID] > 144 || count[paused.ID] != 0 {
		t.Errorf("fires of a day: %v", count)
	}
	ask(time.Now().Add(24*time.Hour), 5)
	if !slices.Equal(out.Workspace.UpcomingFires, all[:5]) {
		t.Errorf("the first five are %+v", out.Workspace.UpcomingFires)
	}
	if _, errs := w.Try(t.Context(), `query($w: ID!) { workspace(id: $w) { upcomingFires(until: "2199-01-01T00:00:00Z") { at } } }`, map[string]any{"w": w.workspace}); codeOf(errs) != "BAD_INPUT" {
		t.Errorf("a far window: %v", errs)
	}
}

type shownPreview struct {
	Title, Description string
	Values             []struct {
		Name, Origin string
		Value        *string
	}
	Undeclared []string
	UserErrors userErrors
}

// SPEC S4.8, S4.10: a template rendered dry.
func TestTemplatesAreRenderedDry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var out struct{ A, B, C shownPreview }
	w.Do(t.Context(), `{
		a: renderTemplate(input: {title: "{{name}} Scan - {{date}}", description: "{{date}} - {{unknown}}", values: {name: "Security"}, at: "2026-04-25T10:00:00Z"}) { ...p }
		b: renderTemplate(input: {title: "x", description: "{{date}} {{datetime}} {{env}} {{extra}}", at: "2026-04-25T14:30:00Z",
			variables: [{name: "date", default: "custom-date"}, {name: "env", default: "staging"}], values: {env: "production", extra: "val"}}) { ...p }
		c: renderTemplate(input: {title: "x", variables: [{name: "n", type: NUMBER, required: true}, {name: "on", type: BOOLEAN}], values: {on: "maybe"}, timeZone: "Mars/Olympus"}) { ...p }
	} fragment p on TemplatePreview { title description values { name value origin } undeclared userErrors { code message field } }`, nil, &out)
	if out.A.Title != "Security Scan - 2026-04-25" || out.A.Description != "2026-04-25 - {{unknown}}" || !slices.Equal(out.A.Undeclared, []string{"name", "unknown"}) {
		t.Errorf("C18 C19: %+v", out.A)
	}
	if out.B.Description != "custom-date 2026-04-25T14:30:00Z production val" || len(out.B.Values) != 4 {
		t.Errorf("C20: %+v", out.B)
	}
	if got := out.C.UserErrors.String(); got != "UNKNOWN_TIME_ZONE input.timeZone, UNRESOLVED_VARIABLE input.values.n, INVALID input.values.on" {
		t.Errorf("problems: %s", got)
	}
}

// SPEC S4.10: the dry run of a fire.
func TestAFireIsPreviewedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), map[string]any{"name": "Scan", "description": "Scan {{branch}} {{date}}", "variables": []any{
		map[string]any{"name": "branch", "required": true}, map[string]any{"name": "depth", "type": "NUMBER", "default": "3"}}})
	var out struct {
		PreviewFire struct {
			Rendered      shownPreview
			Disposition   string
			CoalescesInto *struct{ ID string }
			UserErrors    userErrors
		}
	}
	ask := func(input map[string]any) {
		t.Helper()
		input["routineId"], out.PreviewFire.CoalescesInto = r.ID, nil
		w.Do(t.Context(), `query($input: FireRoutineInput!) { previewFire(input: $input) { disposition coalescesInto { id } userErrors { code message field }
			rendered { title description values { name value origin } undeclared userErrors { code } } } }`, map[string]any{"input": input}, &out)
	}
	rows := func() (n int) {
		t.Helper()
		w.ok(w.db.QueryRow(`SELECT (SELECT count(*) FROM routine_runs) + (SELECT count(*) FROM wakeup_requests) + (SELECT count(*) FROM activities)`).Scan(&n))
		return n
	}
	before := rows()
	main := map[string]any{"variables": map[string]any{"branch": "main"}}
	ask(main)
	if p := out.PreviewFire; p.Disposition != "ENQUEUED" || p.Rendered.Title != "Scan" || !strings.HasPrefix(p.Rendered.Description, "Scan main 20") || len(p.UserErrors) > 0 {
		t.Errorf("previewed: %+v", p)
	}
	ask(map[string]any{"variables": map[string]any{"depth": "deep"}})
	if got := out.PreviewFire.UserErrors.String(); got != "UNRESOLVED_VARIABLE input.variables.branch, INVALID input.variables.depth" || out.PreviewFire.Disposition != "SKIPPED" {
		t.Errorf("problems: %s, %s", got, out.PreviewFire.Disposition)
	}
	if now := rows(); now != before {
		t.Errorf("%d rows were written", now-before)
	}
	var fired struct {
		FireRoutine struct {
			RoutineRun struct{ ID string }
			Resolved   []struct{ Name, Value, Origin string }
		}
	}
	if e := w.mutate("fireRoutine", "routineRun { id } resolved { name value origin }", map[string]any{"routineId": r.ID, "variables": main["variables"]}, &fired); e != "" {
		t.Fatal(e)
	}
	got := map[string]string{}
	for _, v := range fired.FireRoutine.Resolved {
		got[v.Name] = v.Origin + " " + v.Value
	}
	if got["branch"] != "PROVIDED main" || got["depth"] != "DEFAULT 3" || !strings.HasPrefix(got["date"], "BUILT_IN 20") {
		t.Errorf("a fire says that its variables resolved to %v", got)
	}
	ask(main)
	if p := out.PreviewFire; p.Disposition != "COALESCED" || p.CoalescesInto == nil || p.CoalescesInto.ID != fired.FireRoutine.RoutineRun.ID {
		t.Errorf("C51 beside an active fire: %+v", p)
	}
	if e := w.mutate("fireRoutine", "routineRun { id }", map[string]any{"routineId": r.ID}, nil); e != "UNRESOLVED_VARIABLE input.variables.branch" {
		t.Errorf("without a required value: %q", e)
	}
}
