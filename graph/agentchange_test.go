package graph_test

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// mutate runs a mutation with one input and gives its problems; out takes its payload, under the mutation's name.
func (w *world) mutate(name, fields string, input map[string]any, out any) string {
	w.t.Helper()
	var raw map[string]struct{ UserErrors userErrors }
	query := `mutation($input: ` + strings.ToUpper(name[:1]) + name[1:] + `Input!) { ` + name + `(input: $input) { ` + fields + ` userErrors { code message field } } }`
	data, errs := w.Try(w.t.Context(), query, map[string]any{"input": input})
	if len(errs) > 0 {
		w.t.Fatalf("%s: %v", query, errs)
	}
	decode(w.t, data, &raw)
	if out != nil {
		decode(w.t, data, out)
	}
	return raw[name].UserErrors.String()
}

func TestAHeldAgentIsResumedAndShowsWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent("Ada")
	agent := map[string]any{"agentId": id}
	var paused struct {
		PauseAgent struct {
			Agent struct{ Status, PauseReason string }
		}
	}
	if e := w.mutate("pauseAgent", "agent { status pauseReason }", map[string]any{"agentId": id, "note": "lunch"}, &paused); e != "" || paused.PauseAgent.Agent.Status != "PAUSED" || paused.PauseAgent.Agent.PauseReason != "USER" {
		t.Errorf("paused: %q %+v", e, paused)
	}
	w.wake(id)
	if claimed, err := w.store.Claim(t.Context(), store.Owner{ID: xid.New("prc")}, 10, 1e9); err != nil || len(claimed) > 0 {
		t.Fatalf("C219 a paused agent claimed %v, %v", claimed, err)
	}
	var stopped struct {
		StopAgent struct {
			Agent struct {
				Status      string
				PauseReason *string
			}
		}
	}
	if e := w.mutate("stopAgent", "agent { status pauseReason }", agent, &stopped); e != "" || stopped.StopAgent.Agent.Status != "STOPPED" || stopped.StopAgent.Agent.PauseReason != nil {
		t.Errorf("stopped: %q %+v", e, stopped)
	}
	if e := w.mutate("pauseAgent", "agent { id }", agent, nil); e != "INVALID_STATE input.agentId" {
		t.Errorf("a stopped agent is paused: %q", e)
	}
	var resumed struct {
		ResumeAgent struct {
			Agent              struct{ Status string }
			WakeupRequestCount int
			WakeupRequests     []struct {
				Status  string
				Resends int
				Run     *struct{ Status string }
			}
		}
	}
	e := w.mutate("resumeAgent", "agent { status } wakeupRequestCount wakeupRequests { status resends run { status } }", agent, &resumed)
	r := resumed.ResumeAgent
	if e != "" || len(r.WakeupRequests) != 1 {
		t.Fatalf("C313 resumed: %q %+v", e, r)
	}
	compare(t, "C313 the resumed agent and what is sent again",
		is("status", r.Agent.Status, "IDLE"),
		is("wakeupRequestCount", r.WakeupRequestCount, 1),
		is("resends", r.WakeupRequests[0].Resends, 1),
		holds("it has a run", r.WakeupRequests[0].Run != nil))
}

func TestAnAgentIsChangedFieldByField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.createAgent("Ada", map[string]any{"sessionMaxRuns": 3, "instructions": "Be kind.", "executor": map[string]any{"echo": map[string]any{}}}).CreateAgent.Agent.ID
	var out struct {
		UpdateAgent struct {
			Agent *struct {
				Name, Instructions, Cooldown string
				Revision                     int
				SessionMaxRuns               *int
				Executor                     *struct{ Environment []string }
			}
		}
	}
	update := func(input map[string]any) string {
		t.Helper()
		out.UpdateAgent.Agent = nil
		input["agentId"] = id
		return w.mutate("updateAgent", "agent { name instructions cooldown revision sessionMaxRuns executor { ... on CommandExecutor { environment } } }", input, &out)
	}
	e := update(map[string]any{"expectedRevision": 1, "sessionMaxRuns": nil, "executor": map[string]any{"command": map[string]any{
		"argv": []string{"claude"}, "environment": []any{map[string]any{"name": "KEY", "value": "hunter2"}}}}})
	if e != "" {
		t.Fatalf("absent fields stay and null clears: %q %+v", e, out)
	}
	a := out.UpdateAgent.Agent
	compare(t, "an agent of which absent fields stay and null clears",
		is("name", a.Name, "Ada"),
		is("instructions", a.Instructions, "Be kind."),
		is("cooldown", a.Cooldown, "PT0S"),
		is("revision", a.Revision, 2),
		is("sessionMaxRuns", a.SessionMaxRuns, nil),
		is("environment", a.Executor.Environment, []string{"KEY"}))
	var stored string
	w.ok(w.db.QueryRow(`SELECT executor::text FROM agents WHERE id = $1`, id).Scan(&stored))
	if !strings.Contains(stored, "sealed for "+id+"/KEY") {
		t.Errorf("stored as %s", stored)
	}
	if e = update(map[string]any{"cooldown": nil, "executor": nil}); e != "" || out.UpdateAgent.Agent.Cooldown != "PT10S" || out.UpdateAgent.Agent.Executor != nil {
		t.Errorf("null is the default, or none: %q %+v", e, out.UpdateAgent.Agent)
	}
	for want, input := range map[string]map[string]any{
		"CONFLICT input.expectedRevision":          {"expectedRevision": 1, "name": "Eve"},
		"REQUIRED input.name":                      {"name": nil},
		"INVALID input.instructions":               {"instructions": "\x00"},
		"OUT_OF_RANGE input.maxConcurrentSessions": {"maxConcurrentSessions": 0},
		"INVALID input.managerId":                  {"managerId": id},
		"INVALID input.executor":                   {"executor": map[string]any{}},
	} {
		if got := update(input); got != want || out.UpdateAgent.Agent != nil {
			t.Errorf("%v: %q, want %q", input, got, want)
		}
	}
}

func TestWhoDeletesAnAgentHearsWhichRunsAreAskedToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent("Ada")
	run := w.wake(id)
	w.start()
	var out struct {
		DeleteAgent struct{ RunsAskedToEnd []struct{ ID string } }
	}
	if e := w.mutate("deleteAgent", "runsAskedToEnd { id }", map[string]any{"agentId": id}, &out); e != "" || len(out.DeleteAgent.RunsAskedToEnd) != 1 || out.DeleteAgent.RunsAskedToEnd[0].ID != run {
		t.Errorf("%q %+v, want %s", e, out, run)
	}
}

func TestADeletedAgentIsGoneAndItsHistoryIsNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent("Ada")
	run := w.wake(id)
	var out struct {
		DeleteAgent struct{ DeletedAgentID *string }
	}
	if e := w.mutate("deleteAgent", "deletedAgentId", map[string]any{"agentId": id}, &out); e != "" || out.DeleteAgent.DeletedAgentID == nil || *out.DeleteAgent.DeletedAgentID != id {
		t.Errorf("deleted: %q %+v", e, out)
	}
	for _, mutation := range []string{"deleteAgent", "pauseAgent", "stopAgent", "resumeAgent", "updateAgent"} {
		field := map[bool]string{true: "deletedAgentId", false: "agent { id }"}[mutation == "deleteAgent"]
		if e := w.mutate(mutation, field, map[string]any{"agentId": id}, nil); e != "NOT_FOUND input.agentId" {
			t.Errorf("%s of a deleted agent: %q", mutation, e)
		}
	}
	var seen struct {
		Run struct {
			Status, TerminalShape string
			Agent                 struct{ Name string }
		}
		Workspace struct{ Agents struct{ TotalCount int } }
	}
	w.Do(t.Context(), `query($run: ID!, $w: ID!) { run(id: $run) { status terminalShape agent { name } } workspace(id: $w) { agents { totalCount } } }`, map[string]any{"run": run, "w": w.workspace}, &seen)
	if seen.Run.Status != "CANCELLED" || seen.Run.TerminalShape != "UNLAUNCHED_SKIPPED" || seen.Run.Agent.Name != "Ada" || seen.Workspace.Agents.TotalCount != 0 {
		t.Errorf("what is left is %+v", seen)
	}
}

func TestSettingsAreChangedAndClampsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var out struct {
		UpdateWorkspaceSettings struct {
			Clamped   []string
			Workspace *struct {
				Revision int
				Settings struct {
					RecoveryLookbackHours             int
					MaxConcurrentRuns                 *int
					CoalescingWindow, DefaultTimeZone string
					DefaultExecutor                   *struct{ Delay string }
				}
			}
		}
	}
	update := func(input map[string]any) string {
		t.Helper()
		input["workspaceId"] = w.workspace
		return w.mutate("updateWorkspaceSettings", "clamped workspace { revision settings { recoveryLookbackHours maxConcurrentRuns coalescingWindow defaultTimeZone defaultExecutor { ... on EchoExecutor { delay } } } }", input, &out)
	}
	e := update(map[string]any{"recoveryLookbackHours": 5000, "coalescingWindow": "PT2M", "maxConcurrentRuns": 4, "defaultExecutor": map[string]any{"echo": map[string]any{"delay": "PT1S"}}})
	if e != "" {
		t.Fatalf("changed: %q %+v", e, out)
	}
	x := out.UpdateWorkspaceSettings
	set := x.Workspace.Settings
	compare(t, "the changed settings",
		is("clamped", x.Clamped, []string{"recoveryLookbackHours", "coalescingWindow"}),
		is("recoveryLookbackHours", set.RecoveryLookbackHours, 720),
		is("coalescingWindow", set.CoalescingWindow, "PT1M"),
		is("maxConcurrentRuns", *set.MaxConcurrentRuns, 4),
		holds("defaultExecutor is set", set.DefaultExecutor != nil),
		is("defaultTimeZone", set.DefaultTimeZone, "UTC"))
	if e = update(map[string]any{"maxConcurrentRuns": nil}); e != "" || out.UpdateWorkspaceSettings.Workspace.Settings.MaxConcurrentRuns != nil {
		t.Errorf("no ceiling: %q %+v", e, out)
	}
	for want, input := range map[string]map[string]any{
		"CONFLICT input.expectedRevision":         {"expectedRevision": 99},
		"OUT_OF_RANGE input.maxConcurrentRuns":    {"maxConcurrentRuns": 0},
		"UNKNOWN_TIME_ZONE input.defaultTimeZone": {"defaultTimeZone": "Mars/Olympus"},
		"INVALID input.defaultExecutor":           {"defaultExecutor": map[string]any{}},
	} {
		if got := update(input); got != want {
			t.Errorf("%v: %q, want %q", input, got, want)
		}
	}
}
