package graph_test

import (
	"strings"
	"testing"
	"time"
)

const budgetFields = `budget { id revision subjectKind subject { __typename ... on Agent { id } } limitUsd spentUsd reservedUsd percentUsed state period alertThresholds onExceed resetsAt } userErrors { code field message }`

type budgetAnswer struct {
	Budget *struct {
		ID, SubjectKind, LimitUsd, SpentUsd, ReservedUsd, State, Period, OnExceed string
		Revision                                                                  int
		Subject                                                                   map[string]string
		PercentUsed                                                               float64
		AlertThresholds                                                           []int
		ResetsAt                                                                  *time.Time
	}
	UserErrors userErrors
}

func (w *world) upsertBudget(input string) budgetAnswer {
	w.t.Helper()
	var out struct{ UpsertBudget budgetAnswer }
	w.Do(w.t.Context(), `mutation { upsertBudget(input: {`+input+`}) { `+budgetFields+` } }`, nil, &out)
	return out.UpsertBudget
}

// costs gives the workspace an ended run of the agent that cost something.
func (w *world) spent(agent, costUSD string) {
	w.t.Helper()
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, finished_at)
VALUES ('run_' || $3, $1, $2, 'cau', 'taskless', 'USER', 'EVENT', 'FINISHED', 'processed', now())`, w.workspace, agent, costUSD)
	w.sql(`INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, input_tokens, output_tokens, cost_usd)
VALUES ('cst_' || $3, $1, 'cau', 'run_' || $3, 1, $2, 10, 5, $3::text::numeric)`, w.workspace, agent, costUSD)
}

func TestBudgetsThroughTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	state := func() (workspace, ofAgent string) {
		t.Helper()
		var out struct {
			Workspace struct{ BudgetState string }
			Node      struct{ BudgetState string }
		}
		w.Do(t.Context(), `query($w: ID!, $a: ID!) { workspace(id: $w) { budgetState } node(id: $a) { ... on Agent { budgetState } } }`,
			map[string]any{"w": w.workspace, "a": agent}, &out)
		return out.Workspace.BudgetState, out.Node.BudgetState
	}
	if ws, ag := state(); ws != "UNLIMITED" || ag != "UNLIMITED" {
		t.Errorf("C224 without a budget the states are %s and %s, want UNLIMITED", ws, ag)
	}
	w.spent(agent, "0.85")
	made := w.upsertBudget(`subject: {agentId: "` + agent + `"}, limitUsd: "1"`)
	b := made.Budget
	if b == nil || len(made.UserErrors) > 0 {
		t.Fatalf("upsertBudget: %v", made.UserErrors)
	}
	compare(t, "the budget",
		is("spentUsd", b.SpentUsd, "0.85"),
		is("limitUsd", b.LimitUsd, "1"),
		is("percentUsed", b.PercentUsed, 85),
		is("state", b.State, "WITHIN"),
		is("period", b.Period, "MONTH"),
		is("onExceed", b.OnExceed, "PAUSE_AGENT"),
		is("subject's id", b.Subject["id"], agent),
		is("subjectKind", b.SubjectKind, "AGENT"),
		is("reservedUsd", b.ReservedUsd, "0"),
		is("revision", b.Revision, 1),
		holds("resetsAt is set", b.ResetsAt != nil),
		is("number of alertThresholds", len(b.AlertThresholds), 2))
	if ws, ag := state(); ws != "UNLIMITED" || ag != "WITHIN" {
		t.Errorf("the states are %s and %s", ws, ag)
	}
	again := w.upsertBudget(`subject: {agentId: "` + agent + `"}, limitUsd: "0.85", period: TOTAL, expectedRevision: 1`)
	if again.Budget == nil || again.Budget.ID != b.ID || again.Budget.State != "EXCEEDED" || again.Budget.Revision != 2 || again.Budget.ResetsAt != nil {
		t.Errorf("the changed budget is %+v, %v", again.Budget, again.UserErrors)
	}
	if got := w.upsertBudget(`subject: {agentId: "` + w.agent("Without") + `"}, limitUsd: "1", expectedRevision: 1`).UserErrors.String(); got != "CONFLICT input.expectedRevision" {
		t.Errorf("a revision of a budget that is gone: %q", got)
	}
	if got := w.upsertBudget(`subject: {agentId: "` + agent + `"}, limitUsd: "1", expectedRevision: 1`).UserErrors.String(); got != "CONFLICT input.expectedRevision" {
		t.Errorf("an old revision gives %s", got)
	}
	w.upsertBudget(`subject: {workspaceId: "` + w.workspace + `"}, limitUsd: "100", onExceed: NOTIFY, alertThresholds: []`)

	var list struct {
		Workspace struct {
			Budgets struct {
				Edges []struct {
					Node struct{ ID, SubjectKind string }
				}
				PageInfo struct{ HasNextPage bool }
			}
			Inbox struct {
				Edges []struct {
					Node struct {
						Title   string
						Subject map[string]string
					}
				}
			}
			Activity struct {
				Edges []struct {
					Node struct {
						Code    string
						Subject map[string]string
					}
				}
			}
		}
	}
	w.Do(t.Context(), `query($w: ID!) { workspace(id: $w) { budgets(first: 1) { edges { node { id subjectKind } } pageInfo { hasNextPage } }
  inbox(filter: {kind: [BUDGET_ALERT]}) { edges { node { title subject { __typename ... on Budget { id } } } } }
  activity(filter: {code: [BUDGET_CHANGED]}) { edges { node { code subject { __typename ... on Budget { id } } } } } } }`, map[string]any{"w": w.workspace}, &list)
	if got := list.Workspace.Budgets; len(got.Edges) != 1 || got.Edges[0].Node.ID != b.ID || !got.PageInfo.HasNextPage {
		t.Errorf("the first page of budgets is %+v", got)
	}
	if got := list.Workspace.Inbox.Edges; len(got) != 3 || got[0].Node.Subject["id"] != b.ID {
		t.Errorf("the inbox holds %+v, want 80 percent of the month, 80 and 100 of all time", got)
	}
	if got := list.Workspace.Activity.Edges; len(got) != 3 || got[1].Node.Subject["id"] != b.ID {
		t.Errorf("the feed has %+v", got)
	}

	var gone struct {
		DeleteBudget struct {
			DeletedBudgetID string
			UserErrors      userErrors
		}
	}
	w.Do(t.Context(), `mutation($id: ID!) { deleteBudget(input: {budgetId: $id}) { deletedBudgetId userErrors { code field message } } }`, map[string]any{"id": b.ID}, &gone)
	if gone.DeleteBudget.DeletedBudgetID != b.ID {
		t.Errorf("deleteBudget: %+v", gone)
	}
	w.Do(t.Context(), `mutation($id: ID!) { deleteBudget(input: {budgetId: $id}) { deletedBudgetId userErrors { code field message } } }`, map[string]any{"id": b.ID}, &gone)
	if got := gone.DeleteBudget.UserErrors.String(); got != "NOT_FOUND input.budgetId" {
		t.Errorf("a second deleteBudget gives %s", got)
	}
	var nothing struct{ Node *struct{ ID string } }
	w.Do(t.Context(), `query($id: ID!) { node(id: $id) { id } }`, map[string]any{"id": b.ID}, &nothing)
	if nothing.Node != nil {
		t.Error("a deleted budget is still a node")
	}
}

func TestBudgetInputsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	subject := `subject: {agentId: "` + agent + `"}, `
	for input, want := range map[string]string{
		subject + `limitUsd: "0"`:                                                 "OUT_OF_RANGE input.limitUsd",
		subject + `limitUsd: "ten"`:                                               "INVALID input.limitUsd",
		subject + `limitUsd: "1", alertThresholds: [0]`:                           "OUT_OF_RANGE input.alertThresholds",
		`subject: {agentId: "agt_01k00000000000000000000000"}, limitUsd: "1"`:     "NOT_FOUND input.subject.agentId",
		`subject: {projectId: "prj_01k00000000000000000000000"}, limitUsd: "1"`:   "NOT_FOUND input.subject.projectId",
		`subject: {workspaceId: "wsp_01k00000000000000000000000"}, limitUsd: "1"`: "NOT_FOUND input.subject.workspaceId",
	} {
		if got := w.upsertBudget(input).UserErrors.String(); got != want {
			t.Errorf("%s gives %q, want %q", input, got, want)
		}
	}
}

func TestCostsByAgentProjectAndDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dear, cheap := w.agent("dear"), w.agent("cheap")
	w.spent(dear, "2")
	w.spent(dear, "3.5")
	w.spent(cheap, "0.25")
	w.sql(`UPDATE cost_entries SET created_at = created_at - interval '1 day' WHERE cost_usd = 2`)
	type group struct {
		Subject                         map[string]string
		SubjectID, Day                  *string
		CostUsd                         string
		InputTokens, OutputTokens, Runs int
	}
	costs := func(by string) (out []group) {
		t.Helper()
		var answer struct{ Workspace struct{ Costs []group } }
		now := time.Now().UTC()
		w.Do(t.Context(), `query($w: ID!, $from: DateTime!, $until: DateTime!) { workspace(id: $w) { costs(from: $from, until: $until, by: `+by+`) {
  subject { __typename ... on Agent { id } } subjectId day costUsd inputTokens outputTokens runs } } }`,
			map[string]any{"w": w.workspace, "from": now.AddDate(0, 0, -7), "until": now.AddDate(0, 0, 1)}, &answer)
		return answer.Workspace.Costs
	}
	byAgent := costs("AGENT")
	if len(byAgent) != 2 {
		t.Fatalf("by agent: %+v", byAgent)
	}
	compare(t, "the costs by agent, the dearest first",
		is("costUsd", byAgent[0].CostUsd, "5.5"),
		is("subject's id", byAgent[0].Subject["id"], dear),
		is("runs", byAgent[0].Runs, 2),
		is("inputTokens", byAgent[0].InputTokens, 20),
		is("the other's costUsd", byAgent[1].CostUsd, "0.25"))
	if got := costs("PROJECT"); len(got) != 1 || got[0].SubjectID != nil || got[0].CostUsd != "5.75" {
		t.Errorf("by project: %+v", got)
	}
	if got := costs("DAY"); len(got) != 2 || got[0].Day == nil || !strings.HasSuffix(*got[0].Day, "T00:00:00.000Z") || got[0].CostUsd != "2" || got[1].CostUsd != "3.75" {
		t.Errorf("by day: %+v", got)
	}
}
