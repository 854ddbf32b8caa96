package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// budget sets a budget of an agent and returns it; change adjusts it.
func (w *world) budget(agent xid.ID, limit string, change ...func(*UpsertBudget)) xid.ID {
	w.Helper()
	in := UpsertBudget{WorkspaceID: w.workspace, SubjectKind: domain.BudgetSubjectKindAgent, SubjectID: agent, LimitUSD: limit,
		Period: domain.BudgetPeriodMonth, Thresholds: []int{80, 100}, OnExceed: domain.BudgetActionPauseAgent}
	for _, f := range change {
		f(&in)
	}
	id, _, err := w.UpsertBudget(w.Context(), in)
	return must(w, id, err)
}

func notifyOnly(b *UpsertBudget) { b.OnExceed = domain.BudgetActionNotify }

// ledger reads a budget's spent, reserved and alerted.
func (w *world) ledger(budget xid.ID) string {
	w.Helper()
	return one[string](w, `SELECT trim_scale(spent_usd) || ' spent, ' || trim_scale(reserved_usd) || ' reserved, ' || alerted_percent || ' told' FROM budget_policies WHERE id = $1`, budget)
}

func (w *world) wantLedger(when string, budget xid.ID, want string) {
	w.Helper()
	if got := w.ledger(budget); got != want {
		w.Errorf("%s: %s, want %s", when, got, want)
	}
}

// costly lets an agent be woken and its run cost something.
func (w *world) costly(agent xid.ID, costUSD string) {
	w.Helper()
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.finishAt(c, costUSD)
}

// projectTask makes a task of a project, assigned to an agent.
func (w *world) projectTask(project, assignee xid.ID) xid.ID {
	w.Helper()
	id := w.bareTask(assignee)
	w.sql(`UPDATE tasks SET project_id = $2 WHERE id = $1`, id, project)
	return id
}

func (w *world) project(name string) xid.ID {
	w.Helper()
	id := xid.New("prj")
	w.sql(`INSERT INTO projects (id, workspace_id, name) VALUES ($1, $2, $3)`, id, w.workspace, name)
	return id
}

// assigned inserts and routes a TASK_ASSIGNED request for a task's assignee.
func (w *world) assigned(agent, task xid.ID) xid.ID {
	w.Helper()
	return w.request(agent, func(r *newRequest) {
		basis := domain.WakeBasisAssignee
		r.source, r.taskID, r.scope, r.basis = domain.WakeupSourceTaskAssigned, task, domain.TaskScope(string(task)), &basis
		r.payload = &domain.TaskPayload{TaskID: string(task), Basis: basis}
	})
}

func TestASpentBudgetHoldsTheAgentUntilItMayGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	other := w.agent("other")
	budget := w.budget(agent, "10")
	w.costly(agent, "10")
	w.wantLedger("after the first run", budget, "10 spent, 0 reserved, 100 told")

	blocked, behind := w.wake(agent), w.request(agent, scoped("task:t1"))
	free := w.wake(other)
	claimed := w.claimOne()
	if claimed.RunID != w.runOf(free) {
		t.Errorf("C224 claimed %s, want only the run of the agent without a budget", claimed.RunID)
	}
	w.wantRequest(blocked, domain.WakeupStatusSkipped)
	w.claim(10) // what is queued of the agent ends when nothing else is to be claimed
	w.wantRequest(behind, domain.WakeupStatusFinished)
	if got := one[string](w, `SELECT outcome || ' ' || end_reason FROM runs WHERE id = $1`, w.runOf(blocked)); got != "budget_blocked BUDGET_BLOCKED" {
		t.Errorf("C89 the run ended %s", got)
	}
	if got := one[string](w, `SELECT status || ' ' || pause_reason FROM agent_lanes WHERE agent_id = $1`, agent); got != "PAUSED BUDGET" {
		t.Errorf("C89 the agent is %s", got)
	}
	for code, n := range map[string]int{"WAKEUP_BUDGET_BLOCKED": 1, "AGENT_PAUSED": 1, "WAKEUP_AGENT_INACTIVE": 1} {
		if got := one[int](w, `SELECT count(*) FROM activities WHERE code = $1`, code); got != n {
			t.Errorf("the feed has %d entries %s, want %d", got, code, n)
		}
	}
	w.sound()

	if n := must(w, first(w.SweepBudgets(t.Context())), nil); n != 0 {
		t.Error("the agent was resumed while its budget is spent")
	}
	w.budget(agent, "11")
	w.wantRequest(blocked, domain.WakeupStatusQueued)
	w.wantRequest(behind, domain.WakeupStatusQueued)
	w.route(agent)
	if got := w.claimOne(); got.AgentID != agent {
		t.Errorf("C314 claimed %+v after the limit was raised", got)
	}
	if got := one[int](w, `SELECT resends FROM wakeup_requests WHERE id = $1`, blocked); got != 1 {
		t.Errorf("the dropped wake was sent again %d times, want once", got)
	}
	w.sound()
}

func TestANewPeriodResumesTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	budget := w.budget(agent, "10")
	w.costly(agent, "12.5")
	dropped := w.wake(agent)
	if got := w.claim(10); len(got) != 0 {
		t.Fatalf("C224 claimed %d runs over budget", len(got))
	}
	w.sql(`UPDATE cost_entries SET created_at = created_at - interval '2 months'`)
	w.sql(`UPDATE budget_policies SET period_start = date_trunc('month', now() - interval '2 months', 'UTC'), updated_at = now() - interval '2 months'`)
	if n := must(w, first(w.SweepBudgets(t.Context())), nil); n != 1 {
		t.Errorf("C314 %d agents were resumed in the new period, want 1", n)
	}
	w.wantLedger("C314 in the new period", budget, "0 spent, 0 reserved, 0 told")
	w.wantRequest(dropped, domain.WakeupStatusQueued)
	w.route(agent)
	w.claimOne()
	w.sound()
}

func TestAPauseEndsWithItsBudgetAndNotWithAPersonsPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, theirs := w.agent("mine"), w.agent("theirs")
	budget := w.budget("", "1", func(b *UpsertBudget) {
		b.SubjectKind, b.SubjectID = domain.BudgetSubjectKindWorkspace, w.workspace
	})
	w.costly(mine, "1")
	w.wake(mine)
	w.wake(theirs)
	w.claim(10)
	w.ok(w.PauseAgent(t.Context(), HoldAgent{WorkspaceID: w.workspace, AgentID: theirs}))
	w.ok(w.DeleteBudget(t.Context(), w.workspace, budget))
	for agent, want := range map[xid.ID]string{mine: "IDLE", theirs: "PAUSED"} {
		if got := one[string](w, `SELECT status FROM agent_lanes WHERE agent_id = $1`, agent); got != want {
			t.Errorf("once the budget was gone, the agent is %s, want %s", got, want)
		}
	}
	wantUserError(t, w.DeleteBudget(t.Context(), w.workspace, budget), domain.UserErrorCodeNotFound)
	w.sound()
}

func TestABudgetThatOnlyTellsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	budget := w.budget(agent, "1", notifyOnly)
	w.costly(agent, "5")
	w.costly(agent, "5")
	w.wantLedger("C89", budget, "10 spent, 0 reserved, 100 told")
}

func TestLiveRunsReserveWhatTheyWillCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker", func(a *CreateAgent) { a.MaxConcurrentSessions = 5 })
	budget := w.budget(agent, "10")
	w.costly(agent, "3")
	w.costly(agent, "1")
	var requests []xid.ID
	for _, scope := range []string{"task:1", "task:2", "task:3", "task:4", "task:5"} {
		requests = append(requests, w.request(agent, scoped(scope)))
	}
	claimed := w.claim(10) // 4 spent, each holds the mean 2: the fourth finds 4 + 6 reached
	if len(claimed) != 3 {
		t.Fatalf("claimed %d runs, want 3", len(claimed))
	}
	w.wantLedger("with three live runs", budget, "4 spent, 6 reserved, 0 told")
	for _, id := range requests[3:] {
		w.wantRun(w.runOf(id), domain.RunStatusQueued, domain.ParkedReasonBudgetReserved)
	}
	until := one[time.Time](w, `SELECT parked_until FROM runs WHERE id = $1`, w.runOf(requests[3]))
	if left := until.Sub(one[time.Time](w, `SELECT clock_timestamp()`)); left > domain.BudgetRetry || left < 0 {
		t.Errorf("the run is parked for %s, want 30 s from its guard", left)
	}
	w.sound()

	w.start(claimed[0])
	w.finishAt(claimed[0], "0.5")
	w.wantLedger("one cost less", budget, "4.5 spent, 4 reserved, 0 told")
	w.ok(w.HandBack(t.Context(), claimed[1].Attempt, Unfinished{}))
	w.wantLedger("one was handed back", budget, "4.5 spent, 2 reserved, 0 told")
	w.start(claimed[2])
	w.ok(w.Fail(t.Context(), claimed[2].Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "killed"}))
	w.wantLedger("one failed", budget, "4.5 spent, 0 reserved, 0 told")
	if got := one[string](w, `SELECT string_agg(status::text, ' ' ORDER BY status) FROM budget_holds WHERE amount_usd > 0`); got != "SETTLED SETTLED SETTLED VOID VOID" {
		t.Errorf("the holds are %s", got)
	}
	if got := w.claim(10); len(got) != 3 {
		t.Errorf("claimed %d runs once the holds were gone, want the handed back one and, without their half minute, the parked two", len(got))
	}
	w.sound()
}

// TestARunOfUnknownCostGoesAlone: nobody knows what the first run of a workspace will cost, so that it holds all that is left
// of a budget; one of a new agent is expected to cost what the workspace's last attempts did.
func TestARunOfUnknownCostGoesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.agent("first", func(a *CreateAgent) { a.MaxConcurrentSessions = 3 })
	second := w.agent("second", func(a *CreateAgent) { a.MaxConcurrentSessions = 3 })
	budget := w.budget("", "10", ofWorkspace(w))
	told := w.budget(second, "1", notifyOnly)
	for _, scope := range []string{"task:1", "task:2", "task:3"} {
		w.request(first, scoped(scope))
		w.request(second, scoped(scope))
	}
	alone := w.claim(10)
	if len(alone) != 1 {
		t.Fatalf("claimed %d runs of which nobody knows what they cost, want one at a time", len(alone))
	}
	w.wantLedger("while the first run is live", budget, "0 spent, 10 reserved, 0 told")
	w.sound()
	w.start(alone[0])
	w.finishAt(alone[0], "3")
	if got := w.claim(10); len(got) != 3 {
		t.Errorf("claimed %d runs, want 3: 3 spent, each holds 3", len(got))
	}
	w.wantLedger("once it is known", budget, "3 spent, 9 reserved, 0 told")
	if got := one[string](w, `SELECT trim_scale(reserved_usd) || '' FROM budget_policies WHERE id = $1`, told); got != "6" && got != "3" && got != "0" {
		t.Errorf("the budget that only tells holds %s", got)
	}
	w.sound()
}

// TestACostThatCannotBeReadIsWhatWasReserved: it is charged and told, however the attempt ends.
func TestACostThatCannotBeReadIsWhatWasReserved(t *testing.T) {
	t.Parallel()
	said := &Usage{InputTokens: 3, CostUnread: true, Unread: `usage.cost_usd "five" is no number`}
	for name, end := range map[string]func(*world, Attempt) error{
		"finished": func(w *world, a Attempt) error { return w.Finish(w.Context(), a, Success{Usage: said}) },
		"failed": func(w *world, a Attempt) error {
			return w.Fail(w.Context(), a, Failure{Code: domain.RunErrorCodeOther, Message: "no", Usage: said})
		},
		"gave up": func(w *world, a Attempt) error {
			return w.Fail(w.Context(), a, Failure{Code: domain.RunErrorCodeOther, Message: "no", Permanent: true, Usage: said})
		},
		"cancelled":   func(w *world, a Attempt) error { return w.Cancelled(w.Context(), a, Unfinished{Usage: said}) },
		"handed back": func(w *world, a Attempt) error { return w.HandBack(w.Context(), a, Unfinished{Usage: said}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker")
			budget, wide := w.budget(agent, "10"), w.budget("", "100", ofWorkspace(w))
			w.costly(agent, "2")
			w.wake(agent)
			c := w.claimOne()
			w.start(c)
			w.ok(end(w, c.Attempt))
			w.wantLedger("the agent's budget", budget, "4 spent, 0 reserved, 0 told")
			w.wantLedger("the workspace's budget", wide, "4 spent, 0 reserved, 0 told")
			if got := one[string](w, `SELECT data->>'unreadUsage' || ' ' || (data->>'chargedUsd')::numeric::text FROM run_events WHERE run_id = $1 ORDER BY seq DESC LIMIT 1`, c.RunID); got != said.Unread+" 2.000000" {
				t.Errorf("the last event tells %s", got)
			}
			w.sound()
		})
	}
}

// TestAFirstCostThatCannotBeReadSpendsTheTightestBudget: it held all of each, and is charged with no more than that was of any.
func TestAFirstCostThatCannotBeReadSpendsTheTightestBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	tight, wide := w.budget(agent, "10"), w.budget("", "100", ofWorkspace(w))
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.ok(w.Finish(t.Context(), c.Attempt, Success{Usage: &Usage{CostUnread: true, Unread: "cost is no number"}}))
	w.wantLedger("the tight one", tight, "10 spent, 0 reserved, 100 told")
	w.wantLedger("the wide one", wide, "10 spent, 0 reserved, 0 told")
	blocked := w.wake(agent)
	if got := w.claim(10); len(got) != 0 {
		t.Errorf("claimed %d runs on a spent budget", len(got))
	}
	w.wantRequest(blocked, domain.WakeupStatusSkipped)
	w.sound()
}

// TestACostThatCannotBeReadIsToldWithoutABudget: nothing was reserved, so that nothing is charged.
func TestACostThatCannotBeReadIsToldWithoutABudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.ok(w.Finish(t.Context(), c.Attempt, Success{Usage: &Usage{OutputTokens: 2, CostUnread: true, Unread: "cost is no number"}}))
	if got := one[string](w, `SELECT (data->>'unreadUsage') || ' ' || (data ? 'chargedUsd')::text FROM run_events WHERE run_id = $1 ORDER BY seq DESC LIMIT 1`, c.RunID); got != "cost is no number false" {
		t.Errorf("the last event tells %s", got)
	}
	if got := one[bool](w, `SELECT cost_usd IS NULL AND output_tokens = 2 FROM runs WHERE id = $1`, c.RunID); !got {
		t.Error("the run has a cost, or no tokens")
	}
	w.sound()
}

// ofWorkspace makes a budget one of the whole workspace.
func ofWorkspace(w *world) func(*UpsertBudget) {
	return func(b *UpsertBudget) { b.SubjectKind, b.SubjectID = domain.BudgetSubjectKindWorkspace, w.workspace }
}

// TestWhatWaitsForABudgetLooksAgainAtOnce: a raised limit, a budget that only tells from now on and one that is gone end the
// half minute of runs that waited for it; others' go on.
func TestWhatWaitsForABudgetLooksAgainAtOnce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, agent, budget xid.ID){
		"a raised limit":       func(w *world, agent, _ xid.ID) { w.budget(agent, "20") },
		"a budget that tells":  func(w *world, agent, _ xid.ID) { w.budget(agent, "4", notifyOnly) },
		"a deleted budget":     func(w *world, _, budget xid.ID) { w.ok(w.DeleteBudget(w.Context(), w.workspace, budget)) },
		"a project's own room": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker", func(a *CreateAgent) { a.MaxConcurrentSessions = 3 })
			budget := w.budget(agent, "4")
			w.costly(agent, "2")
			w.request(agent, scoped("task:1"))
			parked := w.request(agent, scoped("task:2"))
			if got := w.claim(10); len(got) != 1 {
				t.Fatalf("claimed %d runs, want 1", len(got))
			}
			w.wantRun(w.runOf(parked), domain.RunStatusQueued, domain.ParkedReasonBudgetReserved)
			if change == nil { // another budget's room is nothing to it
				project := w.project("elsewhere")
				id, _, err := w.UpsertBudget(t.Context(), UpsertBudget{WorkspaceID: w.workspace, SubjectKind: domain.BudgetSubjectKindProject, SubjectID: project,
					LimitUSD: "1", Period: domain.BudgetPeriodMonth, OnExceed: domain.BudgetActionPauseAgent})
				w.ok(err)
				w.ok(w.DeleteBudget(t.Context(), w.workspace, id))
				if got := w.claim(10); len(got) != 0 {
					t.Errorf("claimed %d runs when another budget went", len(got))
				}
				return
			}
			change(w, agent, budget)
			if got := w.claim(10); len(got) != 1 || got[0].RunID != w.runOf(parked) {
				t.Errorf("claimed %+v, want the run that waited for the budget", got)
			}
			w.sound()
		})
	}
}

// Whoever makes room in a budget hears which runs look again by that, and the feed tells of them; so it does when a new period makes
// the room.
func TestTheRunsThatRoomInABudgetMakesDueAreNamed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, agent, budget xid.ID) []xid.ID{
		"created raised": func(w *world, agent, _ xid.ID) []xid.ID {
			_, caused, err := w.UpsertBudget(w.Context(), UpsertBudget{WorkspaceID: w.workspace, SubjectKind: domain.BudgetSubjectKindAgent, SubjectID: agent,
				LimitUSD: "20", Period: domain.BudgetPeriodMonth, OnExceed: domain.BudgetActionPauseAgent})
			w.ok(err)
			return caused.Due
		},
		"deleted": func(w *world, _, budget xid.ID) []xid.ID {
			caused, err := w.Store.DeleteBudget(w.Context(), w.workspace, budget)
			w.ok(err)
			return caused.Due
		},
		"renewed": func(w *world, _, _ xid.ID) []xid.ID {
			w.sql(`UPDATE cost_entries SET created_at = created_at - interval '2 months'`)
			w.sql(`UPDATE budget_policies SET period_start = date_trunc('month', now() - interval '2 months', 'UTC'), updated_at = now() - interval '2 months'`)
			_, err := w.SweepBudgets(w.Context())
			w.ok(err)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker", func(a *CreateAgent) { a.MaxConcurrentSessions = 3 })
			budget := w.budget(agent, "4")
			w.costly(agent, "2")
			w.request(agent, scoped("task:1"))
			parked := w.request(agent, scoped("task:2"))
			w.claim(10)
			run := w.runOf(parked)
			w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonBudgetReserved)
			if due := change(w, agent, budget); name != "renewed" && !slices.Equal(due, []xid.ID{run}) {
				t.Errorf("named are %v, want %s", due, run)
			}
			const told = `SELECT string_agg((data->>'runsDue') || ' ' || (data->>'dueRunIds'), ',') FROM activities WHERE code = 'BUDGET_CHANGED' AND data ? 'runsDue' AND data ? $1`
			if got, want := one[string](w, told, strings.Fields(name)[0]), fmt.Sprintf("1 [%q]", run); got != want {
				t.Errorf("the feed says %s, want %s", got, want)
			}
			w.sound()
		})
	}
}

// TestOnlyBudgetsOfDueProjectsAreLocked: a claim waits for no budget of a project that none of its runs is about.
func TestOnlyBudgetsOfDueProjectsAreLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker", func(a *CreateAgent) { a.MaxConcurrentSessions = 3 })
	near, far := w.project("near"), w.project("far")
	budgets := map[xid.ID]xid.ID{}
	for _, project := range []xid.ID{near, far} {
		id, _, err := w.UpsertBudget(t.Context(), UpsertBudget{WorkspaceID: w.workspace, SubjectKind: domain.BudgetSubjectKindProject, SubjectID: project,
			LimitUSD: "5", Period: domain.BudgetPeriodMonth, OnExceed: domain.BudgetActionPauseAgent})
		budgets[project] = must(w, id, err)
	}
	w.assigned(agent, w.projectTask(near, agent))
	held, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	_, err = held.ExecContext(t.Context(), `SELECT 1 FROM budget_policies WHERE id = $1 FOR UPDATE`, budgets[far])
	w.ok(err)
	if got := w.claim(10); len(got) != 1 {
		t.Errorf("claimed %d runs while the budget of another project is locked, want 1", len(got))
	}
	w.wantLedger("of the project that is charged", budgets[near], "0 spent, 5 reserved, 0 told")
	w.ok(held.Rollback())
	w.sound()
}

// TestACoordinatorHearsOfAThresholdThatAPersonSetsBelowWhatIsSpent: nobody in particular crossed it.
func TestACoordinatorHearsOfAThresholdThatAPersonSetsBelowWhatIsSpent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	boss := w.agent("boss", func(a *CreateAgent) { a.Role = domain.AgentRoleCoordinator })
	w.costly(agent, "9")
	w.budget("", "10", ofWorkspace(w))
	if got := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE agent_id = $1 AND source = 'BUDGET_ALERT'`, boss); got != 1 {
		t.Errorf("the coordinator was told %d times, want once", got)
	}
	w.route(boss)
	w.start(w.claimOne())
}

func TestThresholdsAreToldOncePerPeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	boss := w.agent("boss", func(a *CreateAgent) { a.Role = domain.AgentRoleCoordinator })
	budget := w.budget(agent, "1000", notifyOnly)
	told := func() string {
		t.Helper()
		return one[string](w, `SELECT coalesce(string_agg(split_part(idempotency_key, ':', 4), ' ' ORDER BY requested_at), '') FROM wakeup_requests
WHERE source = 'BUDGET_ALERT' AND agent_id = $1`, boss)
	}
	for _, c := range []struct{ costs, told string }{{"799", ""}, {"1", "80"}, {"199", "80"}, {"1", "80 100"}, {"500", "80 100"}} {
		w.wake(agent)
		w.ok(w.inTx(t.Context(), func(x *tx) error { _, err := x.lockLane(t.Context(), agent); return err }))
		claimed := w.claim(1)
		for len(claimed) == 1 && claimed[0].AgentID != agent { // the boss is woken too
			w.start(claimed[0])
			w.finish(claimed[0])
			claimed = w.claim(1)
		}
		if len(claimed) != 1 {
			t.Fatalf("claimed %d runs", len(claimed))
		}
		w.start(claimed[0])
		w.finishAt(claimed[0], c.costs)
		if got := told(); got != c.told {
			t.Errorf("C88 after %s the boss was told of %q, want %q", w.ledger(budget), got, c.told)
		}
	}
	if got := one[int](w, `SELECT count(*) FROM inbox_items WHERE kind = 'BUDGET_ALERT'`); got != 2 {
		t.Errorf("%d inbox items, want 2", got)
	}
	if got := one[int](w, `SELECT count(*) FROM activities WHERE code = 'BUDGET_THRESHOLD'`); got != 2 {
		t.Errorf("%d entries in the feed, want 2", got)
	}
	w.sql(`UPDATE inbox_items SET resolved_at = now()`)
	w.budget(agent, "2000", notifyOnly)
	w.budget(agent, "1000", notifyOnly)
	if got := told(); got != "80 100" {
		t.Errorf("C90 a limit that was raised and lowered again told once more: %q", got)
	}
	w.sql(`UPDATE budget_policies SET period_start = period_start - interval '1 month', updated_at = now() - interval '1 hour'`)
	w.sql(`UPDATE cost_entries SET created_at = created_at - interval '1 month'`)
	w.sql(`UPDATE wakeup_requests SET idempotency_key = regexp_replace(idempotency_key, ':\d{4}-\d\d-01:', ':the month before:')`)
	w.route(boss)
	for _, c := range w.claim(10) {
		w.start(c)
		w.finish(c)
	}
	w.costly(agent, "850")
	if got := told(); got != "80 100 80" {
		t.Errorf("C90 in the next month the boss was told of %q, want 80 once more", got)
	}
}

func TestTheCoordinatorIsNotToldOfItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := w.agent("boss", func(a *CreateAgent) { a.Role = domain.AgentRoleCoordinator })
	w.budget(boss, "1")
	w.costly(boss, "2")
	if got := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE source = 'BUDGET_ALERT'`); got != 0 {
		t.Errorf("the only coordinator got %d alerts about itself", got)
	}
	if got := one[int](w, `SELECT count(*) FROM inbox_items WHERE kind = 'BUDGET_ALERT'`); got != 2 {
		t.Errorf("%d inbox items, want one for 80 and one for 100", got)
	}
}

func TestAProjectsBudgetHoldsWhoWorksForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	project, elsewhere := w.project("dear"), w.project("free")
	budget := w.budget("", "5", func(b *UpsertBudget) {
		b.SubjectKind, b.SubjectID = domain.BudgetSubjectKindProject, project
	})
	w.assigned(agent, w.projectTask(project, agent))
	c := w.claimOne()
	w.start(c)
	w.finishAt(c, "6")
	w.wantLedger("after a run of the project", budget, "6 spent, 0 reserved, 100 told")
	w.assigned(agent, w.projectTask(elsewhere, agent))
	c = w.claimOne()
	w.start(c)
	w.finishAt(c, "6")
	w.wantLedger("after a run of another project", budget, "6 spent, 0 reserved, 100 told")
	blocked := w.assigned(agent, w.projectTask(project, agent))
	if got := w.claim(10); len(got) != 0 {
		t.Errorf("claimed %d runs of a project whose budget is spent", len(got))
	}
	w.wantRequest(blocked, domain.WakeupStatusSkipped)
	if n := must(w, first(w.SweepBudgets(t.Context())), nil); n != 0 {
		t.Error("the agent was resumed while the project's budget is spent")
	}
	w.sql(`UPDATE tasks SET project_id = $1`, elsewhere)
	if n := must(w, first(w.SweepBudgets(t.Context())), nil); n != 1 {
		t.Error("the agent was not resumed once its task left the project")
	}
	w.wantRequest(blocked, domain.WakeupStatusQueued)
	w.sound()
}

func TestABudgetCountsWhatWasSpentBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.costly(agent, "4")
	w.sql(`UPDATE cost_entries SET created_at = date_trunc('month', now(), 'UTC') - interval '1 second'`)
	w.costly(agent, "3")
	month := w.budget(agent, "3")
	w.wantLedger("a month's budget", month, "3 spent, 0 reserved, 100 told")
	total := w.budget(agent, "100", func(b *UpsertBudget) { b.Period = domain.BudgetPeriodTotal })
	if total != month {
		t.Error("the agent has two budgets")
	}
	w.wantLedger("a budget for ever", total, "7 spent, 0 reserved, 0 told")
	_, _, err := w.UpsertBudget(t.Context(), UpsertBudget{WorkspaceID: w.workspace, SubjectKind: domain.BudgetSubjectKindAgent, SubjectID: agent, LimitUSD: "1",
		Period: domain.BudgetPeriodDay, OnExceed: domain.BudgetActionNotify, ExpectedRevision: pgtx.Ptr(7)})
	wantUserError(t, err, domain.UserErrorCodeConflict)
	for _, subject := range []UpsertBudget{
		{SubjectKind: domain.BudgetSubjectKindAgent, SubjectID: xid.New("agt")}, {SubjectKind: domain.BudgetSubjectKindProject, SubjectID: xid.New("prj")},
	} {
		subject.WorkspaceID, subject.LimitUSD, subject.Period, subject.OnExceed = w.workspace, "1", domain.BudgetPeriodDay, domain.BudgetActionNotify
		_, _, err := w.UpsertBudget(t.Context(), subject)
		wantUserError(t, err, domain.UserErrorCodeNotFound)
	}
}

func TestAnEndThatDidNotSeeTheBudgetIsCountedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	budget := w.budget(agent, "10", notifyOnly)
	w.costly(agent, "4")
	w.sql(`UPDATE budget_policies SET spent_usd = 0, alerted_percent = 0, told_thresholds = '[]'`) // as if the end had begun before the budget was there
	must(w, first(w.SweepBudgets(t.Context())), nil)
	w.wantLedger("after the sweep", budget, "4 spent, 0 reserved, 0 told")
}

func TestABudgetCheckThatFailsHoldsThatRunOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad, good := w.agent("bad"), w.agent("good")
	w.costly(bad, "5")
	w.budget(bad, "5")
	w.sql(`ALTER TABLE agent_lanes ADD CONSTRAINT test_no_pause CHECK (status <> 'PAUSED')`) // the guard cannot do what it decides
	held := w.wake(bad)
	w.wake(good)
	if claimed := w.claimOne(); claimed.AgentID != good {
		t.Errorf("C224 claimed %v, want the run of the agent without a budget", claimed)
	}
	w.wantRun(w.runOf(held), domain.RunStatusQueued, domain.ParkedReasonGuardError)
	w.sound()
	// A run of the same scope that waited for it must not wait for one that waits itself.
	w.sql(`UPDATE runs SET parked_reason = NULL, parked_until = NULL, due_at = clock_timestamp() WHERE id = $1`, w.runOf(held))
	sibling := one[xid.ID](w, `
INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, parked_reason, parked_until, requested_at)
SELECT 'run_sibling', workspace_id, agent_id, 'cau_sibling', scope, 'SELF', 'EVENT', 'QUEUED', 'SCOPE_BUSY', 'infinity', clock_timestamp() FROM runs WHERE id = $1 RETURNING id`, w.runOf(held))
	w.sql(`UPDATE agent_lanes l SET head_at = r.requested_at, head_id = r.id FROM runs r WHERE r.id = $1 AND l.agent_id = r.agent_id`, w.runOf(held))
	if got := w.claim(1); len(got) != 0 {
		t.Errorf("claimed %v", got)
	}
	w.wantRun(w.runOf(held), domain.RunStatusQueued, domain.ParkedReasonGuardError)
	if got := one[string](w, `SELECT coalesce(parked_reason::text, 'due') FROM runs WHERE id = $1`, sibling); got != "due" && got != "GUARD_ERROR" {
		t.Errorf("the other run of the scope is %s", got)
	}
}

// TestBudgetsOfOthersCostNoStatement counts the statements of a claim and a finish.
func TestBudgetsOfOthersCostNoStatement(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	agent := w.agent("worker")
	count := func() int64 {
		t.Helper()
		w.wake(agent)
		before := statements.Load()
		c := w.claimOne()
		w.ok(w.Finish(t.Context(), c.Attempt, Success{Summary: "done"}))
		return statements.Load() - before
	}
	without := count()
	other, err := w.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Other"})
	w.ok(err)
	_, _, err = w.UpsertBudget(t.Context(), UpsertBudget{WorkspaceID: other.ID, SubjectKind: domain.BudgetSubjectKindWorkspace, SubjectID: other.ID, LimitUSD: "1",
		Period: domain.BudgetPeriodDay, OnExceed: domain.BudgetActionPauseAgent})
	w.ok(err)
	if with := count(); with != without || without == 0 {
		t.Errorf("a claim and a finish take %d statements, %d while another workspace has a budget", without, with)
	}
	budget := w.budget(agent, "100")
	t.Logf("statements of a claim and a finish: %d without a budget, %d with one", without, count())
	w.wantLedger("a hold outlived its run", budget, "0 spent, 0 reserved, 0 told")
	w.ok(w.DeleteBudget(t.Context(), w.workspace, budget))
	w.sql(`DELETE FROM budget_policies`)
	before := statements.Load()
	must(w, first(w.SweepBudgets(t.Context())), nil)
	if n := statements.Load() - before; n != 1 {
		t.Errorf("a sweep without budgets takes %d statements, want 1", n)
	}
}

func TestAHoldWithoutALiveRunIsRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	budget := w.budget(agent, "10")
	w.costly(agent, "2")
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.finish(c)
	w.sql(`UPDATE budget_holds SET status = 'HELD' WHERE run_id = $1`, c.RunID)
	w.sql(`UPDATE budget_policies SET reserved_usd = 2`)
	if done := must(w, first(w.Repair(t.Context())), nil); done.Holds != 1 {
		t.Errorf("repaired %+v, want one budget", done)
	}
	w.wantLedger("after the repair", budget, "2 spent, 0 reserved, 0 told")
	w.sound()
	if done := must(w, first(w.Repair(t.Context())), nil); done != (Repairs{}) {
		t.Errorf("a second repair did %+v", done)
	}
}

// A budget that is deleted and made again holds for live runs what it held before: else they could overshoot together with
// what is claimed next.
func TestABudgetThatIsMadeAgainHoldsForLiveRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker", func(a *CreateAgent) { a.MaxConcurrentSessions, a.Cooldown = 3, 0 })
	w.request(agent, scoped("task:0"))
	c := w.claimOne()
	w.start(c)
	w.ok(w.Finish(t.Context(), c.Attempt, Success{Summary: "done", Usage: &Usage{CostUSD: "2"}}))
	set := UpsertBudget{WorkspaceID: w.workspace, SubjectKind: domain.BudgetSubjectKindAgent, SubjectID: agent, LimitUSD: "10", Period: domain.BudgetPeriodTotal,
		Thresholds: []int{80}, OnExceed: domain.BudgetActionPauseAgent}
	id, _, err := w.UpsertBudget(t.Context(), set)
	w.ok(err)
	w.request(agent, scoped("task:1"))
	w.request(agent, scoped("task:2"))
	live := w.claim(10)
	reserved := func() string { return one[string](w, `SELECT trim_scale(reserved_usd)::text FROM budget_policies`) }
	before := reserved()
	w.ok(w.DeleteBudget(t.Context(), w.workspace, id))
	_, _, err = w.UpsertBudget(t.Context(), set)
	w.ok(err)
	if got := reserved(); len(live) != 2 || before != "4" || got != before {
		t.Errorf("%d live runs held %s and hold %s of the budget that was made again", len(live), before, got)
	}
	w.sound()
	for _, c := range live {
		w.start(c)
		w.finish(c)
	}
	if got := reserved(); got != "0" {
		t.Errorf("%s are held once nothing is live", got)
	}
	w.sound()
}

// A project's budget that somebody holds keeps only the lanes whose next run is of that project, not the whole workspace.
func TestAHeldProjectBudgetKeepsOnlyThatProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	far, near := w.agent("far"), w.agent("near")
	project := w.project("held")
	_, _, err := w.UpsertBudget(t.Context(), UpsertBudget{WorkspaceID: w.workspace, SubjectKind: domain.BudgetSubjectKindProject, SubjectID: project, LimitUSD: "1000",
		Period: domain.BudgetPeriodTotal, Thresholds: []int{80}, OnExceed: domain.BudgetActionPauseAgent})
	w.ok(err)
	task := w.task("Build", assignedTo(far))
	w.sql(`UPDATE tasks SET project_id = $2 WHERE id = $1`, task, project)
	w.wake(near)
	holder, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	defer holder.Rollback()
	_, err = holder.ExecContext(t.Context(), `SELECT 1 FROM budget_policies WHERE subject_id = $1 FOR UPDATE`, project)
	w.ok(err)
	done, err := w.claimLanes(t.Context(), claimOrder{owner: w.owner, agents: []xid.ID{far, near}, limit: 5, lease: lease, settles: settlesPerPass})
	w.ok(err)
	if got := agentsOf(done.claimed); len(got) != 1 || got[0] != near {
		t.Errorf("while somebody holds the project's budget a pass claims for %v, want %s", got, near)
	}
	w.ok(holder.Rollback())
	if c := w.claimOne(); c.AgentID != far {
		t.Errorf("once it is free the claim is for %s, want %s", c.AgentID, far)
	}
	w.sound()
}

// A threshold that was set after a higher one had been told is told of by itself; one that was told is not told again in the
// period, however the limit changes.
func TestAThresholdThatWasNeverToldIsToldAfterTheLimitIsRaised(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.agent("boss", func(a *CreateAgent) { a.Role = domain.AgentRoleCoordinator })
	set := func(limit string, thresholds ...int) {
		t.Helper()
		w.budget(agent, limit, func(b *UpsertBudget) { b.Thresholds, b.OnExceed = thresholds, domain.BudgetActionNotify })
	}
	told := func() string {
		t.Helper()
		return one[string](w, `SELECT coalesce(string_agg(data->>'threshold', ' ' ORDER BY occurred_at, id), '') FROM activities WHERE code = 'BUDGET_THRESHOLD'`)
	}
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.ok(w.Finish(t.Context(), c.Attempt, Success{Usage: &Usage{CostUSD: "5"}}))
	set("5", 100)
	if got := told(); got != "100" {
		t.Fatalf("told %q, want 100", got)
	}
	set("10", 50, 100)
	if got := told(); got != "100 50" {
		t.Errorf("after the limit was raised told %q, want 50 as well", got)
	}
	set("5", 50, 100)
	if got := told(); got != "100 50" {
		t.Errorf("after it was lowered again told %q, want each once", got)
	}
}
