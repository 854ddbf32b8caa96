package domain

import (
	"strings"
	"testing"
)

// SPEC S3.3: what moves a task to another step, or into or out of the office, is a change that older requests do not know of.
func TestGenerationsRiseByStepAndOffice(t *testing.T) {
	base := TaskFacts{ID: "t", State: TaskStateTodo, StepID: "s", Generation: 7}
	for name, change := range map[string]func(*TaskFacts){
		"a step": func(f *TaskFacts) { f.StepID = "other" }, "the office": func(f *TaskFacts) { f.Office = true },
	} {
		after := base
		change(&after)
		for direction, c := range map[string]TaskChange{"into": {Before: base, After: after}, "out of": {Before: after, After: base}} {
			if got := c.NextGeneration(false); got != 8 {
				t.Errorf("%s %s: generation %d, want 8", direction, name, got)
			}
		}
	}
}

// SPEC S4.5, S4.6: a heavy fire that goes ahead is active for those after it in the same catch-up, and queues no run of its own.
func TestAHeavyFireOfACatchUpIsActiveForTheNext(t *testing.T) {
	facts := cronFire(func(f *FireFacts) { f.Heavy, f.RoutineRunID = true, "rrn_1" })
	plan := PlanFire(facts)
	if plan.Status != RoutineRunStatusTaskCreated && plan.Status != RoutineRunStatusEnqueued {
		t.Fatalf("the first fire is %s", plan.Status)
	}
	next := facts.Then(plan)
	if next.ActiveRoutineRun != "rrn_1" || next.QueuedRuns != facts.QueuedRuns {
		t.Errorf("for the next one %q is active and %d runs are queued", next.ActiveRoutineRun, next.QueuedRuns)
	}
	next.RoutineRunID = "rrn_2"
	if plan := PlanFire(next); plan.Status != RoutineRunStatusCoalesced || plan.CoalescedInto != "rrn_1" || plan.Request != nil {
		t.Errorf("the next one is %+v", plan)
	}
	if after := next.Then(FirePlan{Status: RoutineRunStatusTaskCreated}); after.ActiveRoutineRun != "rrn_1" {
		t.Errorf("after another one that went ahead %q is active", after.ActiveRoutineRun)
	}
	light := cronFire(func(f *FireFacts) { f.RoutineRunID = "rrn_1" })
	if next := light.Then(FirePlan{Status: RoutineRunStatusEnqueued}); next.QueuedRuns != light.QueuedRuns+1 {
		t.Errorf("a lightweight fire queues %d runs", next.QueuedRuns-light.QueuedRuns)
	}
	if next := light.Then(FirePlan{Status: RoutineRunStatusSkipped}); next.ActiveRoutineRun != "" || next.QueuedRuns != light.QueuedRuns {
		t.Errorf("after a skipped fire the facts are %+v", next)
	}
}

// SPEC S3.5: a heartbeat is absorbed by a live run of the same routine with the same values, and by no other.
func TestAHeartbeatIsAbsorbedByItsOwnRoutineAlone(t *testing.T) {
	live := ScopeRun{ID: "run_1", Status: RunStatusClaimed, Started: true, RoutineID: "rtn_1", Fingerprint: "f", WakeClass: WakeClassPeriodic}
	same := CoalesceRequest{Class: WakeClassPeriodic, RoutineID: "rtn_1", Fingerprint: "f"}
	for name, c := range map[string]struct {
		change func(*CoalesceRequest)
		want   CoalesceAction
	}{
		"the same":             {func(*CoalesceRequest) {}, CoalesceAbsorb},
		"another routine":      {func(r *CoalesceRequest) { r.RoutineID = "rtn_2" }, CoalesceNew},
		"no routine":           {func(r *CoalesceRequest) { r.RoutineID = "" }, CoalesceNew},
		"with other values":    {func(r *CoalesceRequest) { r.Fingerprint = "g" }, CoalesceNew},
		"an event of the same": {func(r *CoalesceRequest) { r.Class = WakeClassEvent }, CoalesceNew},
	} {
		request := same
		c.change(&request)
		if got := joinClaimed(request, live); got.Action != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
	if got := joinClaimed(CoalesceRequest{Class: WakeClassPeriodic}, ScopeRun{Status: RunStatusClaimed, Started: true, WakeClass: WakeClassPeriodic}); got.Action != CoalesceNew {
		t.Errorf("two wakes of no routine: %+v", got)
	}
}

// A text of a person has at most 64 KiB, counted in bytes, and something in it.
func TestTheBoundsOfAComment(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want UserErrorCode
	}{
		"the longest":                    {strings.Repeat("x", 64<<10), ""},
		"one byte more":                  {strings.Repeat("x", 64<<10+1), UserErrorCodeTooLong},
		"too long in bytes, not letters": {strings.Repeat("ü", 32<<10+1), UserErrorCodeTooLong},
		"the longest with blanks around": {" " + strings.Repeat("x", 64<<10), UserErrorCodeTooLong},
		"nothing":                        {"", UserErrorCodeRequired},
		"blanks":                         {" \n\t", UserErrorCodeRequired},
	} {
		got := UserErrorCode("")
		if problems := CheckCommentBody("body", c.body); len(problems) > 0 {
			got = problems[0].Code
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A secret is what can stand in a header: visible ASCII.
func TestASecretOfAWebhookIsVisible(t *testing.T) {
	for secret, fine := range map[string]bool{
		"!0123456789abcde": true, "0123456789abcde~": true, "0123456789abcde\x7f": false, "0123456789abcde ": false, "\t0123456789abcde": false,
		"0123456789abcdeü": false, strings.Repeat("x", maxWebhookSecret): true,
	} {
		if problem := CheckWebhookSecret(secret); (problem == nil) != fine {
			t.Errorf("%q: %+v", secret, problem)
		}
	}
}
