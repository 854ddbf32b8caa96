package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// SPEC S3.9: the pass that is foreseen takes, ends and parks what the claim would.
func TestTheForeseenPassGoesAsTheClaimDoes(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	// queued is a run of a scope, the older the smaller n is.
	queued := func(n int, scope string, change ...func(*PassRun)) PassRun {
		r := PassRun{ID: fmt.Sprintf("run_%d", n), Scope: scope, Status: RunStatusQueued, RequestedAt: now.Add(time.Duration(n-100) * time.Minute)}
		for _, f := range change {
			f(&r)
		}
		return r
	}
	settles := func(r *PassRun) { r.Settles = true }
	blocked := func(r *PassRun) { r.Blocked = true }
	live := func(r *PassRun) { r.Status = RunStatusClaimed }
	parked := func(reason ParkedReason, until time.Duration) func(*PassRun) {
		return func(r *PassRun) {
			r.ParkedReason = reason
			if until != 0 {
				r.ParkedUntil = now.Add(until)
			}
		}
	}
	behind := parked(ParkedReasonScopeBusy, 0)
	task := func(id string) func(*PassRun) { return func(r *PassRun) { r.TaskID = id } }
	lane := func(agent string, sessions int, runs ...PassRun) PassLane {
		return PassLane{AgentID: agent, MaxSessions: sessions, Runs: runs}
	}
	with := func(l PassLane, change func(*PassLane)) PassLane { change(&l); return l }
	held, deleted := func(l *PassLane) { l.Held = true }, func(l *PassLane) { l.Held, l.Deleted = true, true }
	budget := func(limit, spent Money) BudgetLedger {
		return BudgetLedger{Expected: map[string]Money{"a": 6}, Budgets: []Budget{{ID: "b", SubjectKind: BudgetSubjectKindAgent, SubjectID: "a", Limit: limit, Spent: spent, OnExceed: BudgetActionPauseAgent}}}
	}
	for name, c := range map[string]struct {
		lanes  []PassLane
		ledger BudgetLedger
		want   string
	}{
		"one is claimed, and one behind it in its scope waits":       {lanes: []PassLane{lane("a", 2, queued(1, "x"), queued(2, "x", behind))}, want: "1 CLAIMED, 2 QUEUED SCOPE_BUSY"},
		"a guard ends one, and the next of its scope is claimed":     {lanes: []PassLane{lane("a", 2, queued(1, "x", settles), queued(2, "x", behind), queued(3, "x", behind))}, want: "1 FINISHED, 2 CLAIMED, 3 QUEUED SCOPE_BUSY"},
		"a guard parks one, and the next of its scope is claimed":    {lanes: []PassLane{lane("a", 2, queued(1, "x", blocked), queued(2, "x", behind))}, want: "1 QUEUED TASK_BLOCKED, 2 CLAIMED"},
		"what waits in another scope stays":                          {lanes: []PassLane{lane("a", 2, queued(1, "x", settles), queued(2, "y", behind))}, want: "1 FINISHED, 2 QUEUED SCOPE_BUSY"},
		"what is parked for another reason stays":                    {lanes: []PassLane{lane("a", 2, queued(1, "x", settles), queued(2, "x", parked(ParkedReasonBackoff, time.Hour)))}, want: "1 FINISHED, 2 QUEUED BACKOFF"},
		"what is live in the scope keeps the next waiting":           {lanes: []PassLane{lane("a", 3, queued(1, "x", live), queued(2, "x", settles), queued(3, "x", behind))}, want: "1 CLAIMED, 2 FINISHED, 3 QUEUED SCOPE_BUSY"},
		"one whose parking is over is claimed":                       {lanes: []PassLane{lane("a", 2, queued(1, "x", parked(ParkedReasonBackoff, -time.Minute)))}, want: "1 CLAIMED"},
		"one whose parking is over waits for its scope":              {lanes: []PassLane{lane("a", 2, queued(1, "x", live), queued(2, "x", parked(ParkedReasonBackoff, -time.Minute)))}, want: "1 CLAIMED, 2 QUEUED SCOPE_BUSY"},
		"a live one has no parking that could be over":               {lanes: []PassLane{lane("a", 2, queued(1, "x", live, parked("", -time.Minute)), queued(2, "x", behind))}, want: "1 CLAIMED, 2 QUEUED SCOPE_BUSY"},
		"the second about a task ends":                               {lanes: []PassLane{lane("a", 1, queued(1, "x", task("t"))), lane("b", 1, queued(2, "x", task("t")), queued(3, "x", behind))}, want: "1 CLAIMED, 2 FINISHED, 3 CLAIMED"},
		"two without a task are both claimed":                        {lanes: []PassLane{lane("a", 1, queued(1, "x")), lane("b", 1, queued(2, "x"))}, want: "1 CLAIMED, 2 CLAIMED"},
		"of a held agent what is due ends, in its order":             {lanes: []PassLane{with(lane("a", 1, queued(1, "x"), queued(2, "x", behind), queued(3, "y", parked(ParkedReasonBackoff, time.Hour))), held)}, want: "1 FINISHED, 2 FINISHED, 3 QUEUED BACKOFF"},
		"of a deleted agent all that is queued ends":                 {lanes: []PassLane{with(lane("a", 2, queued(1, "x", live), queued(2, "x", behind), queued(3, "y", parked(ParkedReasonBackoff, time.Hour)), queued(4, "z")), deleted)}, want: "1 CLAIMED, 2 FINISHED SCOPE_BUSY, 3 FINISHED BACKOFF, 4 FINISHED"},
		"a budget that is spent ends one, and what is due behind it": {lanes: []PassLane{lane("a", 3, queued(1, "x"), queued(2, "y"))}, ledger: budget(10, 10), want: "1 FINISHED, 2 FINISHED"},
		"a budget with room for one keeps the second waiting":        {lanes: []PassLane{lane("a", 3, queued(1, "x"), queued(2, "y"), queued(3, "z"))}, ledger: budget(10, 0), want: "1 CLAIMED, 2 CLAIMED, 3 QUEUED BUDGET_RESERVED until 12:00:30"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.ledger.Clone()
			p := Foresee(PassFacts{WorkspaceID: "w", Now: now, Lanes: c.lanes, Ledger: c.ledger})
			var got []string
			for _, l := range p.order {
				for _, r := range l.Runs {
					said := strings.TrimPrefix(r.ID, "run_") + " " + strings.TrimSpace(string(r.Status)+" "+string(r.ParkedReason))
					if r.ParkedReason == ParkedReasonBudgetReserved {
						said += " until " + r.ParkedUntil.Format(time.TimeOnly)
					}
					if ended := r.Status == RunStatusFinished; ended && !l.taken[r.ID] {
						said += ", which the pass did not do"
					}
					got = append(got, said)
				}
			}
			slices.Sort(got)
			if all := strings.Join(got, ", "); all != c.want {
				t.Errorf("%s, want %s", all, c.want)
			}
			if len(c.ledger.Budgets) > 0 && c.ledger.Budgets[0].Reserved != before.Budgets[0].Reserved {
				t.Error("the pass that is foreseen reserved of the budget that is read")
			}
		})
	}
}
