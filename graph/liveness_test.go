package graph_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

const livenessFields = `{ verdict evaluatedAt activatedAt lastTickAt eligibleTriggerCount
  thresholds { overdueGrace strandedGrace queuedGrace claimedGrace window }
  triggers { cap capped total rows { condition nextFireAt claimInstant lateBy trigger { id routine { name } } } }
  stuckRuns { cap capped total rows { condition since age run { id agent { name } } } }
  silentSuccesses { cap capped total rows { condition run { id terminalShape } } }
  terminalShapes { shape count } }`

type evidence struct {
	Cap, Total int
	Capped     bool
	Rows       []struct {
		Condition, LateBy, Age string
		Trigger                struct {
			ID      string
			Routine struct{ Name string }
		}
		Run struct {
			ID, TerminalShape string
			Agent             struct{ Name string }
		}
	}
}

type loopLiveness struct {
	Verdict, EvaluatedAt                 string
	EligibleTriggerCount                 int
	Thresholds                           map[string]string
	Triggers, StuckRuns, SilentSuccesses evidence
	TerminalShapes                       []struct {
		Shape string
		Count int
	}
}

func (w *world) liveness() loopLiveness {
	w.t.Helper()
	var out struct {
		Workspace struct{ LoopLiveness loopLiveness }
	}
	w.Do(w.t.Context(), `query($w: ID!) { workspace(id: $w) { loopLiveness `+livenessFields+` } }`, map[string]any{"w": w.workspace}, &out)
	return out.Workspace.LoopLiveness
}

// one reads a single text.
func (w *world) one(query string) (text string) {
	w.t.Helper()
	if err := w.db.QueryRowContext(w.t.Context(), query).Scan(&text); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return text
}

// schedule makes a routine with a schedule and returns its trigger.
func (w *world) schedule(agent string) string {
	w.t.Helper()
	var out struct {
		CreateRoutine struct {
			Routine struct{ Triggers []struct{ ID string } }
		}
	}
	w.Do(w.t.Context(), `mutation($w: ID!, $a: ID!) { createRoutine(input: {workspaceId: $w, name: "beat", assigneeId: $a, triggers: [{schedule: {cron: "0 0 1 1 *"}}]}) {
  routine { triggers { id } } userErrors { code message field } } }`, map[string]any{"w": w.workspace, "a": agent}, &out)
	return out.CreateRoutine.Routine.Triggers[0].ID
}

func TestLoopLivenessThroughTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.13 an empty workspace", func(t *testing.T) {
		got := w.liveness()
		if got.Verdict != "NOT_ARMED" || got.Triggers.Rows == nil || got.StuckRuns.Rows == nil || got.SilentSuccesses.Rows == nil || len(got.TerminalShapes) != 7 {
			t.Errorf("liveness is %+v", got)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.8 thresholds and window come with the verdict", func(t *testing.T) {
		for name, want := range map[string]string{"overdueGrace": "PT3M", "strandedGrace": "PT5M", "queuedGrace": "PT2M", "claimedGrace": "PT10M", "window": "PT24H"} {
			if got := w.liveness().Thresholds[name]; got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	})
	agent := w.agent("worker")
	trigger := w.schedule(agent)
	w.sql(`UPDATE routine_triggers SET next_run_at = now() - interval '1 hour'`)
	run := w.wake(agent)
	w.sql(`UPDATE runs SET requested_at = now() - interval '10 minutes', due_at = NULL`)
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, finished_at)
VALUES ('run_01k00000000000000000000000', $1, $2, 'cau', 'taskless', 'USER', 'EVENT', 'FINISHED', 'processed', now())`, w.workspace, agent)
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.7 every condition is evidenced by the rows that caused it", func(t *testing.T) {
		got := w.liveness()
		if got.Verdict != "DEAD" || got.EligibleTriggerCount != 1 {
			t.Errorf("the verdict is %s of %d triggers", got.Verdict, got.EligibleTriggerCount)
		}
		if rows := got.Triggers.Rows; len(rows) != 1 || rows[0].Trigger.ID != trigger || rows[0].Condition != "OVERDUE" || rows[0].Trigger.Routine.Name != "beat" || !strings.HasPrefix(rows[0].LateBy, "PT1H") {
			t.Errorf("dead triggers: %+v", got.Triggers)
		}
		if len(got.StuckRuns.Rows) != 1 {
			t.Fatalf("stuck runs: %+v", got.StuckRuns)
		}
		stuck := got.StuckRuns.Rows[0]
		compare(t, "the stuck run",
			is("id", stuck.Run.ID, run),
			is("condition", stuck.Condition, "QUEUED_STUCK"),
			is("agent's name", stuck.Run.Agent.Name, "worker"),
			is("cap", got.StuckRuns.Cap, 50),
			is("capped", got.StuckRuns.Capped, false))
		if rows := got.SilentSuccesses.Rows; len(rows) != 1 || rows[0].Run.TerminalShape != "SILENT_SUCCESS" {
			t.Errorf("silent successes: %+v", got.SilentSuccesses)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.1 the verdict of another workspace is its own", func(t *testing.T) {
		other := w.makeWorkspace("Other")
		stranger := w.As(auth.Principal{Kind: auth.KindToken, WorkspaceID: xid.ID(other), Scopes: []domain.TokenScope{domain.TokenScopeRead}})
		data, errs := stranger.Try(t.Context(), `query($mine: ID!, $theirs: ID!) { mine: workspace(id: $mine) { loopLiveness { verdict } } theirs: workspace(id: $theirs) { loopLiveness { verdict } } }`,
			map[string]any{"mine": other, "theirs": w.workspace})
		if len(errs) > 0 || string(data) != `{"mine":{"loopLiveness":{"verdict":"NOT_ARMED"}},"theirs":null}` {
			t.Errorf("%s, %v", data, errs)
		}
	})
}

func TestLoopLivenessTakesNoArguments(t *testing.T) {
	t.Parallel()
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.14 no caller can change a threshold, the window or the cap", func(t *testing.T) {
		types := graph.NewExecutableSchema(graph.Config{}).Schema().Types
		if args := types["Workspace"].Fields.ForName("loopLiveness").Arguments; len(args) != 0 {
			t.Errorf("loopLiveness takes %v", args)
		}
		for _, name := range []string{"LoopLiveness", "LoopTriggerEvidenceList", "LoopRunEvidenceList"} {
			for _, f := range types[name].Fields {
				if len(f.Arguments) != 0 {
					t.Errorf("%s.%s takes %v", name, f.Name, f.Arguments)
				}
			}
		}
		if args := types["Subscription"].Fields.ForName("loopLivenessChanged").Arguments; len(args) != 1 {
			t.Errorf("loopLivenessChanged takes %v", args)
		}
	})
}

func TestLoopLivenessThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql(`ALTER TABLE attempt_leases RENAME TO hidden`)
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.10 C102 the input is named, and the rest of the workspace answers", func(t *testing.T) {
		data, errs := w.Try(t.Context(), `query($w: ID!) { workspace(id: $w) { name loopLiveness { verdict } counters { livenessReadFailures } } }`, map[string]any{"w": w.workspace})
		if codeOf(errs) != graph.CodeLivenessUnreadable || len(errs) != 1 {
			t.Fatalf("errors: %v", errs)
		}
		if known, ok := errors.AsType[*graph.Error](errs[0]); !ok || known.Extensions["input"] != "STUCK_RUNS" {
			t.Errorf("the error is %+v", errs[0].Err)
		}
		var out struct {
			Workspace struct {
				Name         string
				LoopLiveness *struct{ Verdict string }
			}
		}
		if err := json.Unmarshal(data, &out); err != nil || out.Workspace.Name != "Test" || out.Workspace.LoopLiveness != nil {
			t.Errorf("data: %s, %v", data, err)
		}
		var after struct {
			Workspace struct {
				Counters struct{ LivenessReadFailures int }
			}
		}
		w.Do(t.Context(), `query($w: ID!) { workspace(id: $w) { counters { livenessReadFailures } } }`, map[string]any{"w": w.workspace}, &after)
		if after.Workspace.Counters.LivenessReadFailures != 1 {
			t.Errorf("counted %d failures", after.Workspace.Counters.LivenessReadFailures)
		}
	})
}

func TestAVerdictThatCannotBeReadEndsItsStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql(`ALTER TABLE attempt_leases RENAME TO hidden`)
	why := make(chan error, 1)
	w.streamEnd = func(err error) { why <- err }
	next := w.Subscribe(t.Context(), `subscription($w: ID!) { loopLivenessChanged(workspaceId: $w) { verdict } }`, map[string]any{"w": w.workspace})
	if data, errs := next(); data != nil || errs != nil {
		t.Errorf("the stream gave %s, %v", data, errs)
	}
	err := <-why
	if known, ok := errors.AsType[*graph.Error](err); !ok || known.Code != graph.CodeLivenessUnreadable || known.Extensions["input"] != "STUCK_RUNS" {
		t.Errorf("AC-OFFICE-LOOP-LIVENESS-004.10 the stream ended with %v", err)
	}
}

func TestLoopLivenessIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	next := w.Subscribe(t.Context(), `subscription($w: ID!) { loopLivenessChanged(workspaceId: $w) { verdict triggers { rows { trigger { id } condition } } } }`, map[string]any{"w": w.workspace})
	verdict := func() string {
		t.Helper()
		data, errs := next()
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		var out struct{ LoopLivenessChanged loopLiveness }
		if err := json.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
		for _, row := range out.LoopLivenessChanged.Triggers.Rows {
			if row.Trigger.ID == "" {
				t.Errorf("a trigger without its id: %s", data)
			}
		}
		return out.LoopLivenessChanged.Verdict
	}
	if got := verdict(); got != "NOT_ARMED" {
		t.Errorf("at once: %s", got)
	}
	w.schedule(w.agent("worker"))
	w.sql(`UPDATE routine_triggers SET next_run_at = now() - interval '1 hour'`)
	if got := verdict(); got != "DEAD" && got != "HEALTHY" { // HEALTHY when it looked in between
		t.Errorf("after the change: %s", got)
	}
	if _, errs := w.Subscribe(t.Context(), `subscription { loopLivenessChanged(workspaceId: "wsp_01k00000000000000000000000") { verdict } }`, nil)(); codeOf(errs) != graph.CodeNotFound {
		t.Errorf("a workspace that is not there gives %v", errs)
	}
}

func TestCountersThroughTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wake(w.agent("worker"))
	type counters struct {
		WakeupsCreated []struct {
			Source string
			Count  int
		}
		RoutineRuns  []struct{ Source, Status string }
		TerminalRuns []struct{ Shape string }
		RunsClaimed  int
		Since        time.Time
	}
	read := func(workspace string) counters {
		t.Helper()
		var out struct{ Workspace struct{ Counters counters } }
		w.Do(t.Context(), `query($w: ID!) { workspace(id: $w) { counters { wakeupsCreated { source count } routineRuns { source status count } triggersClaimed runsClaimed agentLaunches
  launchesWithoutSession terminalRuns { shape count } lastRunAtWriteFailures sessionWriteFailures livenessReadFailures since } } }`, map[string]any{"w": workspace}, &out)
		return out.Workspace.Counters
	}
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.4 counters are read through the API, what has not happened at 0", func(t *testing.T) {
		got := read(w.workspace)
		if len(got.WakeupsCreated) != 10 || len(got.TerminalRuns) != 7 || len(got.RoutineRuns) != 24 || got.Since.IsZero() {
			t.Errorf("counters: %+v", got)
		}
		for _, x := range got.WakeupsCreated {
			if want := map[string]int{"USER": 1}[x.Source]; x.Count != want {
				t.Errorf("%d wakeups of source %s, want %d", x.Count, x.Source, want)
			}
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.5 another workspace's counters are its own", func(t *testing.T) {
		for _, x := range read(w.makeWorkspace("Other")).WakeupsCreated {
			if x.Count != 0 {
				t.Errorf("%d wakeups of source %s are shown to another workspace", x.Count, x.Source)
			}
		}
	})
}

func TestATraceHasEveryHop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.schedule(agent)
	type hops struct {
		CausationID    string
		RoutineRun     *struct{ ID string }
		WakeupRequests []struct {
			ID, Status string
			Run        *struct{ ID string }
		}
		Runs      []struct{ ID, CausationID, SessionID string }
		Truncated bool
		Activity  struct {
			Edges []struct{ Node struct{ Code string } }
		}
	}
	trace := func(id string) *hops {
		t.Helper()
		var out struct{ Workspace struct{ Trace *hops } }
		w.Do(t.Context(), `query($w: ID!, $c: ID!) { workspace(id: $w) { trace(causationId: $c) { causationId routineRun { id } wakeupRequests { id status run { id } }
  runs { id causationId sessionId } truncated activity(first: 50) { edges { node { code } } } } } }`, map[string]any{"w": w.workspace, "c": id}, &out)
		return out.Workspace.Trace
	}
	var fired struct {
		FireRoutine struct {
			RoutineRun struct{ ID, CausationID string }
		}
	}
	w.Do(t.Context(), `mutation($r: ID!) { fireRoutine(input: {routineId: $r}) { routineRun { id causationId } userErrors { code message field } } }`,
		map[string]any{"r": w.one(`SELECT id FROM routines`)}, &fired)
	fire := fired.FireRoutine.RoutineRun
	a := w.start()
	if err := w.store.RecordSession(t.Context(), a, "session-7"); err != nil {
		t.Fatal(err)
	}
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.2 a fire, its request, its run and its session have one id", func(t *testing.T) {
		got := trace(fire.CausationID)
		if got == nil || got.RoutineRun == nil || len(got.WakeupRequests) != 1 || len(got.Runs) != 1 {
			t.Fatalf("the trace is %+v", got)
		}
		compare(t, "the trace",
			is("routine run", got.RoutineRun.ID, fire.ID),
			is("session of the run", got.Runs[0].SessionID, "session-7"),
			is("truncated", got.Truncated, false))
		var codes []string
		for _, e := range got.Activity.Edges {
			codes = append(codes, e.Node.Code)
		}
		if text := strings.Join(codes, " "); !strings.HasPrefix(text, "ROUTINE_FIRED WAKEUP_QUEUED RUN_CLAIMED RUN_LAUNCHED") {
			t.Errorf("the entries are %s", text)
		}
	})
	first := w.wake(agent)
	merged := w.one(`SELECT id FROM runs WHERE id <> '` + string(a.RunID) + `'`)
	w.wake(agent)
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.4 a merged request keeps its id and leads to the run that served it", func(t *testing.T) {
		id := w.one(`SELECT causation_id FROM wakeup_requests WHERE status = 'COALESCED'`)
		got := trace(id)
		if got == nil || len(got.WakeupRequests) != 1 || len(got.Runs) != 1 {
			t.Fatalf("the trace is %+v", got)
		}
		compare(t, "the trace",
			is("status of the request", got.WakeupRequests[0].Status, "COALESCED"),
			is("run", got.Runs[0].ID, first),
			is("run that the request was merged into", merged, first),
			holds("the run has a causation id of its own", got.Runs[0].CausationID != id))
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.6 an id that nothing carries joins nothing", func(t *testing.T) {
		if got := trace("cau_01k00000000000000000000000"); got != nil {
			t.Errorf("the trace is %+v", got)
		}
	})
}
