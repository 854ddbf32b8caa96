package main

import (
	"syscall"
	"testing"
)

// TestARestoredCopyIsLookedAtBeforeItWorks: on standby a person ends what must not go on; without it the rest goes on.
func TestARestoredCopyIsLookedAtBeforeItWorks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	o := furnish(office{newJourney(h.start(t)), newWorkshop(t), h})
	kept, ended := o.worker("kept"), o.worker("ended")
	for _, a := range []string{kept, ended} {
		o.hold(a)
		o.wake(a)
	}
	o.wantWake(kept, 1, "USER")
	run := o.wantWake(ended, 1, "USER")

	o = o.endAndStart(t, syscall.SIGKILL, func() {
		o.letGo(kept)
		o.letGo(ended)
		o.sql(`UPDATE attempt_leases SET lease_until = clock_timestamp() - interval '1 hour'`)
	}, "--standby")
	var out struct {
		Process struct{ Scheduler string }
	}
	o.request(`{ process { scheduler } }`, nil, &out)
	if out.Process.Scheduler != "STOPPED" {
		t.Errorf("on standby the scheduler is %s", out.Process.Scheduler)
	}
	o.request(`mutation($id: ID!) { pauseAgent(input: {agentId: $id}) { userErrors { message } } }`, map[string]any{"id": ended}, &struct{}{})
	o.request(`mutation($id: ID!) { cancelRun(input: {runId: $id}) { userErrors { message } } }`, map[string]any{"id": run}, &struct{}{})
	if n := len(o.woken(kept)) + len(o.woken(ended)); n != 2 {
		t.Errorf("%d launches on standby", n-2)
	}

	o = o.endAndStart(t, syscall.SIGTERM, func() {})
	o.wantWake(kept, 2, "USER")
	eventually(t, "the run that was cancelled on standby ends", patience, func() bool { return o.program.run(run).Status == "CANCELLED" })
	if n := len(o.woken(ended)); n != 1 {
		t.Errorf("it was launched %d times", n)
	}
}
