package domain

import (
	"testing"
	"time"
)

func TestAdmit(t *testing.T) {
	idle := AdmitFacts{AgentStatus: AgentStatusIdle, WakeClass: WakeClassPeriodic, SkipIdleWakeups: true}
	with := func(f AdmitFacts, change func(*AdmitFacts)) AdmitFacts { change(&f); return f }
	for _, c := range []struct {
		name  string
		facts AdmitFacts
		want  EndReason // "": launched
	}{
		{"C85 a periodic wake of a worker without tasks is skipped", idle, EndReasonIdleSkipped},
		{"C85 one with a task to do is launched", with(idle, func(f *AdmitFacts) { f.ActionableTasks = 1 }), ""},
		{"C85 an event is launched, tasks or not", with(idle, func(f *AdmitFacts) { f.WakeClass = WakeClassEvent }), ""},
		{"C85 a coordinator's heartbeat is launched", with(idle, func(f *AdmitFacts) { f.SkipIdleWakeups = false }), ""},
		{"C219 a paused agent launches nothing", with(idle, func(f *AdmitFacts) { f.AgentStatus = AgentStatusPaused; f.WakeClass = WakeClassEvent }), EndReasonAgentInactive},
		{"C219 a stopped agent launches nothing", with(idle, func(f *AdmitFacts) { f.AgentStatus = AgentStatusStopped }), EndReasonAgentInactive},
		{"a deleted agent's run is cancelled before anything else is asked", with(idle, func(f *AdmitFacts) { f.AgentDeleted = true; f.AgentStatus = AgentStatusStopped }), EndReasonAgentDeleted},
		{"a cancel that was asked is obeyed", with(idle, func(f *AdmitFacts) { f.CancelRequested = true }), EndReasonCancelledByUser},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got EndReason
			if a := Admit(c.facts); a.Settle != nil {
				got = a.Settle.Reason
				if (a.Settle.Outcome != "") != (a.Settle.Run == RunStatusFinished) {
					t.Errorf("outcome %q with status %s: only FINISHED runs have one", a.Settle.Outcome, a.Settle.Run)
				}
			}
			if got != c.want {
				t.Errorf("settled with %q, want %q", got, c.want)
			}
		})
	}
}

func TestAdmitStartDoesNotRepeatTheIdleGuard(t *testing.T) {
	if a := AdmitStart(AdmitFacts{AgentStatus: AgentStatusIdle, WakeClass: WakeClassPeriodic, SkipIdleWakeups: true}); a.Settle != nil {
		t.Errorf("settled with %s, want a launch", a.Settle.Reason)
	}
}

func TestGuardBackoffDoublesUpToItsBound(t *testing.T) {
	for errors, want := range map[int]time.Duration{0: 5 * time.Second, 1: 5 * time.Second, 2: 10 * time.Second, 7: 320 * time.Second, 8: 10 * time.Minute, 1000: 10 * time.Minute} {
		if got := GuardBackoff(errors); got != want {
			t.Errorf("GuardBackoff(%d) = %s, want %s", errors, got, want)
		}
	}
}
