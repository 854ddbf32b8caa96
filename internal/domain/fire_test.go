package domain

import (
	"strings"
	"testing"
	"time"
)

// cronFire is a due slot of an active lightweight routine with nothing going on.
func cronFire(change ...func(*FireFacts)) FireFacts {
	f := FireFacts{RoutineID: "R", TriggerID: "T", RoutineRunID: "rrn_2", TaskID: "tsk_2", Source: RoutineRunSourceCron,
		RoutineStatus: RoutineStatusActive, Policy: ConcurrencyPolicyCoalesceIfActive, Fingerprint: "f",
		Slot: time.Date(2026, 4, 25, 9, 0, 0, 0, time.UTC)}
	for _, apply := range change {
		apply(&f)
	}
	return f
}

func byHand(f *FireFacts)  { f.Source, f.TriggerID, f.Slot = RoutineRunSourceManual, "", time.Time{} }
func byPost(f *FireFacts)  { f.Source, f.Slot = RoutineRunSourceWebhook, time.Time{} }
func heavy(f *FireFacts)   { f.Heavy = true }
func active(f *FireFacts)  { f.ActiveRoutineRun = "rrn_1" }
func skip(f *FireFacts)    { f.Policy = ConcurrencyPolicySkipIfActive }
func always(f *FireFacts)  { f.Policy = ConcurrencyPolicyAlwaysEnqueue }
func backlog(f *FireFacts) { f.QueuedRuns = MaxBacklog + 1 }

// SPEC S4.4, S4.6, S4.7: the gate, the policies, and what is sent.
func TestPlanFire(t *testing.T) {
	const none, task, lone, own = "", "task:tsk_2", "routine:R", "fire:rrn_2"
	for _, c := range []struct {
		name   string
		facts  FireFacts
		status RoutineRunStatus
		reason EndReason
		into   string
		makes  bool // a task
		scope  string
		class  WakeClass
		person bool
	}{
		{"a slot of a lightweight routine", cronFire(), RoutineRunStatusEnqueued, "", "", false, lone, WakeClassPeriodic, false},
		{"a manual fire has no window and may not be skipped as idle", cronFire(byHand), RoutineRunStatusEnqueued, "", "", false, lone, WakeClassEvent, true},
		{"a webhook is an event", cronFire(byPost), RoutineRunStatusEnqueued, "", "", false, lone, WakeClassEvent, false},
		{"C54 a slot of a heavy routine makes a task and tells its assignee", cronFire(heavy), RoutineRunStatusTaskCreated, "", "", true, task, WakeClassEvent, false},
		{"a manual heavy fire has no window", cronFire(heavy, byHand), RoutineRunStatusTaskCreated, "", "", true, task, WakeClassEvent, true},
		{"C50 skip", cronFire(skip, active), RoutineRunStatusSkipped, EndReasonConcurrencyPolicy, "", false, none, "", false},
		{"C50 skip, with other values nothing is active", cronFire(skip), RoutineRunStatusEnqueued, "", "", false, lone, WakeClassPeriodic, false},
		{"C50 skip, heavy", cronFire(skip, active, heavy), RoutineRunStatusSkipped, EndReasonConcurrencyPolicy, "", false, none, "", false},
		{"C51 coalesce: recorded, and its request sent", cronFire(active), RoutineRunStatusCoalesced, "", "rrn_1", false, lone, WakeClassPeriodic, false},
		{"C51 coalesce by hand: its request has no window", cronFire(active, byHand), RoutineRunStatusCoalesced, "", "rrn_1", false, lone, WakeClassEvent, true},
		{"C51 coalesce, heavy: recorded only", cronFire(active, heavy), RoutineRunStatusCoalesced, "", "rrn_1", false, none, "", false},
		{"C52 always: a scope of its own", cronFire(always, active), RoutineRunStatusEnqueued, "", "", false, own, WakeClassPeriodic, false},
		{"C52 always, nothing active: still its own", cronFire(always), RoutineRunStatusEnqueued, "", "", false, own, WakeClassPeriodic, false},
		{"C52 always, heavy: another task", cronFire(always, active, heavy), RoutineRunStatusTaskCreated, "", "", true, task, WakeClassEvent, false},
		{"a slot of an agent with a full backlog", cronFire(backlog), RoutineRunStatusSkipped, EndReasonBacklogFull, "", false, none, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := PlanFire(c.facts)
			if got.Answer != FireRecord || got.Status != c.status || got.SkipReason != c.reason || got.CoalescedInto != c.into || got.CreateTask != c.makes {
				t.Fatalf("got %+v", got)
			}
			if c.scope == none {
				if got.Request != nil {
					t.Errorf("sends %+v", *got.Request)
				}
				return
			}
			want := FireRequest{Source: WakeupSourceRoutine, Scope: c.scope, Class: c.class, PersonWaiting: c.person}
			if c.scope == task {
				want.Source, want.Basis = WakeupSourceTaskAssigned, WakeBasisAssignee
			}
			if got.Request == nil || *got.Request != want {
				t.Errorf("sends %+v, want %+v", got.Request, want)
			}
		})
	}
}

// SPEC S4.4: who is refused, and what is suppressed.
func TestAFireThatIsNotTaken(t *testing.T) {
	paused := func(f *FireFacts) { f.RoutineStatus = RoutineStatusPaused }
	archived := func(f *FireFacts) { f.RoutineStatus = RoutineStatusArchived }
	gone := func(f *FireFacts) { f.AgentGone = true }
	for _, c := range []struct {
		name   string
		facts  FireFacts
		answer FireAnswer
		code   UserErrorCode
		note   bool
	}{
		{"C30 a slot of a paused routine", cronFire(paused), FireSuppress, "", false},
		{"C30 a slot of an archived routine", cronFire(archived), FireSuppress, "", false},
		{"C220 a slot whose agent is gone", cronFire(gone), FireSuppress, "", true},
		{"a slot of a paused routine whose agent is gone", cronFire(paused, gone), FireSuppress, "", false},
		{"C29 a webhook of a paused routine", cronFire(byPost, paused), FireRefuse, UserErrorCodeInvalidState, false},
		{"C29 a manual fire of a paused routine", cronFire(byHand, paused), FireRefuse, UserErrorCodeInvalidState, false},
		{"a manual fire of an archived routine", cronFire(byHand, archived), FireRefuse, UserErrorCodeInvalidState, false},
		{"a manual fire whose agent is gone", cronFire(byHand, gone), FireRefuse, UserErrorCodeInvalidState, false},
		{"a webhook of an agent with a full backlog", cronFire(byPost, backlog), FireRefuse, UserErrorCodeBacklogFull, false},
		{"a manual fire of an agent with a full backlog", cronFire(byHand, backlog), FireRefuse, UserErrorCodeBacklogFull, false},
		{"the status comes before the backlog", cronFire(byPost, backlog, paused), FireRefuse, UserErrorCodeInvalidState, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := PlanFire(c.facts)
			type answer struct {
				answer  FireAnswer
				problem UserErrorCode
				missing bool
			}
			if got, want := (answer{got.Answer, got.Problem.Code, got.AgentMissing}), (answer{c.answer, c.code, c.note}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if got.Request != nil || got.CreateTask || got.Key != "" {
				t.Errorf("it makes something: %+v", got)
			}
			if (got.Problem.Message != "") != (c.answer == FireRefuse) {
				t.Errorf("says %q", got.Problem.Message)
			}
		})
	}
}

func TestFireKeys(t *testing.T) {
	late := cronFire(func(f *FireFacts) { f.Slot = time.Date(2026, 4, 25, 9, 0, 12, 0, time.UTC) })
	delivery := func(key string) FireFacts {
		return cronFire(byPost, func(f *FireFacts) { f.DeliveryKey = key })
	}
	for _, c := range []struct {
		name  string
		facts FireFacts
		want  string
	}{
		{"C32 the unix minute", late, "routine:R:T:29618460"},
		{"C34 a delivery key", delivery("abc"), "routine:R:T:webhook:abc"},
		{"C226 a delivery without a key", cronFire(byPost), ""},
		{"C33 a manual fire", cronFire(byHand), ""},
	} {
		if got := PlanFire(c.facts).Key; got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	long, longer := WebhookFireKey("R", "T", strings.Repeat("k", 5000)), WebhookFireKey("R", "T", strings.Repeat("k", 5001))
	if len(long) > 100 || long == longer {
		t.Errorf("long keys: %q, %q", long, longer)
	}
	if odd := WebhookFireKey("R", "T", "a\x00b"); strings.Contains(odd, "\x00") {
		t.Errorf("stores %q", odd)
	}
	if CronFireKey("R", "T", noon) == WebhookFireKey("R", "T", "29618640") {
		t.Error("a delivery can take a slot's key")
	}
}

// SPEC S4.5, S4.6: each fire of a catch-up finds those before it.
func TestCatchUpFires(t *testing.T) { // C44, and the rest of C40 and C41
	for _, c := range []struct {
		name                       string
		policy                     func(*FireFacts)
		enqueued, skipped, coalesc int
	}{
		{"always", always, 5, 0, 0},
		{"skip", skip, 1, 4, 0},
		{"coalesce", func(*FireFacts) {}, 1, 0, 4},
	} {
		counts := map[RoutineRunStatus]int{}
		facts := cronFire(c.policy)
		for range 5 {
			plan := PlanFire(facts)
			counts[plan.Status]++
			facts = facts.Then(plan)
		}
		if counts[RoutineRunStatusEnqueued] != c.enqueued || counts[RoutineRunStatusSkipped] != c.skipped || counts[RoutineRunStatusCoalesced] != c.coalesc {
			t.Errorf("%s: %v", c.name, counts)
		}
	}
}

// SPEC S4.6: when a fire is active.
func TestActiveFires(t *testing.T) {
	task := func(state TaskState, change ...func(*FireWork)) FireWork {
		w := FireWork{Heavy: true, TaskState: state}
		for _, f := range change {
			f(&w)
		}
		return w
	}
	run := func(status RunStatus) func(*FireWork) { return func(w *FireWork) { w.RunStatus = status } }
	parked := func(why ParkedReason, long bool) FireWork {
		return FireWork{RunStatus: RunStatusQueued, Parked: why, ParkedLong: long}
	}
	for _, c := range []struct {
		name   string
		work   FireWork
		active bool
		waits  FireWait
	}{
		{"its request is unrouted", FireWork{RequestUnrouted: true}, true, ""},
		{"its run is queued", FireWork{RunStatus: RunStatusQueued}, true, ""},
		{"its run is claimed", FireWork{RunStatus: RunStatusClaimed}, true, ""},
		{"its run finished", FireWork{RunStatus: RunStatusFinished}, false, ""},
		{"its run failed", FireWork{RunStatus: RunStatusFailed}, false, ""},
		{"its run was cancelled", FireWork{RunStatus: RunStatusCancelled}, false, ""},
		{"it has no work", FireWork{}, false, ""},
		{"its run waits for a rate limit of days", parked(ParkedReasonRateLimit, true), true, FireWaitParked},
		{"its run waits for a rate limit of a minute", parked(ParkedReasonRateLimit, false), true, ""},
		{"its run waits for a worker", parked(ParkedReasonNoWorker, true), true, FireWaitParked},
		{"its run cannot be judged", parked(ParkedReasonGuardError, true), true, FireWaitParked},
		{"its run waits for its retry", parked(ParkedReasonBackoff, true), true, ""},
		{"its run waits for its scope", parked(ParkedReasonScopeBusy, true), true, ""},
		{"S4.6 its task is in work, a run of it is queued", task(TaskStateInProgress, run(RunStatusQueued)), true, ""},
		{"S4.6 its task is in work, a run of it is live", task(TaskStateInProgress, run(RunStatusClaimed)), true, ""},
		{"S4.6 its task is in work, a request about it is unrouted", task(TaskStateInProgress, func(w *FireWork) { w.RequestUnrouted = true }), true, ""},
		{"S4.6 its task is in work, its run gave up", task(TaskStateInProgress, run(RunStatusFailed)), false, ""},
		{"S4.6 its task is to do, and no run of it is left", task(TaskStateTodo), false, ""},
		{"S4.6 its task waits for another one", task(TaskStateInProgress, func(w *FireWork) { w.OpenBlocker = true }), true, FireWaitBlocker},
		{"S4.6 its task's queued run waits for another task", task(TaskStateInProgress, func(w *FireWork) {
			w.RunStatus, w.Parked, w.ParkedLong, w.OpenBlocker = RunStatusQueued, ParkedReasonTaskBlocked, true, true
		}), true, FireWaitParked},
		{"S4.6 its task waits for an answer", task(TaskStateInProgress, func(w *FireWork) { w.OpenApproval = true }), true, FireWaitApproval},
		{"C211 its task is blocked", task(TaskStateBlocked), true, FireWaitBlocked},
		{"its task is blocked, and a comment's run is on its way", task(TaskStateBlocked, run(RunStatusQueued)), true, ""},
		{"C211 its task is in review, its run ended", task(TaskStateInReview, run(RunStatusFinished)), true, FireWaitReview},
		{"C53 its task is done, its run not", task(TaskStateDone, run(RunStatusClaimed)), false, ""},
		{"C53 its task was cancelled", task(TaskStateCancelled), false, ""},
		{"C53 its task is archived", task(TaskStateBlocked, func(w *FireWork) { w.TaskArchived = true }), false, ""},
		{"C53 its task is missing", FireWork{Heavy: true, RequestUnrouted: true}, false, ""},
	} {
		if active, waits := c.work.Active(), c.work.Waits(); active != c.active || waits != c.waits {
			t.Errorf("%s: active %t, waits %q", c.name, active, waits)
		}
	}
}

// S4.6: who drops a fire says for which one, and has people told when nobody works on that.
func TestADroppedFireNamesWhatHoldsIt(t *testing.T) {
	f := FireFacts{RoutineStatus: RoutineStatusActive, ActiveRoutineRun: "rrn_1", ActiveWait: FireWaitBlocked, Policy: ConcurrencyPolicySkipIfActive, Heavy: true}
	if p := PlanFire(f); p.Status != RoutineRunStatusSkipped || p.HeldBy != "rrn_1" || p.TellWait != FireWaitBlocked || p.CoalescedInto != "" {
		t.Errorf("skipped: %+v", p)
	}
	f.Policy = ConcurrencyPolicyCoalesceIfActive
	if p := PlanFire(f); p.Status != RoutineRunStatusCoalesced || p.HeldBy != "rrn_1" || p.TellWait != FireWaitBlocked || p.CoalescedInto != "rrn_1" {
		t.Errorf("merged: %+v", p)
	}
	f.QueuedRuns = MaxBacklog + 1
	f.Source = RoutineRunSourceCron
	if p := PlanFire(f); p.SkipReason != EndReasonBacklogFull || p.HeldBy != "" || p.TellWait != "" {
		t.Errorf("beyond the backlog: %+v", p)
	}
	f.QueuedRuns, f.Policy = 0, ConcurrencyPolicyAlwaysEnqueue
	if p := PlanFire(f); p.HeldBy != "" || p.TellWait != "" {
		t.Errorf("always enqueued: %+v", p)
	}
}

// SPEC S4.5: which slots fire, and which are named.
func TestPlanCatchUp(t *testing.T) {
	slots := []time.Time{noon.Add(-2 * time.Minute), noon.Add(-time.Minute), noon}
	missed := Missed{Ticks: 96, Since: noon.Add(-100 * time.Minute)}
	got := PlanCatchUp(CatchUpPolicyEnqueueMissedWithCap, ElapsedSlots{Slots: slots, Missed: missed}) // C41
	if len(got) != 3 || got[0] != (SlotFire{Slot: slots[0], Missed: missed}) || got[1] != (SlotFire{Slot: slots[1]}) || got[2] != (SlotFire{Slot: noon}) {
		t.Errorf("with a cap: %+v", got)
	}
	got = PlanCatchUp(CatchUpPolicySkipMissed, ElapsedSlots{Slots: slots, Missed: missed}) // C43
	if len(got) != 1 || got[0] != (SlotFire{Slot: noon}) {
		t.Errorf("without: %+v", got)
	}
	if got := PlanCatchUp(CatchUpPolicySkipMissed, ElapsedSlots{}); len(got) != 0 {
		t.Errorf("nothing elapsed: %+v", got)
	}
	for _, c := range []struct { // C42
		policy      CatchUpPolicy
		given, want int
	}{
		{CatchUpPolicyEnqueueMissedWithCap, 0, 1}, {CatchUpPolicyEnqueueMissedWithCap, -3, 1}, {CatchUpPolicyEnqueueMissedWithCap, 5000, 1000},
		{CatchUpPolicyEnqueueMissedWithCap, 25, 25}, {CatchUpPolicySkipMissed, 25, 1},
	} {
		if got := CatchUpLimit(c.policy, c.given); got != c.want {
			t.Errorf("%s %d: %d", c.policy, c.given, got)
		}
		if _, clamped := ClampCatchUpMax(c.given); clamped != (c.given != 25) {
			t.Errorf("%d: clamped %t", c.given, clamped)
		}
	}
}

// SPEC S4.6: which fires are the same.
func TestFingerprint(t *testing.T) {
	template := &TaskTemplate{Title: "Report {{datetime}}"}
	base := Fingerprint("R", "A", template, map[string]string{"a": "1", "b": "2"})
	if same := Fingerprint("R", "A", &TaskTemplate{Title: "Report {{datetime}}"}, map[string]string{"b": "2", "a": "1"}); same != base { // C212
		t.Error("order or identity matters")
	}
	if Fingerprint("R", "A", nil, nil) != Fingerprint("R", "A", nil, map[string]string{}) {
		t.Error("no values and nil differ")
	}
	seen := map[string]string{base: "base"}
	for name, other := range map[string]string{
		"another routine":        Fingerprint("S", "A", template, map[string]string{"a": "1", "b": "2"}),
		"another agent":          Fingerprint("R", "B", template, map[string]string{"a": "1", "b": "2"}),
		"another template":       Fingerprint("R", "A", &TaskTemplate{Title: "Report"}, map[string]string{"a": "1", "b": "2"}),
		"no template":            Fingerprint("R", "A", nil, map[string]string{"a": "1", "b": "2"}),
		"C50 another value":      Fingerprint("R", "A", template, map[string]string{"a": "1", "b": "3"}),
		"fewer values":           Fingerprint("R", "A", template, map[string]string{"a": "1"}),
		"a value that has marks": Fingerprint("R", "A", template, map[string]string{"a": `1","b":"2`}),
	} {
		if before, ok := seen[other]; ok {
			t.Errorf("%s and %s have one fingerprint", name, before)
		}
		seen[other] = name
	}
}
