package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// TestAProcessThatStoodStillLongerThanItsLeaseChangesNothing: as on a machine that sleeps, or whose disk hangs. The other
// process ends the agent that was left, before it starts the run again; when the first goes on, its report is fenced.
func TestAProcessThatStoodStillLongerThanItsLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	env := []string{"ROUSE_DATABASE_URL=" + h.url, "ROUSE_SECRET_KEY=" + strings.Repeat("5a6b7c8d", 8), "ROUSE_LEASE=5s"}
	first := start(t, h.data, env)
	o := furnish(office{newJourney(first), newWorkshop(t), h})
	a := o.worker("worker")
	o.hold(a)
	o.wake(a)
	run := o.wantWake(a, 1, "USER")
	before := processesOf(t, run)
	o.program = start(t, pgtest.Folder(t), env)

	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	o.wantWake(a, 2, "USER")
	if left := living(before); len(left) > 0 {
		t.Errorf("beside the second attempt the first one's processes live: %v", left)
	}
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first process sees that the run is another's", patience, func() bool { // by its report, or before that by a heartbeat
		return strings.Contains(first.log.String(), "the report of a run came too late and was dropped") ||
			strings.Contains(first.log.String(), "a run is no longer ours; its attempt here was dropped")
	})
	after := processesOf(t, run)
	o.letGo(a)
	eventually(t, "the run ends", patience, func() bool { return o.program.run(run).Status == "FINISHED" })
	if got := o.program.run(run).attempts(); got != "ABANDONED SUCCEEDED" {
		t.Errorf("the attempts are %s", got)
	}
	if n := len(o.woken(a)); n != 2 || len(after) == 0 || slices.ContainsFunc(before, func(pid int) bool { return slices.Contains(after, pid) }) {
		t.Errorf("%d launches, processes %v, then %v", n, before, after)
	}
}
