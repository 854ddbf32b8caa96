package main

import (
	"fmt"
	"slices"
	"strings"
)

// S1.
func assignedTask(o office) {
	a := o.worker("assigned")
	task, made := o.create(map[string]any{"title": "Count the beans", "description": "All of them.", "assigneeId": a})
	if !slices.Equal(made.sources(), []string{"TASK_ASSIGNED"}) {
		o.t.Errorf("wakes %v", made.sources())
	}
	run := o.wantWake(a, 1, "TASK_ASSIGNED", "Count the beans", "All of them.", task)
	o.wantEnd(made.WakeupRequests[0].ID, "FINISHED", "")
	if seen := o.woken(a)[0]; seen[1] != task || !strings.Contains(seen[3], `"ASSIGNEE"`) {
		o.t.Errorf("the command saw %v", seen)
	}
	if view := o.program.run(run); view.SessionID == "" {
		o.t.Error("no session was recorded")
	}
}

// S4. The source lets the comment stay queued as a run of its own; here comments about one task become one run behind the
// live one (SPEC S3.5, S13), so five of them are one launch.
func commentAtCapacity(o office) {
	a := o.worker("busy")
	o.hold(a)
	task, _ := o.create(map[string]any{"title": "Long work", "assigneeId": a})
	o.wantWake(a, 1, "TASK_ASSIGNED")
	var waits []wakeView
	for i := range 5 {
		waits = append(waits, o.comment(task, fmt.Sprintf("remark %d", i+1)).WakeupRequests...)
	}
	if len(waits) != 5 || o.wakeup(waits[0].ID).Status != "QUEUED" {
		o.t.Errorf("waiting: %+v", waits)
	}
	o.letGo(a)
	o.wantWake(a, 2, "COMMENT", "remark 1", "remark 5")
	o.wantEnd(waits[0].ID, "FINISHED", "")
	if n := len(o.woken(a)); n != 2 {
		o.t.Errorf("%d launches, want exactly one more for five comments", n)
	}
}

// S5. "Coalesced" in the source: here nothing is sent before the last child ends, and then once (SPEC S5.3).
func endedChildren(o office) {
	lead := o.worker("lead")
	parent, _ := o.create(map[string]any{"title": "Release", "assigneeId": lead})
	o.wantWake(lead, 1, "TASK_ASSIGNED")
	var children []string
	for i := range 3 {
		worker := o.worker(fmt.Sprint("child ", i))
		child, _ := o.create(map[string]any{"title": fmt.Sprint("Part ", i), "parentId": parent, "assigneeId": worker})
		o.wantWake(worker, 1, "TASK_ASSIGNED")
		children = append(children, child)
	}
	var wakes []wakeView
	for _, child := range children {
		wakes = append(wakes, o.move(child, "DONE").WakeupRequests...)
	}
	if len(wakes) != 1 || wakes[0].Source != "TASK_CHILDREN_COMPLETED" || wakes[0].Agent.ID != lead {
		o.t.Errorf("wakes %+v", wakes)
	}
	o.wantWake(lead, 2, "TASK_CHILDREN_COMPLETED", "Part 0", "Part 2")
}

// S7. It is not tried again by itself; a resume sends it again, beyond the source (SPEC S6.3).
func pausedAgent(o office) {
	a := o.worker("paused")
	var out struct{ Agent struct{ ID string } }
	o.change("pauseAgent", "agent { id }", map[string]any{"agentId": a}, &out)
	_, made := o.create(map[string]any{"title": "Later", "assigneeId": a})
	o.wantEnd(made.WakeupRequests[0].ID, "FINISHED", "AGENT_INACTIVE")
	o.wantActivity(a, "WAKEUP_AGENT_INACTIVE")
	run := o.program.run(o.wakeup(made.WakeupRequests[0].ID).Run.ID)
	if n := len(o.woken(a)); n != 0 || run.SessionID != "" || run.attempts() != "" && run.attempts() != "CANCELLED" || run.ScheduledRetryAt != nil {
		o.t.Errorf("%d launches, %+v", n, run)
	}
	o.change("resumeAgent", "agent { id }", map[string]any{"agentId": a}, &out)
	o.wantWake(a, 1, "TASK_ASSIGNED", "Later")
}

// S9.
func approvedSpec(o office) {
	planner, developer := o.worker("planner"), o.worker("developer")
	o.answers(planner, map[string]any{"type": "complete_task"})
	parent, _ := o.create(map[string]any{"title": "Feature"})
	o.hold(planner)
	spec, _ := o.create(map[string]any{"title": "Spec", "parentId": parent, "assigneeId": planner, "requiresApproval": true})
	build, made := o.create(map[string]any{"title": "Build", "parentId": parent, "assigneeId": developer, "blockedByIds": []string{spec}})
	o.wantWake(planner, 1, "TASK_ASSIGNED", "Spec")
	o.letGo(planner)
	o.wantTask(spec, "IN_REVIEW")
	if got := o.wakeup(made.WakeupRequests[0].ID).Status; got != "QUEUED" || len(o.woken(developer)) != 0 {
		o.t.Errorf("the wake of the blocked task is %s", got)
	}
	approved := o.decide(spec, "APPROVE", "")
	if approved.Task.State != "DONE" || !slices.Equal(approved.sources(), []string{"TASK_BLOCKERS_RESOLVED"}) {
		o.t.Errorf("approved: %+v", approved)
	}
	// The wake that the assignment left waiting is its run's reason; what resolved it is in the same prompt (SPEC S5.3).
	_, _, prompt := o.awaitWake(developer, 1)
	if !strings.Contains(prompt, "Nothing blocks task "+build) || !strings.Contains(prompt, "Spec") {
		o.t.Errorf("the developer was told:\n%s", prompt)
	}
}

// S19.
func reassignedTask(o office) {
	a, b := o.worker("former"), o.worker("new")
	o.hold(a)
	o.create(map[string]any{"title": "First", "assigneeId": a})
	o.wantWake(a, 1, "TASK_ASSIGNED", "First")
	task, made := o.create(map[string]any{"title": "Second", "assigneeId": a})
	again := o.assignTo(task, b)
	if len(again.CancelledWakeups) != 1 || again.CancelledWakeups[0].ID != made.WakeupRequests[0].ID {
		o.t.Errorf("cancelled %+v", again.CancelledWakeups)
	}
	o.wantEnd(made.WakeupRequests[0].ID, "CANCELLED", "ASSIGNEE_CHANGED")
	o.wantActivity(task, "WAKEUP_STALE_CANCELLED")
	o.wantLog("wakeup_stale_cancelled", "wakeup_id="+made.WakeupRequests[0].ID, "agent_id="+a, "workspace_id="+o.workspace, "causation_id=", "reason=assignee_changed")
	o.wantWake(b, 1, "TASK_ASSIGNED", "Second")
	o.letGo(a)
	o.wantIdle(a)
	if n := len(o.woken(a)); n != 1 {
		o.t.Errorf("the former assignee was launched %d times", n)
	}
}

// S22. The source's one reason task_terminal is TASK_DONE or TASK_CANCELLED here (case C82).
func doneTask(o office) {
	a := o.worker("late")
	o.hold(a)
	o.create(map[string]any{"title": "First", "assigneeId": a})
	o.wantWake(a, 1, "TASK_ASSIGNED", "First")
	task, made := o.create(map[string]any{"title": "Second", "assigneeId": a})
	o.move(task, "DONE")
	o.letGo(a)
	o.wantEnd(made.WakeupRequests[0].ID, "CANCELLED", "TASK_DONE")
	o.wantActivity(task, "WAKEUP_STALE_CANCELLED")
	if n := len(o.woken(a)); n != 1 {
		o.t.Errorf("%d launches", n)
	}
}
