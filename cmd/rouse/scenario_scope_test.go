package main

import (
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
)

// adopt makes a workflow the office's: from now on the loop may act on its tasks, which were assigned before.
func (o office) adopt(workflow string) {
	o.t.Helper()
	o.settle(map[string]any{"officeWorkflowId": workflow})
}

// sweep asks for a sweep of recovery: what it returns waits until one has ended that looked at everything made so far. It
// makes a task that was never started, newest of all and in a workspace of its own, and the wait is for its dispatch: tasks
// are looked at in the order they were made in. The wait asks the program that the given office is on.
func (o office) sweep() (wait func(o office)) {
	o.t.Helper()
	marker := o.another(o.t)
	board, a := marker.board("Marked"), marker.worker("marker")
	task, _ := marker.create(map[string]any{"title": "Marker", "workflowId": board, "assigneeId": a})
	marker.adopt(board)
	return func(o office) {
		o.t.Helper()
		o.workspace = marker.workspace
		o.wantActivity(task, "RECOVERY_DISPATCH")
	}
}

// wantUntouched holds a task in TODO against a wake or a run of its agent.
func (o office) wantUntouched(task, agent string) {
	o.t.Helper()
	o.wantTask(task, "TODO")
	if wakes := o.wakeups(agent); len(wakes) != 0 || len(o.woken(agent)) != 0 {
		o.t.Errorf("%d launches, wakes %+v", len(o.woken(agent)), wakes)
	}
}

// S2. The workspace has no office workflow at all.
func kanbanOnly(o office) {
	o.settle(map[string]any{"officeWorkflowId": nil})
	a := o.worker("runner")
	task, made := o.create(map[string]any{"title": "Card", "workflowId": o.board("Board"), "assigneeId": a})
	if n := len(made.WakeupRequests); n != 0 {
		o.t.Errorf("%d wakes", n)
	}
	o.sweep()(o)
	o.wantUntouched(task, a)
}

// R3. All that would wake an assignee of an office task happens to a card, whose workspace has an office.
func kanbanBesideOffice(o office) {
	a, b := o.worker("runner"), o.worker("other runner")
	board := o.board("Board")
	card, made := o.create(map[string]any{"title": "Card", "workflowId": board, "assigneeId": b})
	blocker, _ := o.create(map[string]any{"title": "Blocker", "workflowId": board})
	var blocked taskPayload
	o.change("setTaskBlockers", "task { id } "+wakeFields, map[string]any{"taskId": card, "blockedByIds": []string{blocker}}, &blocked)
	for what, caused := range map[string]taskPayload{
		"made": made, "blocked": blocked, "unblocked": o.move(blocker, "DONE"), "begun": o.move(card, "IN_PROGRESS"), "back": o.move(card, "TODO"),
		"commented": o.comment(card, "hello"), "assigned": o.assignTo(card, a),
	} {
		if n := len(caused.WakeupRequests); n != 0 {
			o.t.Errorf("%s: %d wakes", what, n)
		}
	}
	o.sweep()(o)
	o.wantUntouched(card, a)
	if wakes := o.wakeups(b); len(wakes) != 0 {
		o.t.Errorf("wakes of the former runner: %+v", wakes)
	}
}

// R4. It was assigned before the loop might act on it, so no event told the loop of it. A sweep comes with each start.
func unstartedTask(t *testing.T) {
	o := openOffice(t)
	board, a := o.board("Soon the office's"), o.worker("assigned")
	task, made := o.create(map[string]any{"title": "Forgotten", "workflowId": board, "assigneeId": a})
	if len(made.WakeupRequests) != 0 {
		t.Errorf("wakes %+v", made.WakeupRequests)
	}
	o.adopt(board)
	o = o.endAndStart(t, syscall.SIGTERM, func() {})
	o.wantWake(a, 1, "TASK_ASSIGNED", "Forgotten", task)
	o.wantIdle(a)
	o.wantTask(task, "TODO")
	swept := o.sweep() // once more, over a task that is still in TODO
	o = o.endAndStart(t, syscall.SIGTERM, func() {})
	swept(o)
	wakes := o.wakeups(a)
	if len(wakes) != 1 || !wakes[0].Recovered || wakes[0].Source != "TASK_ASSIGNED" || len(o.woken(a)) != 1 || o.activities(task, "RECOVERY_DISPATCH") != 1 {
		t.Errorf("%d launches, %+v", len(o.woken(a)), wakes)
	}
}

// S21. Beyond the source, runs that a guard ended do not count as finished, and what a person cancelled stays (SPEC S8.5).
func recoverySweep(o office) {
	board, kanban := o.board("Soon the office's"), o.board("Board")
	o.settle(map[string]any{"recoveryLookbackHours": 1})
	assign := func(agent, title, workflow string) string {
		id, _ := o.create(map[string]any{"title": title, "workflowId": workflow, "assigneeId": agent})
		return id
	}
	launch := func(task string) {
		var out struct{ WakeupRequest wakeView }
		o.change("queueRun", "wakeupRequest { id status }", map[string]any{"taskId": task}, &out)
	}
	ended, busy, never, card, old := o.worker("ended"), o.worker("busy"), o.worker("never"), o.worker("card"), o.worker("old")
	finished := assign(ended, "Finished", board)
	launch(finished)
	o.wantWake(ended, 1, "TASK_ASSIGNED", "Finished")
	o.wantIdle(ended)
	o.hold(busy)
	claimed, queued := assign(busy, "Claimed", board), assign(busy, "Queued", board)
	launch(claimed)
	o.wantWake(busy, 1, "TASK_ASSIGNED", "Claimed")
	launch(queued)
	left := map[string]string{assign(card, "Card", kanban): card, assign(old, "Old", board): old}
	o.sql(`UPDATE tasks SET created_at = created_at - interval '2 hours' WHERE assignee_id = $1`, old)
	unstarted := assign(never, "Never started", board)

	o.adopt(board)
	o.wantWake(never, 1, "TASK_ASSIGNED", "Never started", unstarted)
	o.wantActivity(unstarted, "RECOVERY_DISPATCH")
	for task, agent := range left {
		o.wantUntouched(task, agent)
	}
	o.letGo(busy)
	o.wantWake(busy, 2, "TASK_ASSIGNED", "Queued")
	for _, agent := range []string{ended, busy} {
		for _, w := range o.wakeups(agent) {
			if w.Recovered {
				o.t.Errorf("a task with a run was dispatched again: %+v", w)
			}
		}
	}
	o.wantLog("recovery sweep complete", "dispatched_count=")
	o.wantLog("unstarted task dispatched", "task_id="+unstarted, "workspace_id="+o.workspace)
}

// P3. That a task's project was set is told to nobody here, as when rows are imported.
func recoverySelection(o office) {
	second := o.another(o.t)
	var project struct{ Project struct{ ID string } }
	second.change("createProject", "project { id }", map[string]any{"workspaceId": second.workspace, "name": "Linked"}, &project)
	card, ours, theirs := o.worker("card"), o.worker("ours"), second.worker("theirs")

	kept, _ := o.create(map[string]any{"title": "Card", "workflowId": o.board("Board"), "assigneeId": card})
	soon := o.board("Soon the office's")
	task, _ := o.create(map[string]any{"title": "Of the workflow", "workflowId": soon, "assigneeId": ours})
	o.adopt(soon)
	linked, _ := second.create(map[string]any{"title": "Of the project", "workflowId": second.board("Board"), "assigneeId": theirs})
	second.sql(`UPDATE tasks SET project_id = $2 WHERE id = $1`, linked, project.Project.ID)
	swept := o.sweep()
	o.wantWake(ours, 1, "TASK_ASSIGNED", "Of the workflow", task)
	second.wantWake(theirs, 1, "TASK_ASSIGNED", "Of the project", linked)
	o.wantActivity(task, "RECOVERY_DISPATCH")
	second.wantActivity(linked, "RECOVERY_DISPATCH")
	swept(o)
	o.wantUntouched(kept, card)
}

// R5.
func queueRunStep(o office) {
	a := o.worker("queued")
	task, made := o.create(map[string]any{"title": "Card", "workflowId": o.board("Custom", "QUEUE_RUN"), "assigneeId": a})
	moved := o.move(task, "IN_PROGRESS")
	if len(made.WakeupRequests) != 0 || len(moved.WakeupRequests) != 1 {
		o.t.Errorf("made %v, moved %v", made.sources(), moved.sources())
	}
	o.wantWake(a, 1, "TASK_ASSIGNED", task)
	var out struct {
		WakeupRequest wakeView
		Task          struct{ IsAutonomous bool }
	}
	o.change("queueRun", "wakeupRequest { id status }", map[string]any{"taskId": task, "reason": "once more"}, &out)
	o.wantWake(a, 2, "TASK_ASSIGNED", task)
	o.request(`query($id: ID!) { task(id: $id) { isAutonomous } }`, map[string]any{"id": task}, &out)
	if out.Task.IsAutonomous {
		o.t.Error("the card is an office task")
	}
}

// R1. Two workers: as one is freed, the first run that its agent's capacity allows is taken, whosoever's workspace it is in.
func requestOrder(t *testing.T) {
	o := openOffice(t, "--workers", "2")
	second := o.another(t)
	firsts, seconds := []string{o.worker("first"), o.worker("third")}, []string{second.worker("second"), second.worker("fourth")}
	guards := []string{o.worker("guard"), second.worker("other guard")}
	for i, guard := range guards {
		o.hold(guard)
		[]office{o, second}[i].wake(guard)
		o.wantWake(guard, 1, "USER")
	}
	var want []string
	ask := func(o office, agent, title string) {
		_, made := o.create(map[string]any{"title": title, "assigneeId": agent})
		want = append(want, o.wakeup(made.WakeupRequests[0].ID).Run.ID)
	}
	o.hold(firsts[0])
	o.hold(seconds[0])
	ask(o, firsts[0], "1")
	ask(o, firsts[0], "behind 1")
	ask(second, seconds[0], "2")
	ask(o, firsts[1], "3")
	ask(second, seconds[1], "4")
	o.letGo(guards[0])
	o.wantWake(firsts[0], 1, "TASK_ASSIGNED", "1")
	o.letGo(guards[1])
	o.wantWake(seconds[0], 1, "TASK_ASSIGNED", "2")
	if n := len(o.woken(firsts[0])); n != 1 {
		t.Errorf("%d runs of one agent at a time", n)
	}
	o.letGo(seconds[0])
	o.wantWake(firsts[1], 1, "TASK_ASSIGNED", "3")
	o.wantWake(seconds[1], 1, "TASK_ASSIGNED", "4")
	if got := o.program.run(want[1]); got.Status != "QUEUED" {
		t.Errorf("the agent's second run is %s while its first is live", got.Status)
	}
	o.letGo(firsts[0])
	o.wantWake(firsts[0], 2, "TASK_ASSIGNED", "behind 1")

	order := []string{want[0], want[2], want[3], want[4], want[1]}
	last := ""
	for i, run := range order {
		var out struct{ Run struct{ ClaimedAt string } }
		o.request(`query($id: ID!) { run(id: $id) { claimedAt } }`, map[string]any{"id": run}, &out)
		if out.Run.ClaimedAt < last {
			t.Errorf("run %d was claimed at %s, the one before it at %s", i+1, out.Run.ClaimedAt, last)
		}
		last = out.Run.ClaimedAt
	}
}

// R2, and P4 on the same deployment, once somebody uses the office. The server's own log has every statement it got.
func idleDeployment(t *testing.T) {
	log := newStatementLog(t)
	h := house{log.db, log.url, pgtest.Folder(t)}
	o := furnish(office{newJourney(h.start(t)), newWorkshop(t), h})
	o.settle(map[string]any{"officeWorkflowId": nil})
	a := o.worker("runner")
	board := o.board("Board")
	task, _ := o.create(map[string]any{"title": "Card", "workflowId": board, "assigneeId": a})

	var from int
	var began time.Time
	o = o.endAndStart(t, syscall.SIGTERM, func() { from, began = log.size(), time.Now() })
	const (
		queue     = "SELECT agent_id FROM wakeup_requests WHERE unrouted" // once in each pass of the dispatcher
		adopted   = "office_workflow_id IS NOT NULL"
		unstarted = "'recovery:' ||"
	)
	log.await(from, adopted, 1) // the sweep that comes with the start; the next one is half a minute away
	passes := log.count(from, queue)
	log.await(from, queue, passes+2) // two beats of the queue
	checks, searches := log.count(from, adopted), log.count(from, unstarted)
	if most := 1 + int(time.Since(began)/(30*time.Second)); searches != 0 || checks > most {
		t.Errorf("an idle deployment searched for unstarted tasks %d times, and looked %d times whether it should, want at most %d", searches, checks, most)
	}
	o.wantUntouched(task, a)

	t.Run("lifecycle-plan P4: the first office workflow is seen by the next sweep, without a restart", func(t *testing.T) {
		o.journey = o.journey.on(t, o.program)
		o.adopt(board)
		o.wantWake(a, 1, "TASK_ASSIGNED", "Card", task)
		o.wantActivity(task, "RECOVERY_DISPATCH")
		if log.count(from, unstarted) == 0 {
			t.Error("the search is not in the server's log: then its absence proved nothing")
		}
	})
}
