package graph_test

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/store"
)

func TestWhatARoutineRemembersIsReadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("watcher")
	var made struct {
		CreateRoutine struct {
			Routine    struct{ ID string }
			UserErrors userErrors
		}
	}
	w.Do(t.Context(), `mutation($in: CreateRoutineInput!) { createRoutine(input: $in) { routine { id } userErrors { code message field } } }`, map[string]any{"in": map[string]any{
		"workspaceId": w.workspace, "name": "watch", "assigneeId": agentID, "triggers": []any{map[string]any{"manual": map[string]any{}}}}}, &made)
	routine := made.CreateRoutine.Routine.ID
	type view struct {
		Scope, Content string
		ContentTokens  int
		Agent          struct{ ID string }
		UpdatedByRun   *struct{ ID string }
	}
	var out struct {
		Routine struct{ ContinuationSummary *view }
		Agent   struct {
			ContinuationSummaries struct{ Edges []struct{ Node view } }
		}
	}
	const read = `query($routine: ID!, $agent: ID!) { routine(id: $routine) { continuationSummary { ...s } } agent(id: $agent) { continuationSummaries { edges { node { ...s } } } } }
		fragment s on ContinuationSummary { scope content contentTokens agent { id } updatedByRun { id } }`
	ids := map[string]any{"routine": routine, "agent": agentID}
	if w.Do(t.Context(), read, ids, &out); out.Routine.ContinuationSummary != nil || len(out.Agent.ContinuationSummaries.Edges) != 0 {
		t.Errorf("before the first run: %+v", out)
	}
	var fired struct {
		FireRoutine struct{ UserErrors userErrors }
	}
	w.Do(t.Context(), `mutation($id: ID!) { fireRoutine(input: {routineId: $id}) { userErrors { code message field } } }`, map[string]any{"id": routine}, &fired)
	a := w.start()
	w.ok(w.store.Finish(t.Context(), a, store.Success{Summary: "seen", Result: map[string]any{"summary": "seen"}}))
	w.Do(t.Context(), read, ids, &out)
	s := out.Routine.ContinuationSummary
	if s == nil || s.UpdatedByRun == nil {
		t.Fatalf("the routine remembers %+v", s)
	}
	compare(t, "what the routine remembers",
		is("scope", s.Scope, "routine:"+routine),
		holds("the content has what was seen", strings.Contains(s.Content, "## Active focus\nseen")),
		holds("contentTokens are counted", s.ContentTokens != 0),
		is("agent", s.Agent.ID, agentID),
		is("run that updated it", s.UpdatedByRun.ID, string(a.RunID)))
	if edges := out.Agent.ContinuationSummaries.Edges; len(edges) != 1 || edges[0].Node.Content != s.Content {
		t.Errorf("the agent remembers %+v", edges)
	}
}
