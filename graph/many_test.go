package graph_test

import (
	"fmt"
	"testing"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// A hold shows who holds the workspace, why and since when, in the workspace, in the verdict and in what waits.
func TestAHeldWorkspaceSaysWhoHoldsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.agent("Ada"))
	var held struct {
		HoldWorkspace struct {
			Workspace *struct {
				Hold *struct {
					By          struct{ UserID string }
					Since, Note string
					Fires       string
				}
				LoopLiveness struct {
					Verdict string
					Hold    *struct{ Note string }
				}
				Runs struct {
					Edges []struct {
						Node struct {
							Waiting struct{ Hold, Since, Message string }
						}
					}
				}
			}
			RunsAskedToEndCount int
		}
	}
	fields := `workspace { hold { by { ... on UserActor { userId } } since note fires } loopLiveness { verdict hold { note } } runs { edges { node { waiting { hold since message } } } } } runsAskedToEndCount`
	if e := w.mutate("holdWorkspace", fields, map[string]any{"workspaceId": w.workspace, "note": "incident"}, &held); e != "" {
		t.Fatal(e)
	}
	s := held.HoldWorkspace.Workspace
	if s.Hold == nil || len(s.Runs.Edges) != 1 {
		t.Fatalf("it shows %+v", s)
	}
	compare(t, "the held workspace",
		is("why", s.Hold.Note, "incident"), is("fires", s.Hold.Fires, "HOLD"), holds("who", s.Hold.By.UserID != ""), holds("since when", s.Hold.Since != ""),
		is("verdict", s.LoopLiveness.Verdict, "HELD"), is("why, by the verdict", s.LoopLiveness.Hold.Note, "incident"),
		is("what its run waits for", s.Runs.Edges[0].Node.Waiting.Hold, "WORKSPACE_HELD"), is("since when it waits", s.Runs.Edges[0].Node.Waiting.Since, s.Hold.Since))
	if claimed, err := w.store.Claim(t.Context(), store.Owner{ID: xid.New("prc")}, 10, 1e9); err != nil || len(claimed) > 0 {
		t.Errorf("claimed %v, %v", claimed, err)
	}
	if e := w.mutate("holdWorkspace", "__typename", map[string]any{"workspaceId": "wsp_00000000000000000000000000"}, nil); e != "NOT_FOUND input.workspaceId" {
		t.Errorf("an unknown workspace: %q", e)
	}
	if e := w.mutate("releaseWorkspace", "workspace { hold { note } }", map[string]any{"workspaceId": w.workspace}, nil); e != "" {
		t.Error(e)
	}
	if w.start().RunID != xid.ID(run) {
		t.Error("after the release another run is launched")
	}
}

// A call about many agents or routines names each once, and at most a hundred; one that is not there refuses all, at its place.
func TestACallAboutManyRefusesWhatItCannotName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.agent("Ada")
	many := make([]string, 101)
	for i := range many {
		many[i] = ada
	}
	routine := w.routine(ada, nil).ID
	for _, c := range []struct {
		mutation, field string
		ids             []string
		want            string
	}{
		{"pauseAgents", "agentIds", nil, "OUT_OF_RANGE input.agentIds"},
		{"pauseAgents", "agentIds", many, "OUT_OF_RANGE input.agentIds"},
		{"pauseAgents", "agentIds", []string{ada, ada}, "INVALID input.agentIds.1"},
		{"pauseAgents", "agentIds", []string{ada, "agt_00000000000000000000000000"}, "NOT_FOUND input.agentIds.1"},
		{"resumeAgents", "agentIds", []string{routine}, "NOT_FOUND input.agentIds.0"},
		{"pauseRoutines", "routineIds", []string{routine, ada}, "NOT_FOUND input.routineIds.1"},
		{"resumeRoutines", "routineIds", nil, "OUT_OF_RANGE input.routineIds"},
	} {
		ids := append([]string{}, c.ids...)
		if e := w.mutate(c.mutation, "changedIds", map[string]any{c.field: ids}, nil); e != c.want {
			t.Errorf("%s of %d: %q, want %s", c.mutation, len(ids), e, c.want)
		}
	}
	if got := w.one(`SELECT status::text FROM agent_lanes`); got != "IDLE" {
		t.Errorf("the agent is %s", got)
	}
	var paused struct {
		PauseRoutines struct {
			Routines   []struct{ ID, Status string }
			ChangedIds []string
		}
	}
	if e := w.mutate("pauseRoutines", "routines { id status } changedIds", map[string]any{"routineIds": []string{routine}}, &paused); e != "" || len(paused.PauseRoutines.Routines) != 1 || paused.PauseRoutines.Routines[0].Status != "PAUSED" || len(paused.PauseRoutines.ChangedIds) != 1 {
		t.Errorf("paused: %q %+v", e, paused)
	}
}

// manyRuns is the answer of a call about runs that a filter selects.
type manyRuns struct {
	Results []struct {
		RunID, Outcome string
		Message        *string
		Run            *struct{ Status string }
	}
	More, DryRun, Replayed bool
}

func (m manyRuns) outcomes() (list []string) {
	for _, r := range m.Results {
		list = append(list, r.Outcome)
	}
	return list
}

// What a dry run says is what the act does, and the dry run changes nothing. A repeated call returns the first one's results.
func TestRunsThatAFilterSelectsAreCancelledAndRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.agent("Ada"), w.agent("Eve")
	live := w.wake(ada)
	w.start()
	queued := w.wake(eve)
	var out map[string]manyRuns
	call := func(mutation string, more map[string]any) manyRuns {
		t.Helper()
		input := map[string]any{"workspaceId": w.workspace, "filter": map[string]any{}}
		for k, v := range more {
			input[k] = v
		}
		message := ""
		if mutation == "retryRuns" {
			message = "message"
		}
		out = nil
		if e := w.mutate(mutation, "results { runId outcome "+message+" run { status } } more dryRun replayed", input, &out); e != "" {
			t.Fatalf("%s: %s", mutation, e)
		}
		return out[mutation]
	}
	for _, dry := range []map[string]any{nil, {"dryRun": true}} {
		got := call("cancelRuns", dry)
		if fmt.Sprint(got.outcomes()) != "[ASKED_TO_END CANCELLED]" || !got.DryRun || got.Results[0].RunID != live || got.Results[1].Run.Status != "QUEUED" {
			t.Errorf("a dry run says %+v", got)
		}
	}
	if n := w.one(`SELECT count(*)::text FROM runs WHERE status = 'QUEUED' OR cancel_requested_at IS NULL`); n != "2" {
		t.Errorf("the dry run left %s runs as they were, want 2", n)
	}
	if got := call("cancelRuns", map[string]any{"limit": 1}); len(got.Results) != 1 || !got.More {
		t.Errorf("with a limit of one it says %+v", got)
	}
	act := map[string]any{"dryRun": false, "idempotencyKey": "k", "note": "enough"}
	first := call("cancelRuns", act)
	again := call("cancelRuns", act)
	if fmt.Sprint(first.outcomes()) != "[ASKED_TO_END CANCELLED]" || first.Replayed || !again.Replayed || fmt.Sprint(again.outcomes()) != fmt.Sprint(first.outcomes()) || first.Results[1].Run.Status != "CANCELLED" {
		t.Errorf("the act: %+v, again: %+v", first, again)
	}
	parked := w.wake(w.agent("Bob"))
	w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = clock_timestamp() + interval '1 hour' WHERE id = '` + parked + `'`)
	dry := call("retryRuns", nil)
	done := call("retryRuns", map[string]any{"dryRun": false})
	for _, got := range []manyRuns{dry, done} {
		if fmt.Sprint(got.outcomes()) != "[SENT_AGAIN MADE_DUE]" || got.Results[0].RunID != queued || got.Results[1].RunID != parked {
			t.Errorf("dry %t: %+v", got.DryRun, got)
		}
	}
	if n := w.one(`SELECT count(*)::text FROM runs WHERE status = 'QUEUED' AND parked_reason IS NULL`); n != "2" {
		t.Errorf("%s runs are due, want the parked one and that of the request which was sent again", n)
	}
	if got := call("retryRuns", map[string]any{"dryRun": false, "filter": map[string]any{"status": []string{"CANCELLED"}}}); fmt.Sprint(got.outcomes()) != "[REFUSED]" || got.Results[0].Message == nil {
		t.Errorf("a run whose wakeups were sent again before: %+v", got)
	}
	for _, c := range []struct {
		input map[string]any
		want  string
	}{{map[string]any{"limit": 0}, "OUT_OF_RANGE input.limit"}, {map[string]any{"limit": 1001}, "OUT_OF_RANGE input.limit"}, {map[string]any{"workspaceId": "wsp_00000000000000000000000000"}, "NOT_FOUND input.workspaceId"}} {
		input := map[string]any{"workspaceId": w.workspace, "filter": map[string]any{}}
		for k, v := range c.input {
			input[k] = v
		}
		if e := w.mutate("cancelRuns", "more", input, nil); e != c.want {
			t.Errorf("%v: %q, want %s", c.input, e, c.want)
		}
	}
}

// New agents have the brake; it can be changed and taken off. It counts what neither a person nor a schedule asked for.
func TestTheBrakeOfAnAgentIsSetAndShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent("Ada")
	type braked struct {
		UpdateAgent struct {
			Agent *struct {
				LaunchLimit *struct {
					Count int
					Per   string
				}
				UnattendedLaunches int
				LaunchWindowEndsAt *string
			}
		}
	}
	change := func(limit any) (out braked, problem string) {
		problem = w.mutate("updateAgent", "agent { launchLimit { count per } unattendedLaunches launchWindowEndsAt }", map[string]any{"agentId": id, "launchLimit": limit}, &out)
		return out, problem
	}
	if got := w.one(`SELECT launch_limit || ' ' || launch_limit_ms FROM agents`); got != "60 3600000" {
		t.Errorf("a new agent has %s, want 60 in an hour", got)
	}
	out, e := change(map[string]any{"count": 2, "per": "PT5M"})
	if e != "" || out.UpdateAgent.Agent.LaunchLimit.Count != 2 || out.UpdateAgent.Agent.LaunchLimit.Per != "PT5M" || out.UpdateAgent.Agent.LaunchWindowEndsAt != nil {
		t.Errorf("%q %+v", e, out)
	}
	if _, e := change(map[string]any{"count": 0}); e != "OUT_OF_RANGE input.launchLimit.count" {
		t.Errorf("a limit of 0: %q", e)
	}
	if _, e := change(map[string]any{"count": 1, "per": "PT0.5S"}); e != "OUT_OF_RANGE input.launchLimit.per" {
		t.Errorf("a window of half a second: %q", e)
	}
	w.wake(id)
	w.sql(`UPDATE runs SET unattended = true`)
	a := w.start()
	w.ok(w.store.Finish(t.Context(), a, store.Success{}))
	if out, e := change(map[string]any{"count": 3}); e != "" || out.UpdateAgent.Agent.UnattendedLaunches != 1 || out.UpdateAgent.Agent.LaunchWindowEndsAt == nil {
		t.Errorf("%q %+v", e, out.UpdateAgent.Agent)
	}
	if out, e := change(nil); e != "" || out.UpdateAgent.Agent.LaunchLimit != nil {
		t.Errorf("no limit: %q %+v", e, out)
	}
}
