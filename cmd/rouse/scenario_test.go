package main

import (
	"testing"
)

// TestScenarios plays every scenario of the specification's sources (docs/scenarios.md) on the built program: caused through
// the API, a webhook or the clock, seen by a started command in ROUSE_WAKE_REASON and in its prompt where something is
// launched, and judged through the API. Most of them share one program, in a workspace of their own; what ends, restarts
// or looks at a whole deployment has a program of its own. They mostly wait, so they are played side by side.
func TestScenarios(t *testing.T) {
	t.Parallel()
	underRaceDetector(t)
	shared := openOffice(t)
	within := func(play func(o office)) func(*testing.T) {
		return func(t *testing.T) { play(shared.another(t)) }
	}
	for _, scenario := range []struct {
		name string
		play func(t *testing.T)
	}{
		{"run-scheduling R2: nobody uses the office, so no search for unstarted tasks is made and nothing is launched", idleDeployment},
		{"run-scheduling R4: an assigned office task that never started is dispatched once", unstartedTask},
		{"run-scheduling R3: a Kanban task beside an office gets no run from events or from recovery", within(kanbanBesideOffice)},
		{"lifecycle-plan P5: a shutdown joins the loops before it closes the database, and its exit code tells what could not be ended", failedShutdown},
		{"lifecycle-plan P3: recovery takes tasks of projects and of office workflows in several workspaces, and no Kanban task", within(recoverySelection)},
		{"office-scheduler S2: in a workspace with Kanban workflows alone nothing is queued for a task in TODO", within(kanbanOnly)},
		{"office-scheduler S21: recovery dispatches what was never started, and leaves alone what it must", within(recoverySweep)},
		{"office-scheduler S13: down for three hours, routines make up for missed ticks as their policy says", missedTicks},
		{"office-scheduler S6: a coordinator's heartbeat fires on its five minutes and carries its summary on", within(heartbeat)},
		{"office-scheduler S10: a heavy routine makes a dated task at its hour and assigns it", within(heavyRoutine)},
		{"office-scheduler S15: an idle worker is not launched by a routine, and is by a task", within(idleWorker)},
		{"office-scheduler S16: an idle coordinator is launched all the same", within(idleCoordinator)},
		{"office-scheduler S23: without its heartbeat a coordinator wakes for events alone", within(deletedHeartbeat)},
		{"office-scheduler S24: two triggers within the window become one run", within(coalescedTriggers)},
		{"office-scheduler S11: a routine that skips while it is active makes no second task", within(skippedFire)},
		{"office-scheduler S12: a signed webhook fills in the template", within(signedWebhook)},
		{"office-scheduler S14: a run by hand asks for its required variable first", within(requiredVariable)},
		{"office-scheduler S1: an office task is assigned and its agent starts working on it", within(assignedTask)},
		{"office-scheduler S4: a comment waits while its agent is at capacity and is handled next", within(commentAtCapacity)},
		{"office-scheduler S5: the end of the last of three subtasks wakes the parent's assignee once", within(endedChildren)},
		{"office-scheduler S7: a paused agent's wake is finished without a session and not tried again", within(pausedAgent)},
		{"office-scheduler S9: an approval of Spec lets the developer start on Build", within(approvedSpec)},
		{"office-scheduler S17: a rate limit that says until when parks the run until half a minute after", within(rateLimit)},
		{"office-scheduler S18: a timeout without such words backs off, and the fifth failure escalates", within(backoff)},
		{"office-scheduler S19: a task reassigned before its claim cancels the former assignee's wake", within(reassignedTask)},
		{"office-scheduler S20: a waiting retry is cancelled with the assignment or the task", within(cancelledRetries)},
		{"office-scheduler S22: a task that is done when its wake is claimed launches nobody", within(doneTask)},
		{"office-scheduler S3: a shutdown while the loops are at work joins them before the database goes", busyShutdown},
		{"office-scheduler S8: after a crash all queued wakes are taken up again, and none is lost", restart},
		{"run-scheduling R1: runs of two workspaces are taken in the order they were asked for, one of an agent at a time", requestOrder},
		{"run-scheduling R5: a custom workflow's own queue_run is processed, though the task is no office task", within(queueRunStep)},
		{"run-scheduling R6: SIGINT while all loops are idle closes the database last and leaves a clean log", idleShutdown},
		{"run-scheduling R7: a shutdown waits for passes that are blocked in the database", blockedShutdown},
		{"run-scheduling R8: queued runs outlive the process, without an office that owns a scheduler", queuedRunsSurvive},
		{"lifecycle-plan P1: starting and stopping twice is once, the parent's end stops too, and a stop waits for the pass in progress", stoppedLoops},
		{"lifecycle-plan P2: a stop waits for every trigger that a cron tick fires, and no tick follows", blockedTick},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			scenario.play(t)
		})
	}
}
