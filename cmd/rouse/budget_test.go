package main

import (
	"fmt"
	"testing"
)

// spends lays out what each run of an agent says that it cost, in US dollars.
func (o office) spends(agent, dollars string) {
	o.t.Helper()
	o.write(agent+".result", fmt.Sprintf(`{"summary": "done", "usage": {"input_tokens": 1000, "output_tokens": 100, "cost_usd": %s}}`, dollars))
}

// limit sets an agent's budget of a month.
func (o office) limit(agent, dollars, onExceed string) {
	o.t.Helper()
	var out struct{ Budget struct{ ID string } }
	o.change("upsertBudget", "budget { id }", map[string]any{"subject": map[string]any{"agentId": agent}, "limitUsd": dollars, "period": "MONTH",
		"alertThresholds": []int{80, 100}, "onExceed": onExceed}, &out)
}

// wantAgent waits until an agent has a status and a pause reason; "" is none.
func (o office) wantAgent(agent, status, reason string) {
	o.t.Helper()
	eventually(o.t, "the agent "+status, patience, func() bool {
		var out struct {
			Agent struct {
				Status      string
				PauseReason *string
			}
		}
		o.request(`query($id: ID!) { agent(id: $id) { status pauseReason } }`, map[string]any{"id": agent}, &out)
		got := ""
		if out.Agent.PauseReason != nil {
			got = *out.Agent.PauseReason
		}
		return out.Agent.Status == status && got == reason
	})
}

// wakeUp wakes an agent and returns the wake.
func (o office) wakeUp(agent string) wakeView {
	o.t.Helper()
	var out struct{ WakeupRequest wakeView }
	o.change("wakeAgent", "wakeupRequest { id status run { id } }", map[string]any{"agentId": agent, "userId": "ann"}, &out)
	return out.WakeupRequest
}

// TestASpentBudgetPausesTheAgentThatReportedItsCosts goes from an agent's own report of its costs to its pause, to the
// coordinator that is told, and to the end of the pause (SPEC S6.3, S6.5, C88, C89, C90).
func TestASpentBudgetPausesTheAgentThatReportedItsCosts(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	coordinator, spender := o.coordinator("lead"), o.worker("spender")
	o.limit(spender, "1", "PAUSE_AGENT")
	o.spends(spender, "0.85")
	o.wakeUp(spender)
	o.wantWake(coordinator, 1, "BUDGET_ALERT", "spender", "85 percent spent")
	o.wantIdle(spender)
	o.spends(spender, "0.2")
	second := o.wakeUp(spender)
	o.wantWake(coordinator, 2, "BUDGET_ALERT", "spender", "105 percent spent")
	o.wantEnd(second.ID, "FINISHED", "")

	blocked := o.wakeUp(spender)
	o.wantEnd(blocked.ID, "SKIPPED", "BUDGET_BLOCKED")
	o.wantAgent(spender, "PAUSED", "BUDGET")
	o.wantActivity(spender, "WAKEUP_BUDGET_BLOCKED")
	o.wantActivity(spender, "AGENT_PAUSED")
	o.wantLog("wakeup_budget_blocked", "wakeup_id="+blocked.ID, "reason=budget_blocked")
	behind := o.wakeUp(spender)
	o.wantEnd(behind.ID, "FINISHED", "AGENT_INACTIVE")
	if n := len(o.woken(spender)); n != 2 {
		t.Errorf("%d launches, want two within the budget", n)
	}

	o.spends(spender, "0.6") // of the higher limit this is more than four fifths again, in the same period
	o.limit(spender, "2", "PAUSE_AGENT")
	o.wantEnd(blocked.ID, "FINISHED", "")
	o.wantIdle(spender)
	o.wantAgent(spender, "IDLE", "")
	o.wantIdle(coordinator)
	if n := len(o.woken(coordinator)); n != 2 {
		t.Errorf("the coordinator was told %d times, want once for each threshold", n)
	}
	if n := len(o.woken(spender)); n < 3 {
		t.Errorf("%d launches, the dropped wakes were not sent again", n)
	}
	if n := o.activities(spender, "BUDGET_THRESHOLD"); n != 2 {
		t.Errorf("the feed tells %d times of a threshold, want once of each", n)
	}
	var out struct {
		Workspace struct {
			Inbox   struct{ TotalCount int }
			Budgets struct {
				Edges []struct {
					Node struct{ SpentUsd, State string }
				}
			}
		}
	}
	o.request(`query($w: ID!) { workspace(id: $w) { inbox(filter: {kind: [BUDGET_ALERT]}) { totalCount } budgets { edges { node { spentUsd state } } } } }`,
		map[string]any{"w": o.workspace}, &out)
	if budget := out.Workspace.Budgets.Edges[0].Node; out.Workspace.Inbox.TotalCount != 2 || budget.SpentUsd != "1.65" || budget.State != "WITHIN" {
		t.Errorf("%+v", out)
	}
}
