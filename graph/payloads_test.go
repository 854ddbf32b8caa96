package graph_test

import (
	"fmt"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// What waits for the next pass alone says so while there is nobody to make one, since when, and what to do.
func TestWithoutASchedulerARunWaitsForOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("idle")
	run := w.wakeRun(agent)
	w.sql(`UPDATE agent_lanes SET eligible_at = '2000-01-01Z'`)
	ask := func() (out struct {
		Hold, Message string
		Since         *time.Time
	}) {
		t.Helper()
		var answer struct {
			Run struct{ Waiting any }
		}
		answer.Run.Waiting = &out
		w.Do(t.Context(), `query($id: ID!) { run(id: $id) { waiting { hold since message } } }`, map[string]any{"id": run}, &answer)
		return out
	}
	if x := ask(); x.Hold != "NONE" || x.Since != nil || x.Message == "" {
		t.Errorf("while a scheduler runs it says %+v", x)
	}
	w.sql(`UPDATE instance_facts SET value = '2026-11-01T08:00:00Z' WHERE name = 'scheduler_seen'`)
	if x := ask(); x.Hold != "NO_SCHEDULER" || x.Since == nil || x.Since.Month() != time.November || x.Message != (domain.Waiting{Hold: domain.QueueHoldNoScheduler, Since: *x.Since}).Message() {
		t.Errorf("once the schedulers are gone it says %+v", x)
	}
	w.ok(w.store.SchedulerRuns(t.Context()))
	if x := ask(); x.Hold != "NONE" {
		t.Errorf("when one is back it says %+v", x)
	}
	w.sql(`DELETE FROM instance_facts WHERE name = 'scheduler_seen'`)
	if x := ask(); x.Hold != "NO_SCHEDULER" || x.Since != nil {
		t.Errorf("where none ever ran it says %+v", x)
	}
	w.sql(`UPDATE agent_lanes SET eligible_at = '2126-01-01Z'`)
	if x := ask(); x.Hold != "AGENT_COOLDOWN" {
		t.Errorf("what else holds it goes before: %+v", x)
	}
}

// Each way in which a fire is dropped names what holds it, or why, and the counters know the reason.
func TestEveryDroppedFireSaysWhy(t *testing.T) {
	t.Parallel()
	type dropped struct {
		Status        string
		SkipReason    *string
		HeldBy        *struct{ ID string }
		CoalescedInto *struct{ ID string }
	}
	for _, kind := range []string{"LIGHTWEIGHT", "HEAVY"} {
		for policy, want := range map[string]string{"SKIP_IF_ACTIVE": "SKIPPED CONCURRENCY_POLICY", "COALESCE_IF_ACTIVE": "COALESCED ", "ALWAYS_ENQUEUE": "SKIPPED BACKLOG_FULL"} {
			t.Run(kind+" "+policy, func(t *testing.T) {
				w := newWorld(t)
				agent := w.agent("Ada")
				input := map[string]any{"concurrencyPolicy": policy, "triggers": []any{scheduled("* * * * *", "UTC")}}
				if kind == "HEAVY" {
					input["taskTemplate"] = map[string]any{"title": "Review"}
				}
				r := w.routine(agent, input)
				fire := func() {
					w.down(r.Triggers[0].ID, 0)
					w.sql(`UPDATE routine_triggers SET last_fired_at = NULL`)
					w.tick()
				}
				fire()
				first := w.heavyFires(r.ID)[0].ID
				w.sql(`UPDATE routine_runs SET fire_key = NULL`)
				w.sql(`UPDATE wakeup_requests SET idempotency_key = NULL`)
				if policy == "ALWAYS_ENQUEUE" {
					w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status)
SELECT 'run_' || n, $1, $2, 'cau', 'taskless' || n, 'USER', 'EVENT', 'QUEUED' FROM generate_series(1, $3) n`, w.workspace, agent, domain.MaxBacklog+1)
				}
				fire()
				var out struct {
					Workspace struct {
						RoutineRuns struct{ Edges []struct{ Node dropped } }
						Counters    struct {
							RoutineRunsSkipped []struct {
								Source, Reason string
								Count          int
							}
						}
						Inbox struct {
							Edges []struct {
								Node struct {
									Kind    string
									Subject *struct{ ID, Name string }
								}
							}
						}
					}
				}
				w.Do(t.Context(), `query($id: ID!) { workspace(id: $id) { routineRuns(first: 1) { edges { node { status skipReason heldBy { id } coalescedInto { id } } } }
  counters { routineRunsSkipped { source reason count } } inbox { edges { node { kind subject { ... on Agent { id name } } } } } } }`, map[string]any{"id": w.workspace}, &out)
				f := out.Workspace.RoutineRuns.Edges[0].Node
				reason := ""
				if f.SkipReason != nil {
					reason = *f.SkipReason
				}
				if got := f.Status + " " + reason; got != want {
					t.Fatalf("the fire is %s, want %s", got, want)
				}
				if policy != "ALWAYS_ENQUEUE" && (f.HeldBy == nil || f.HeldBy.ID != first) || (f.Status == "COALESCED") != (f.CoalescedInto != nil) {
					t.Errorf("it is held by %+v, merged into %+v, want %s", f.HeldBy, f.CoalescedInto, first)
				}
				if got := fmt.Sprint(out.Workspace.Counters.RoutineRunsSkipped); reason != "" && got != "[{CRON "+reason+" 1}]" || reason == "" && got != "[]" {
					t.Errorf("the counters say %s", got)
				}
				if reason != "BACKLOG_FULL" {
					return
				}
				if got := out.Workspace.Inbox.Edges; len(got) != 1 || got[0].Node.Subject == nil || got[0].Node.Subject.ID != agent {
					t.Errorf("the inbox says %+v, want an item about %s", got, agent)
				}
			})
		}
	}
}

// listedWakes are wakes that a payload lists.
type listedWakes []struct {
	ID, Status, Source string
	Resends            int
	Run                *struct{ ID string }
}

const wakeFields = `{ id status source resends run { id } }`

// A move that ends a task lists the wakes that end with it.
func TestTheEndOfATaskListsWhatItCancels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	task := w.newTask("Build", map[string]any{"assigneeId": w.agent("Ada")})
	var out struct {
		MoveTask struct{ WakeupRequests, CancelledWakeups listedWakes }
	}
	input := map[string]any{"taskId": task.Task.ID, "to": "CANCELLED"}
	if e := w.mutate("moveTask", "wakeupRequests "+wakeFields+" cancelledWakeups "+wakeFields, input, &out); e != "" || len(out.MoveTask.CancelledWakeups) != 1 || out.MoveTask.CancelledWakeups[0].Status != "CANCELLED" {
		t.Errorf("%q %+v", e, out)
	}
}

// A change of a budget lists the alerts that it sends, the agents that it resumes, and what they are sent again.
func TestABudgetListsWhatItResumesAndSendsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	boss := w.createAgent("Boss", map[string]any{"role": "COORDINATOR"})
	w.spent(agent, "2")
	type answer struct {
		WakeupRequests     listedWakes
		WakeupRequestCount int
		ResumedAgents      []struct{ ID, Status string }
	}
	const fields = "wakeupRequests " + wakeFields + " wakeupRequestCount resumedAgents { id status }"
	var out struct{ UpsertBudget, DeleteBudget answer }
	set := func(limit string) {
		t.Helper()
		out.UpsertBudget = answer{}
		input := map[string]any{"subject": map[string]any{"agentId": agent}, "limitUsd": limit, "alertThresholds": []int{100}}
		if e := w.mutate("upsertBudget", fields, input, &out); e != "" {
			t.Fatal(e)
		}
	}
	set("1")
	if x := out.UpsertBudget; boss.CreateAgent.Agent == nil || len(x.WakeupRequests) != 1 || x.WakeupRequests[0].Source != "BUDGET_ALERT" || x.WakeupRequests[0].Run == nil || x.WakeupRequestCount != 1 {
		t.Errorf("a threshold that is reached already: %+v", x)
	}
	block := func() {
		t.Helper()
		w.wake(agent)
		w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = '2126-01-01Z' WHERE agent_id <> $1`, agent)
		w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL WHERE agent_id <> $1`, agent)
		if _, err := w.store.Claim(t.Context(), store.Owner{ID: xid.New("prc")}, 1, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	block()
	set("10")
	x := out.UpsertBudget
	if len(x.ResumedAgents) != 1 || len(x.WakeupRequests) != 1 {
		t.Fatalf("a raised limit: %+v", x)
	}
	compare(t, "a raised limit",
		is("resumed agent", x.ResumedAgents[0].ID, agent),
		is("status of the agent", x.ResumedAgents[0].Status, "IDLE"),
		is("wakeupRequestCount", x.WakeupRequestCount, 1),
		is("resends of the request", x.WakeupRequests[0].Resends, 1),
		holds("the request has a run", x.WakeupRequests[0].Run != nil))
	set("1")
	w.sql(`UPDATE runs SET status = 'CANCELLED', finished_at = clock_timestamp() WHERE agent_id = $1 AND status = 'QUEUED'`, agent)
	block()
	if e := w.mutate("deleteBudget", fields, map[string]any{"budgetId": w.one(`SELECT id FROM budget_policies`)}, &out); e != "" || len(out.DeleteBudget.ResumedAgents) != 1 || len(out.DeleteBudget.WakeupRequests) == 0 {
		t.Errorf("a deleted budget: %q %+v", e, out.DeleteBudget)
	}
}

// A change of a budget and of an executor lists the runs that are due by it.
func TestAChangeListsTheRunsThatItMakesDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type due struct {
		DueRuns     []struct{ ID string }
		DueRunCount int
	}
	puller := w.pullAgent()
	run := w.wake(puller)
	if _, err := w.store.Claim(t.Context(), store.Owner{ID: xid.New("prc")}, 5, time.Minute); err != nil {
		t.Fatal(err)
	}
	var out map[string]due
	if e := w.mutate("updateAgent", "dueRuns { id } dueRunCount", map[string]any{"agentId": puller, "executor": map[string]any{"echo": map[string]any{}}}, &out); e != "" {
		t.Fatal(e)
	}
	if got := out["updateAgent"]; got.DueRunCount != 1 || len(got.DueRuns) != 1 || got.DueRuns[0].ID != run {
		t.Errorf("an executor of another kind: %+v, want %s", got, run)
	}
	w.sql(`UPDATE runs SET parked_reason = 'BUDGET_RESERVED', parked_until = '2126-01-01Z'`)
	w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL`)
	for _, limit := range []string{"1", "10"} {
		if limit == "1" {
			w.sql(`INSERT INTO cost_entries (id, workspace_id, causation_id, agent_id, run_id, attempt, cost_usd, input_tokens, output_tokens) SELECT 'cst_1', workspace_id, causation_id, agent_id, id, 1, 2, 0, 0 FROM runs`)
		}
		if e := w.mutate("upsertBudget", "dueRuns { id }", map[string]any{"subject": map[string]any{"agentId": puller}, "limitUsd": limit}, &out); e != "" {
			t.Fatal(e)
		}
		if got, want := len(out["upsertBudget"].DueRuns), map[string]int{"1": 0, "10": 1}[limit]; got != want {
			t.Errorf("a limit of %s makes %d runs due, want %d", limit, got, want)
		}
	}
}

// The slots that were due before a trigger's change are listed with it.
func TestATriggersChangeListsTheSlotsThatWereDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), map[string]any{"triggers": []any{scheduled("* * * * *", "UTC")}})
	w.down(r.Triggers[0].ID, 2*time.Minute)
	var out struct {
		UpdateTrigger struct{ WakeupRequests listedWakes }
	}
	change := func(cron string) listedWakes {
		t.Helper()
		if e := w.mutate("updateTrigger", "wakeupRequests "+wakeFields, map[string]any{"triggerId": r.Triggers[0].ID, "cron": cron}, &out); e != "" {
			t.Fatal(e)
		}
		return out.UpdateTrigger.WakeupRequests
	}
	if got := change("0 0 1 1 *"); len(got) != 3 || got[0].Run == nil {
		t.Errorf("three slots were due, and the answer lists %+v", got)
	}
	if got := change("0 0 2 1 *"); len(got) != 0 {
		t.Errorf("nothing was due, and the answer lists %+v", got)
	}
}

// A run that waits for a worker lets go of its task when it is cancelled, or its agent removed: what waited for the task is
// sent again, and listed.
func TestWhatLetsGoOfATaskListsWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, act := range []string{"cancelRun", "deleteAgent"} {
		t.Run(act, func(t *testing.T) {
			w := newWorld(t)
			puller := w.pullAgent()
			task := w.newTask("Build", map[string]any{"assigneeId": puller}).Task.ID
			if _, err := w.store.Claim(t.Context(), store.Owner{ID: xid.New("prc")}, 5, time.Minute); err != nil {
				t.Fatal(err)
			}
			offered := w.one(`SELECT id FROM runs WHERE status = 'CLAIMED'`)
			if e := w.mutate("queueRun", "wakeupRequest { id }", map[string]any{"taskId": task, "agentId": w.agent("Ada")}, nil); e != "" {
				t.Fatal(e)
			}
			if _, err := w.store.Claim(t.Context(), store.Owner{ID: xid.New("prc")}, 5, time.Minute); err != nil {
				t.Fatal(err)
			}
			held := w.one(`SELECT id FROM wakeup_requests WHERE end_reason = 'CHECKOUT_HELD'`)
			var out map[string]struct{ WakeupRequests listedWakes }
			input := map[string]map[string]any{"cancelRun": {"runId": offered}, "deleteAgent": {"agentId": puller}}[act]
			if e := w.mutate(act, "wakeupRequests "+wakeFields, input, &out); e != "" {
				t.Fatal(e)
			}
			if got := out[act].WakeupRequests; len(got) != 1 || got[0].ID != held || got[0].Resends != 1 || got[0].Run == nil {
				t.Errorf("it lists %+v, want %s with a run", got, held)
			}
		})
	}
}
