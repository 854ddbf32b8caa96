package graph_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// plainFields are those of a run that its row shows.
var plainFields = []string{"id", "causationId", "revision", "source", "wakeClass", "status", "coalescedCount", "retryCount", "sessionId", "outcome", "summary",
	"requestedAt", "claimedAt", "finishedAt", "cancelRequestedAt", "agent { id name }", "routine { id name }"}

// A run is read with the columns that the document shows, and each field is what it is when the run is read whole: alone, by the
// run, in a list, behind fragments, and by several aliases that show different fields.
func TestARunIsReadWithTheColumnsThatAreShown(t *testing.T) {
	db, kept := keepingDB(t)
	w := newWorldOn(t, db)
	agent := w.agent("worker")
	w.sql(`INSERT INTO routines (id, workspace_id, name, assignee_id, variables) VALUES ('rtn_00000000000000000000000001', $1, 'routine', $2, '[]')`, w.workspace, agent)
	const id = "run_00000000000000000000000001"
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, routine_id, causation_id, scope, source, wake_class, status, revision, coalesced_count, retry_count, session_id, outcome, summary,
  requested_at, claimed_at, started_at, finished_at, cancel_requested_at)
VALUES ($3, $1, $2, 'rtn_00000000000000000000000001', 'cau_00000000000000000000000001', 'taskless', 'ROUTINE', 'PERIODIC', 'FINISHED', 7, 3, 2, 'session', 'processed', 'all is well',
  '2026-01-01T01:00:00Z', '2026-01-01T02:00:00Z', '2026-01-01T02:30:00Z', '2026-01-01T03:00:00Z', '2026-01-01T02:45:00Z')`, w.workspace, agent, id)
	ask := func(document string) (out map[string]any) {
		t.Helper()
		w.Do(t.Context(), `query($id: ID!, $w: ID!) { `+document+` run(id: $id) { id } workspace(id: $w) { id } }`, map[string]any{"id": id, "w": w.workspace}, &out)
		return out
	}
	inList := func(answer map[string]any) map[string]any {
		return answer["l"].(map[string]any)["runs"].(map[string]any)["edges"].([]any)[0].(map[string]any)["node"].(map[string]any)
	}
	whole := ask(`x: run(id: $id) { terminalShape ` + strings.Join(plainFields, " ") + ` }`)["x"].(map[string]any)
	for _, field := range plainFields {
		name, _, _ := strings.Cut(field, " ")
		if whole[name] == nil {
			t.Errorf("%s is null, which shows nothing", name)
		}
		for where, got := range map[string]map[string]any{
			"by the run":    ask(`x: run(id: $id) { ` + field + ` }`)["x"].(map[string]any),
			"in a fragment": ask(`x: run(id: $id) { ... on Run { ... on Node { id } ... on Versioned { revision } ... { ` + field + ` } } }`)["x"].(map[string]any),
			"in a list":     inList(ask(`l: workspace(id: $w) { runs { totalCount edges { cursor node { ` + field + ` } } } }`)),
			"by an alias":   inList(ask(`l: workspace(id: $w) { runs { other: edges { node { status } } edges { node { ` + field + ` } } last: edges { it: node { revision } } } }`)),
		} {
			if !reflect.DeepEqual(got[name], whole[name]) {
				t.Errorf("%s %s is %v, want %v", name, where, got[name], whole[name])
			}
		}
	}
	statements := kept.during(func() { ask(`x: run(id: $id) { status agent { name } }`) })
	if !slices.ContainsFunc(statements, func(s keptStatement) bool { return strings.Contains(s.query, `"runs"."agent_id"`) }) {
		t.Error("no statement reads the run's agent")
	}
	for _, s := range statements {
		if strings.Contains(s.query, `"runs"."scope"`) {
			t.Errorf("a column is read that nobody asked for: %s", s.query)
		}
	}
	text, err := json.Marshal(ask(`x: run(id: $id) { __typename }`))
	if w.ok(err); !strings.Contains(string(text), `"__typename":"Run"`) {
		t.Errorf("the type is %s", text)
	}
}
