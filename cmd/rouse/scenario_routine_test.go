package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fire is a record of the fire ledger.
type fire struct {
	ID, Status, Source string
	SkipReason         *string
	MissedTicks        int
	MissedSince        *time.Time
	ScheduledFor       *time.Time
	Task               *struct{ ID, Title string }
	WakeupRequest      *wakeView
}

// ledger is a routine's fires, newest first.
func (o office) ledger(routine string) (list []fire) {
	o.t.Helper()
	var out struct {
		Routine struct {
			Runs struct{ Edges []struct{ Node fire } }
		}
	}
	o.request(`query($id: ID!) { routine(id: $id) { runs(first: 100) { edges { node { id status source skipReason missedTicks missedSince scheduledFor
		task { id title } wakeupRequest { id status endReason run { id } } } } } } }`, map[string]any{"id": routine}, &out)
	for _, e := range out.Routine.Runs.Edges {
		list = append(list, e.Node)
	}
	return list
}

// awaitFires waits for n fires of a routine and returns them, newest first.
func (o office) awaitFires(routine string, n int) (list []fire) {
	o.t.Helper()
	eventually(o.t, fmt.Sprintf("%d fires", n), patience, func() bool { list = o.ledger(routine); return len(list) >= n })
	return list
}

// fired waits until a routine has fired for a slot and its wake has a run.
func (o office) fired(routine string, slot time.Time) (f fire) {
	o.t.Helper()
	eventually(o.t, "the fire of "+slot.String(), patience, func() bool {
		for _, f = range o.ledger(routine) {
			if f.ScheduledFor != nil && f.ScheduledFor.Equal(slot) && f.WakeupRequest != nil && f.WakeupRequest.Run != nil {
				return true
			}
		}
		return false
	})
	return f
}

// wantFire waits until one fire of a routine has a status.
func (o office) wantFire(routine, id, status string) {
	o.t.Helper()
	eventually(o.t, "the fire is "+status, patience, func() bool {
		return slices.ContainsFunc(o.ledger(routine), func(f fire) bool { return f.ID == id && f.Status == status })
	})
}

// routine makes one.
func (o office) routine(in map[string]any) string {
	o.t.Helper()
	in["workspaceId"] = o.workspace
	var out struct{ Routine struct{ ID string } }
	o.change("createRoutine", "routine { id }", in, &out)
	return out.Routine.ID
}

// each is a schedule trigger.
func each(cron string) map[string]any {
	return map[string]any{"schedule": map[string]any{"cron": cron, "timeZone": "UTC"}}
}

// elapsed puts the schedules of a routine to a slot that has passed, as they are found once the clock has gone past it.
func (o office) elapsed(routine string, slot time.Time) {
	o.t.Helper()
	o.sql(`UPDATE routine_triggers SET next_run_at = $2 WHERE routine_id = $1 AND kind = 'SCHEDULE'`, routine, slot)
}

// tenMinutes is a boundary of five minutes that passed before whatever was made just now: its schedule never fired for it.
func tenMinutes() time.Time { return time.Now().UTC().Truncate(5 * time.Minute).Add(-10 * time.Minute) }

// daily is a schedule that fires once a day, and its newest slot, three hours ago: no other comes while a test is running.
func daily() (trigger map[string]any, slot time.Time) {
	slot = time.Now().UTC().Add(-3 * time.Hour).Truncate(time.Minute)
	return each(fmt.Sprintf("%d %d * * *", slot.Minute(), slot.Hour())), slot
}

// byHand fires a routine.
func (o office) byHand(routine string, variables map[string]any) (f fire) {
	o.t.Helper()
	var out struct{ RoutineRun fire }
	o.change("fireRoutine", "routineRun { id status skipReason task { id title } wakeupRequest { id status run { id } } }", map[string]any{"routineId": routine, "variables": variables}, &out)
	return out.RoutineRun
}

// heartbeatOf is the routine that a coordinator was given.
func (o office) heartbeatOf(agent string) string {
	o.t.Helper()
	var out struct {
		Agent struct {
			Routines struct {
				Edges []struct {
					Node struct {
						ID       string
						Triggers []struct{ Cron string }
					}
				}
			}
		}
	}
	o.request(`query($id: ID!) { agent(id: $id) { routines { edges { node { id triggers { ... on ScheduleTrigger { cron } } } } } } }`, map[string]any{"id": agent}, &out)
	edges := out.Agent.Routines.Edges
	if len(edges) != 1 || len(edges[0].Node.Triggers) != 1 || edges[0].Node.Triggers[0].Cron != "*/5 * * * *" {
		o.t.Fatalf("the coordinator has %+v", edges)
	}
	return edges[0].Node.ID
}

// S6. The summary that is prepended comes from an earlier fire, made by hand. Scopes are named routine:<id> (SPEC S9). The
// boundaries since the slot are due as well, and become one run with it (SPEC S4.5).
func heartbeat(o office) {
	coordinator := o.hire(map[string]any{"name": "lead", "role": "COORDINATOR"})
	routine := o.heartbeatOf(coordinator)
	o.write(coordinator+".result", `{"summary": "The board is quiet, look at Friday's release."}`)
	first := o.byHand(routine, nil).WakeupRequest.Run.ID
	o.wantSeen(coordinator, first, "ROUTINE", "Coordinator heartbeat")
	o.end(first)

	o.write(coordinator+".result", `{"summary": "The release is out."}`)
	slot := tenMinutes()
	o.elapsed(routine, slot)
	f := o.fired(routine, slot)
	run := f.WakeupRequest.Run.ID
	task := o.wantSeen(coordinator, run, "ROUTINE", "look at Friday's release", "its slot is "+slot.Format("2006-01-02T15:04"))
	if f.Source != "CRON" || task != "" {
		o.t.Errorf("the fire is %+v, the run's task %q", f, task)
	}
	o.end(run)
	o.wantFire(routine, f.ID, "DONE")
	var out struct {
		Run     struct{ SummaryInjected string }
		Routine struct {
			ContinuationSummary struct {
				Scope, Content string
			}
		}
	}
	o.request(`query($run: ID!, $routine: ID!) { run(id: $run) { summaryInjected } routine(id: $routine) { continuationSummary { scope content } } }`,
		map[string]any{"run": run, "routine": routine}, &out)
	kept := out.Routine.ContinuationSummary
	if !strings.Contains(out.Run.SummaryInjected, "Friday's release") || kept.Scope != "routine:"+routine || !strings.Contains(kept.Content, "The release is out.") {
		o.t.Errorf("%+v", out)
	}
}

// S10. Whatever hour it is, the newest 09:00 is the slot; its date is in the title.
func heavyRoutine(o office) {
	a := o.worker("Frontend Worker")
	o.hold(a)
	routine := o.routine(map[string]any{"name": "Daily Dep Update", "assigneeId": a, "catchUpPolicy": "SKIP_MISSED", "triggers": []any{each("0 9 * * *")},
		"taskTemplate": map[string]any{"title": "Daily Dep Update - {{date}}", "description": "Renew what is old."}})
	o.elapsed(routine, time.Now().UTC().Add(-9*time.Hour).Truncate(24*time.Hour).Add(9*time.Hour))
	f := o.awaitFires(routine, 1)[0]
	if f.Status != "TASK_CREATED" || f.Task == nil || f.ScheduledFor == nil || f.ScheduledFor.UTC().Format("15:04:05") != "09:00:00" {
		o.t.Fatalf("%+v", f)
	}
	if want := "Daily Dep Update - " + f.ScheduledFor.UTC().Format(time.DateOnly); f.Task.Title != want {
		o.t.Errorf("the task is called %q, want %q", f.Task.Title, want)
	}
	o.wantWake(a, 1, "TASK_ASSIGNED", f.Task.Title, "Renew what is old.", f.Task.ID)
	var out struct {
		Task struct {
			Assignee struct{ ID string }
			Workflow struct{ Kind string }
		}
	}
	o.request(`query($id: ID!) { task(id: $id) { assignee { id } workflow { kind } } }`, map[string]any{"id": f.Task.ID}, &out)
	if out.Task.Assignee.ID != a || out.Task.Workflow.Kind != "ROUTINE" {
		o.t.Errorf("%+v", out)
	}
	o.letGo(a)
	o.wantTask(f.Task.ID, "DONE")
	o.wantFire(routine, f.ID, "DONE")
}

// S11.
func skippedFire(o office) {
	a := o.worker("slow")
	o.hold(a)
	routine := o.routine(map[string]any{"name": "Tidy", "assigneeId": a, "concurrencyPolicy": "SKIP_IF_ACTIVE", "taskTemplate": map[string]any{"title": "Tidy up"}})
	first := o.byHand(routine, nil)
	o.wantWake(a, 1, "TASK_ASSIGNED", "Tidy up")
	if again := o.byHand(routine, nil); first.Task == nil || again.Status != "SKIPPED" || again.SkipReason == nil || *again.SkipReason != "CONCURRENCY_POLICY" || again.Task != nil {
		o.t.Errorf("first %+v, then %+v", first, again)
	}
	var out struct {
		Workspace struct{ Tasks struct{ TotalCount int } }
	}
	o.request(`query($w: ID!) { workspace(id: $w) { tasks { totalCount } } }`, map[string]any{"w": o.workspace}, &out)
	if out.Workspace.Tasks.TotalCount != 1 {
		o.t.Errorf("%d tasks", out.Workspace.Tasks.TotalCount)
	}
	o.letGo(a)
	o.wantTask(first.Task.ID, "DONE")
}

// S12.
func signedWebhook(o office) {
	a := o.worker("builder")
	var made struct {
		Routine struct {
			ID       string
			Triggers []struct{ Path string }
		}
		Secrets []struct{ Secret string }
	}
	o.change("createRoutine", "routine { id triggers { ... on WebhookTrigger { path } } } secrets { secret }", map[string]any{"workspaceId": o.workspace, "name": "Release", "assigneeId": a,
		"taskTemplate": map[string]any{"title": "Build {{branch}}"}, "triggers": []any{map[string]any{"webhook": map[string]any{"signingMode": "HMAC_SHA256"}}}}, &made)
	const body = `{"branch": "release/2.0"}`
	mac := hmac.New(sha256.New, []byte(made.Secrets[0].Secret))
	_, _ = mac.Write([]byte(body)) // a hash takes everything
	for signature, want := range map[string]int{strings.Repeat("0", 64): http.StatusUnauthorized, hex.EncodeToString(mac.Sum(nil)): http.StatusAccepted} {
		req, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, strings.TrimSuffix(o.program.url, "/graphql")+made.Routine.Triggers[0].Path, strings.NewReader(body))
		if err != nil {
			o.t.Fatal(err)
		}
		req.Header.Set("X-Signature-256", "sha256="+signature)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			o.t.Fatal(err)
		}
		var answer struct{ RoutineRunID, Disposition string }
		err = json.NewDecoder(resp.Body).Decode(&answer)
		_ = resp.Body.Close() // it was only read
		if resp.StatusCode != want || want == http.StatusAccepted && (err != nil || answer.Disposition != "TASK_CREATED") {
			o.t.Errorf("%d, %v: %+v", resp.StatusCode, err, answer)
		}
	}
	f := o.awaitFires(made.Routine.ID, 1)
	if len(f) != 1 || f[0].Source != "WEBHOOK" || f[0].Task == nil || f[0].Task.Title != "Build release/2.0" {
		o.t.Fatalf("%+v", f)
	}
	o.wantWake(a, 1, "TASK_ASSIGNED", "Build release/2.0", f[0].Task.ID)
}

// S13. Under COALESCE_IF_ACTIVE the ticks of the cap are recorded one by one and become one run (SPEC S4.5, S13). What is
// over the cap is counted in that run's prompt.
func missedTicks(t *testing.T) {
	o := openOffice(t)
	skipping, catching := o.worker("skipping"), o.worker("catching")
	triggers := []any{each("*/5 * * * *")}
	skip := o.routine(map[string]any{"name": "Skip", "assigneeId": skipping, "catchUpPolicy": "SKIP_MISSED", "triggers": triggers})
	capped := o.routine(map[string]any{"name": "Catch up", "assigneeId": catching, "triggers": triggers})
	down := time.Now().UTC().Truncate(5 * time.Minute).Add(-3 * time.Hour)
	o = o.endAndStart(t, syscall.SIGTERM, func() { o.elapsed(skip, down); o.elapsed(capped, down) })

	// Three hours are 36 ticks, and the one at their beginning is due too; another may come while the test runs.
	o.wantWake(skipping, 1, "ROUTINE", "Skip")
	fires := o.awaitFires(skip, 1)
	if f := fires[len(fires)-1]; f.MissedTicks != 0 || f.ScheduledFor == nil || f.ScheduledFor.Before(down.Add(3*time.Hour)) {
		t.Errorf("the routine that skips fired for %+v", f)
	}
	_, run, prompt := o.awaitWake(catching, 1)
	fires = o.awaitFires(capped, 25)
	missed, coalesced, other := 0, 0, 0
	for _, f := range fires {
		missed += f.MissedTicks
		if f.WakeupRequest != nil && f.WakeupRequest.Run.ID == run {
			coalesced++
		} else {
			other++
		}
	}
	if coalesced < 24 || other > 1 || missed < 12 || missed > 13 {
		t.Errorf("%d fires in the run, %d elsewhere, %d ticks missed", coalesced, other, missed)
	}
	if since := fires[len(fires)-1].MissedSince; since == nil || !since.Equal(down) {
		t.Errorf("the first fire has missed ticks since %v, want %s", since, down)
	}
	if want := fmt.Sprintf("You missed %d ticks since %s", missed, down.Format("2006-01-02T15:04")); !strings.Contains(prompt, want) {
		t.Errorf("%q is not in the prompt:\n%s", want, prompt)
	}
}

// S14. There is no modal here: the API refuses the fire, and its typed error names the variable for a form to ask for.
func requiredVariable(o office) {
	a := o.worker("asked")
	routine := o.routine(map[string]any{"name": "Ask", "assigneeId": a, "description": "Do it because {{reason}}.",
		"variables": []any{map[string]any{"name": "reason", "required": true}}})
	if code, message := o.refused("fireRoutine", map[string]any{"routineId": routine}); code != "UNRESOLVED_VARIABLE" || !strings.Contains(message, "reason") {
		o.t.Errorf("%s: %s", code, message)
	}
	if n := len(o.ledger(routine)); n != 0 {
		o.t.Errorf("%d fires", n)
	}
	o.byHand(routine, map[string]any{"reason": "the demo is tomorrow"})
	o.wantWake(a, 1, "ROUTINE", "Do it because the demo is tomorrow.")
}

// S15.
func idleWorker(o office) {
	a := o.hire(map[string]any{"name": "idle", "skipIdleWakeups": true})
	trigger, slot := daily()
	routine := o.routine(map[string]any{"name": "Look around", "assigneeId": a, "triggers": []any{trigger}})
	o.elapsed(routine, slot)
	f := o.fired(routine, slot)
	o.wantFire(routine, f.ID, "SKIPPED")
	o.wantEnd(f.WakeupRequest.ID, "FINISHED", "IDLE_SKIPPED")
	o.wantActivity(a, "WAKEUP_IDLE_SKIPPED")
	o.wantLog("wakeup_idle_skipped", "agent_id="+a, "run_id="+f.WakeupRequest.Run.ID, "wakeup_id="+f.WakeupRequest.ID, "agent_name=idle", "reason=no_actionable_tasks")
	if run := o.program.run(f.WakeupRequest.Run.ID); run.Outcome != "idle_skipped" || run.SessionID != "" || len(o.woken(a)) != 0 {
		o.t.Errorf("%d launches, %+v", len(o.woken(a)), run)
	}
	o.create(map[string]any{"title": "Real work", "assigneeId": a})
	o.wantWake(a, 1, "TASK_ASSIGNED", "Real work")
}

// S16.
func idleCoordinator(o office) {
	coordinator := o.hire(map[string]any{"name": "lead", "role": "COORDINATOR"})
	var out struct {
		Agent struct {
			SkipIdleWakeups     bool
			ActionableTaskCount int
		}
	}
	o.request(`query($id: ID!) { agent(id: $id) { skipIdleWakeups actionableTaskCount } }`, map[string]any{"id": coordinator}, &out)
	if out.Agent.SkipIdleWakeups || out.Agent.ActionableTaskCount != 0 {
		o.t.Errorf("%+v", out)
	}
	routine := o.heartbeatOf(coordinator)
	slot := tenMinutes()
	o.elapsed(routine, slot)
	f := o.fired(routine, slot)
	o.wantSeen(coordinator, f.WakeupRequest.Run.ID, "ROUTINE", "Coordinator heartbeat")
	o.wantFire(routine, f.ID, "DONE")
}

// S23. A second routine, due behind the deleted one's slot, shows that the tick has gone past it.
func deletedHeartbeat(o office) {
	coordinator, other := o.hire(map[string]any{"name": "lead", "role": "COORDINATOR"}), o.worker("other")
	deleted := o.heartbeatOf(coordinator)
	var out struct{ DeletedRoutineID string }
	o.change("deleteRoutine", "deletedRoutineId", map[string]any{"routineId": deleted}, &out)
	trigger, slot := daily()
	next := o.routine(map[string]any{"name": "Next", "assigneeId": other, "triggers": []any{trigger}})
	o.elapsed(deleted, slot.Add(-5*time.Minute))
	o.elapsed(next, slot)
	o.wantWake(other, 1, "ROUTINE", "Next")
	if wakes := o.wakeups(coordinator); len(wakes) != 0 {
		o.t.Errorf("wakes of the coordinator: %+v", wakes)
	}
	var state struct {
		Agent struct{ HasNoScheduledWakeups bool }
	}
	o.request(`query($id: ID!) { agent(id: $id) { hasNoScheduledWakeups } }`, map[string]any{"id": coordinator}, &state)
	if !state.Agent.HasNoScheduledWakeups {
		o.t.Error("the coordinator does not say that it has no scheduled wake-ups")
	}
	task, _ := o.create(map[string]any{"title": "Plan", "assigneeId": coordinator})
	o.wantWake(coordinator, 1, "TASK_ASSIGNED", "Plan")
	o.comment(task, "how far is it?")
	o.wantWake(coordinator, 2, "COMMENT", "how far is it?")
	o.wake(coordinator)
	o.wantWake(coordinator, 3, "USER", "tester")
}

// S24. What is merged is one routine's: two routines of one agent are two runs (SPEC S3.4, S13). The window delays the run
// instead of looking back, and what the run's wakes said stands in its context when it starts.
func coalescedTriggers(o office) {
	o.settle(map[string]any{"coalescingWindow": "PT2S"})
	coordinator := o.coordinator("lead")
	trigger, slot := daily()
	routine := o.routine(map[string]any{"name": "Twice", "assigneeId": coordinator, "triggers": []any{trigger, trigger}})
	o.elapsed(routine, slot)
	fires := o.awaitFires(routine, 2)
	run := o.wantWake(coordinator, 1, "ROUTINE", "2 causes were merged", "Twice")
	var out struct {
		Run struct {
			CoalescedCount  int
			ContextSnapshot map[string]any
			WakeupRequests  struct{ Edges []struct{ Node wakeView } }
		}
	}
	o.request(`query($id: ID!) { run(id: $id) { coalescedCount contextSnapshot wakeupRequests { edges { node { id status } } } } }`, map[string]any{"id": run}, &out)
	text, err := json.Marshal(out.Run.ContextSnapshot)
	if err != nil {
		o.t.Fatal(err)
	}
	statuses := []string{}
	for _, e := range out.Run.WakeupRequests.Edges {
		statuses = append(statuses, e.Node.Status)
	}
	if out.Run.CoalescedCount != 2 || len(statuses) != 2 || !slices.Contains(statuses, "COALESCED") {
		o.t.Errorf("%d coalesced: %v", out.Run.CoalescedCount, statuses)
	}
	for _, f := range fires {
		if !strings.Contains(string(text), f.ID) {
			o.t.Errorf("fire %s is not in the context %s", f.ID, text)
		}
	}
	o.wantIdle(coordinator)
	if n := len(o.woken(coordinator)); n != 1 {
		o.t.Errorf("%d launches", n)
	}
}
