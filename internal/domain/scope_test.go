package domain

import "testing"

func TestScopes(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"C65 each task is a scope of its own", WakeScope(WakeupSourceComment, "tsk_1"), "task:tsk_1"},
		{"an assignment is about its task", WakeScope(WakeupSourceTaskAssigned, "tsk_1"), "task:tsk_1"},
		{"a person's wake is taskless", WakeScope(WakeupSourceUser, ""), "taskless"},
		{"an approval is taskless, though it has a task", WakeScope(WakeupSourceApprovalResolved, "tsk_1"), "taskless"},
		{"a lightweight fire is about its routine", RoutineScope("rtn_1"), "routine:rtn_1"},
		{"a fire that is always enqueued is on its own", FireScope("rrn_1"), "fire:rrn_1"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestHopsAndBacklog(t *testing.T) { // SPEC S3.10, C316
	hops := NextHops(-1)
	for range DefaultMaxHops {
		if HopLimit(hops, DefaultMaxHops) != "" {
			t.Fatalf("stopped at %d hops", hops)
		}
		hops = NextHops(hops)
	}
	if hops != DefaultMaxHops || HopLimit(hops, DefaultMaxHops) != "" || HopLimit(NextHops(hops), DefaultMaxHops) != EndReasonHopLimit {
		t.Errorf("%d hops: %q, then %q", hops, HopLimit(hops, DefaultMaxHops), HopLimit(hops+1, DefaultMaxHops))
	}
	for _, c := range []struct {
		queued int
		cause  WakeCause
		want   BacklogAnswer
	}{
		{1000, WakeCauseSchedule, BacklogAccept},
		{1001, WakeCauseSchedule, BacklogSkip},
		{1001, WakeCauseWebhook, BacklogRefuse},
		{1001, WakeCauseWakeAgent, BacklogRefuse},
		{1001, WakeCauseQueueRun, BacklogRefuse},
		{1001, WakeCauseFireRoutine, BacklogRefuse},
		{1_000_000, WakeCauseOther, BacklogAccept},
	} {
		if got := Backlog(c.queued, c.cause); got != c.want {
			t.Errorf("%d queued, %s: %s", c.queued, c.cause, got)
		}
	}
}
