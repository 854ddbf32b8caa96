package domain

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 4, 25, 12, 0, 0, 0, time.UTC)

// Runs that the tables below start from.
var (
	dueEvent      = ScopeRun{ID: "run_due", Status: RunStatusQueued, WakeClass: WakeClassEvent, RequestedAt: noon}
	duePeriodic   = ScopeRun{ID: "run_due", Status: RunStatusQueued, WakeClass: WakeClassPeriodic, RoutineID: "R", Fingerprint: "f", RequestedAt: noon}
	claimed       = ScopeRun{ID: "run_live", Status: RunStatusClaimed, WakeClass: WakeClassEvent, RequestedAt: noon}
	started       = ScopeRun{ID: "run_live", Status: RunStatusClaimed, Started: true, WakeClass: WakeClassEvent, RequestedAt: noon}
	claimedBeat   = ScopeRun{ID: "run_live", Status: RunStatusClaimed, WakeClass: WakeClassPeriodic, RoutineID: "R", Fingerprint: "f"}
	startedBeat   = ScopeRun{ID: "run_live", Status: RunStatusClaimed, Started: true, WakeClass: WakeClassPeriodic, RoutineID: "R", Fingerprint: "f"}
	comment       = CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceComment}
	spoken        = CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceComment, PersonSpoke: true}
	person        = CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceUser, PersonWaiting: true}
	assignment    = CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceTaskAssigned, Basis: WakeBasisAssignee}
	review        = CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceTaskAssigned, Basis: WakeBasisReviewer}
	heartbeat     = CoalesceRequest{Class: WakeClassPeriodic, Source: WakeupSourceRoutine, RoutineID: "R", Fingerprint: "f"}
	resolved      = CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceTaskBlockersResolved}
	merge         = func(id string) CoalescePlan { return CoalescePlan{Action: CoalesceMerge, RunID: id} }
	behindTheLive = CoalescePlan{Action: CoalesceNew, ParkedReason: ParkedReasonScopeBusy}
)

// parked is a queued run that waits, until an instant or (zero) without a date.
func parked(reason ParkedReason, until time.Time) ScopeRun {
	return ScopeRun{ID: "run_parked", Status: RunStatusQueued, ParkedReason: reason, ParkedUntil: until, WakeClass: WakeClassEvent, RequestedAt: noon}
}

func TestCoalesce(t *testing.T) {
	later := noon.Add(time.Minute)
	with := func(p CoalescePlan, change func(*CoalescePlan)) CoalescePlan { change(&p); return p }
	promote := func(p *CoalescePlan) { p.Promote = true }
	makeDue := func(p *CoalescePlan) { p.MakeDue = true }
	unblocks := func(list ...Unparked) func(*CoalescePlan) { return func(p *CoalescePlan) { p.Unblocked = list } }
	held := func(id string, minute int) ScopeRun {
		return ScopeRun{ID: id, Status: RunStatusQueued, ParkedReason: ParkedReasonTaskBlocked, WakeClass: WakeClassEvent, RequestedAt: noon.Add(time.Duration(minute) * time.Minute)}
	}
	for _, c := range []struct {
		name    string
		runs    []ScopeRun
		request CoalesceRequest
		want    CoalescePlan
	}{
		{"C55 an empty scope gets a new run, parked for the window", nil, comment,
			CoalescePlan{Action: CoalesceNew, ParkedReason: ParkedReasonWindow, ParkedUntil: noon.Add(5 * time.Second)}},
		{"an empty scope and a person waiting: due", nil, person, CoalescePlan{Action: CoalesceNew}},
		{"a re-send has no window", nil, CoalesceRequest{Class: WakeClassEvent, Resend: true}, CoalescePlan{Action: CoalesceNew}},
		{"a request that waited longer than the window to be routed is due", nil,
			CoalesceRequest{Class: WakeClassEvent, RequestedAt: noon.Add(-time.Minute)}, CoalescePlan{Action: CoalesceNew}},
		{"C63 the window runs from the request, not from routing", nil, CoalesceRequest{Class: WakeClassEvent, RequestedAt: noon.Add(-2 * time.Second)},
			CoalescePlan{Action: CoalesceNew, ParkedReason: ParkedReasonWindow, ParkedUntil: noon.Add(3 * time.Second)}},
		{"runs that ended are not there", []ScopeRun{{ID: "run_old", Status: RunStatusFinished}}, person, CoalescePlan{Action: CoalesceNew}},
		{"an assignment of a task known to be blocked is held", nil, CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceTaskAssigned, Basis: WakeBasisAssignee, TaskBlocked: true},
			CoalescePlan{Action: CoalesceNew, ParkedReason: ParkedReasonTaskBlocked}},
		{"a review of a blocked task is not held", nil, CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceTaskAssigned, Basis: WakeBasisReviewer, TaskBlocked: true, PersonWaiting: true},
			CoalescePlan{Action: CoalesceNew}},

		{"C56 a comment merges into the queued run", []ScopeRun{dueEvent}, comment, merge("run_due")},
		{"C60 an event promotes a queued heartbeat", []ScopeRun{duePeriodic}, comment, with(merge("run_due"), promote)},
		{"C62 a heartbeat does not demote a queued event", []ScopeRun{dueEvent}, heartbeat, merge("run_due")},
		{"C214 a manual fire promotes a queued heartbeat", []ScopeRun{duePeriodic}, person, with(merge("run_due"), promote)},
		{"a heartbeat merges into a queued heartbeat", []ScopeRun{duePeriodic}, heartbeat, merge("run_due")},
		{"a heartbeat merges into a retry that waits", []ScopeRun{parked(ParkedReasonBackoff, later)}, heartbeat, merge("run_parked")},

		{"C63 a second comment merges into the run that waits for its window", []ScopeRun{parked(ParkedReasonWindow, later)}, comment, merge("run_parked")},
		{"C64 a person ends the window", []ScopeRun{parked(ParkedReasonWindow, later)}, person, with(merge("run_parked"), makeDue)},
		{"C64 a person ends a backoff", []ScopeRun{parked(ParkedReasonBackoff, later)}, person, with(merge("run_parked"), makeDue)},
		{"C64 a person waits for a rate limit", []ScopeRun{parked(ParkedReasonRateLimit, later)}, person, merge("run_parked")},
		{"a person waits for a budget reservation", []ScopeRun{parked(ParkedReasonBudgetReserved, later)}, person, merge("run_parked")},
		{"a person waits for a worker", []ScopeRun{parked(ParkedReasonNoWorker, time.Time{})}, person, merge("run_parked")},
		{"a person waits for a guard", []ScopeRun{parked(ParkedReasonGuardError, later)}, person, merge("run_parked")},
		{"an agent's comment does not end a backoff", []ScopeRun{parked(ParkedReasonBackoff, later)}, comment, merge("run_parked")},
		{"S3.7 a person's comment ends a backoff", []ScopeRun{parked(ParkedReasonBackoff, later)}, spoken, with(merge("run_parked"), makeDue)},
		{"S3.7 and keeps the window: a burst is one run", []ScopeRun{parked(ParkedReasonWindow, later)}, spoken, merge("run_parked")},
		{"S3.7 a person ends a window", []ScopeRun{parked(ParkedReasonWindow, later)}, person, with(merge("run_parked"), makeDue)},
		{"S3.7 a rate limit ends by no wake", []ScopeRun{parked(ParkedReasonRateLimit, later)}, person, merge("run_parked")},
		{"S3.7 nor by a person's comment", []ScopeRun{parked(ParkedReasonRateLimit, later)}, spoken, merge("run_parked")},
		{"a comment unparks a run held by a blocker", []ScopeRun{parked(ParkedReasonTaskBlocked, time.Time{})}, comment, with(merge("run_parked"), makeDue)},
		{"a review unparks a run held by a blocker", []ScopeRun{parked(ParkedReasonTaskBlocked, time.Time{})}, review, with(merge("run_parked"), makeDue)},
		{"the end of the blockers unparks", []ScopeRun{parked(ParkedReasonTaskBlocked, time.Time{})},
			resolved, with(merge("run_parked"), makeDue)},
		{"the end of the blockers reaches a run that is held beside the due one, which takes the message", []ScopeRun{dueEvent, held("run_b", 1), held("run_a", 0)}, resolved,
			with(merge("run_due"), unblocks(Unparked{"run_a", ParkedReasonScopeBusy}, Unparked{"run_b", ParkedReasonScopeBusy}))},
		{"the end of the blockers reaches a run that is held behind a retry", []ScopeRun{parked(ParkedReasonBackoff, later), held("run_a", 0), held("run_b", 1)}, resolved,
			with(merge("run_parked"), unblocks(Unparked{RunID: "run_a"}, Unparked{"run_b", ParkedReasonScopeBusy}))},
		{"the end of the blockers reaches both of two held runs", []ScopeRun{held("run_a", 0), held("run_b", 1)}, resolved,
			with(with(merge("run_a"), makeDue), unblocks(Unparked{"run_b", ParkedReasonScopeBusy}))},
		{"the end of the blockers reaches runs that are held beside a live one", []ScopeRun{started, held("run_a", 0), held("run_b", 1)}, resolved,
			with(with(merge("run_a"), func(p *CoalescePlan) { p.ParkedReason = ParkedReasonScopeBusy }), unblocks(Unparked{"run_b", ParkedReasonScopeBusy}))},
		{"a comment for the due run leaves the held one alone", []ScopeRun{dueEvent, held("run_a", 0)}, comment, merge("run_due")},
		{"a second assignment leaves the blocker in force", []ScopeRun{parked(ParkedReasonTaskBlocked, time.Time{})}, assignment, merge("run_parked")},

		{"C57 a comment merges into a run that has not started", []ScopeRun{claimed}, comment, merge("run_live")},
		{"C61 an event does not promote a claimed heartbeat", []ScopeRun{claimedBeat}, comment, behindTheLive},
		{"a heartbeat merges into a claimed heartbeat", []ScopeRun{claimedBeat}, heartbeat, merge("run_live")},
		{"a heartbeat merges into a claimed event", []ScopeRun{claimed}, heartbeat, merge("run_live")},

		{"C57, C307 a comment on a started run waits behind it", []ScopeRun{started}, comment, behindTheLive},
		{"a person waits behind a started run as well", []ScopeRun{started}, person, behindTheLive},
		{"C57 the next comments merge into the one that waits behind it", []ScopeRun{started, parked(ParkedReasonScopeBusy, time.Time{})}, comment, merge("run_parked")},
		{"a person merged behind a live run stays there", []ScopeRun{started, parked(ParkedReasonScopeBusy, time.Time{})}, person, merge("run_parked")},
		{"a person does not make a retry due beside a live run", []ScopeRun{started, parked(ParkedReasonBackoff, later)}, person,
			CoalescePlan{Action: CoalesceMerge, RunID: "run_parked", ParkedReason: ParkedReasonScopeBusy}},
		{"an event does not unpark a blocked run beside a live one", []ScopeRun{claimed, parked(ParkedReasonTaskBlocked, time.Time{})}, comment,
			CoalescePlan{Action: CoalesceMerge, RunID: "run_parked", ParkedReason: ParkedReasonScopeBusy}},
		{"C306 a heartbeat during its own heartbeat is absorbed", []ScopeRun{startedBeat}, heartbeat, CoalescePlan{Action: CoalesceAbsorb, RunID: "run_live"}},
		{"a heartbeat with other values is not absorbed", []ScopeRun{startedBeat},
			CoalesceRequest{Class: WakeClassPeriodic, Source: WakeupSourceRoutine, RoutineID: "R", Fingerprint: "g"}, behindTheLive},
		{"a manual fire during a heartbeat is not absorbed", []ScopeRun{startedBeat},
			CoalesceRequest{Class: WakeClassEvent, Source: WakeupSourceRoutine, PersonWaiting: true, RoutineID: "R", Fingerprint: "f"}, behindTheLive},
		{"a heartbeat during a run of no routine is not absorbed", []ScopeRun{started}, CoalesceRequest{Class: WakeClassPeriodic}, behindTheLive},

		{"the due run comes before an older parked one", []ScopeRun{{ID: "run_old", Status: RunStatusQueued, ParkedReason: ParkedReasonBackoff, ParkedUntil: later, RequestedAt: noon.Add(-time.Hour)}, dueEvent},
			comment, merge("run_due")},
		{"the run behind a live one comes before a distant retry", []ScopeRun{started, parked(ParkedReasonScopeBusy, time.Time{}),
			{ID: "run_old", Status: RunStatusQueued, ParkedReason: ParkedReasonRateLimit, ParkedUntil: later, RequestedAt: noon.Add(-time.Hour)}}, comment, merge("run_parked")},
		{"of two that wait the nearer is taken", []ScopeRun{parked(ParkedReasonRateLimit, later),
			{ID: "run_near", Status: RunStatusQueued, ParkedReason: ParkedReasonBackoff, ParkedUntil: noon.Add(time.Second), RequestedAt: later}}, comment, merge("run_near")},
		{"a parking that is over counts as due", []ScopeRun{parked(ParkedReasonScopeBusy, time.Time{}),
			{ID: "run_over", Status: RunStatusQueued, ParkedReason: ParkedReasonBackoff, ParkedUntil: noon, RequestedAt: later}}, comment, merge("run_over")},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Coalesce(CoalesceFacts{Runs: c.runs, Request: c.request, Window: 5 * time.Second, Now: noon})
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestNoWindowMeansDueAtOnce(t *testing.T) {
	if got := Coalesce(CoalesceFacts{Request: comment, Now: noon}); !reflect.DeepEqual(got, CoalescePlan{Action: CoalesceNew}) {
		t.Errorf("got %+v", got)
	}
}

// scopeModel is one scope under random routing, claims, starts and ends.
type scopeModel struct {
	runs   []ScopeRun
	made   int
	merged map[string]int // requests of each run
}

func (m *scopeModel) route(request CoalesceRequest, now time.Time) (CoalescePlan, error) {
	plan := Coalesce(CoalesceFacts{Runs: m.runs, Request: request, Window: 5 * time.Second, Now: now})
	if plan.Action == CoalesceNew {
		m.made++
		id := fmt.Sprintf("run_%05d", m.made)
		m.runs = append(m.runs, ScopeRun{ID: id, Status: RunStatusQueued, ParkedReason: plan.ParkedReason, ParkedUntil: plan.ParkedUntil,
			WakeClass: request.Class, RoutineID: request.RoutineID, Fingerprint: request.Fingerprint, RequestedAt: now})
		m.merged[id]++
		return plan, nil
	}
	for i := range m.runs {
		if m.runs[i].ID == plan.RunID {
			err := m.join(&m.runs[i], request, plan)
			for _, u := range plan.Unblocked {
				j := slices.IndexFunc(m.runs, func(r ScopeRun) bool { return r.ID == u.RunID })
				m.runs[j].ParkedReason = u.ParkedReason
			}
			return plan, err
		}
	}
	return plan, fmt.Errorf("there is no run %s", plan.RunID)
}

// join applies a merge or an absorption, and checks what must hold of it.
func (m *scopeModel) join(run *ScopeRun, request CoalesceRequest, plan CoalescePlan) error {
	m.merged[run.ID]++
	switch {
	case plan.Action == CoalesceMerge && run.Started:
		return fmt.Errorf("merged into a started prompt")
	case plan.Action == CoalesceAbsorb && request.Class == WakeClassEvent:
		return fmt.Errorf("an event was absorbed")
	case plan.Promote && run.Status != RunStatusQueued:
		return fmt.Errorf("a claimed run was promoted")
	case plan.Promote && (run.WakeClass != WakeClassPeriodic || request.Class != WakeClassEvent):
		return fmt.Errorf("a promotion that is none")
	case plan.Action == CoalesceMerge && request.Class == WakeClassEvent && run.WakeClass == WakeClassPeriodic && !plan.Promote:
		return fmt.Errorf("an event is in a run that may be skipped as idle")
	}
	if plan.Promote {
		run.WakeClass = WakeClassEvent
	}
	if plan.ParkedReason != "" {
		run.ParkedReason, run.ParkedUntil = plan.ParkedReason, plan.ParkedUntil
	}
	if plan.MakeDue {
		run.ParkedReason, run.ParkedUntil = "", time.Time{}
	}
	return nil
}

// advance does what the other transactions do: the parking ends, a run is claimed, starts, ends, fails, is blocked.
func (m *scopeModel) advance(random *rand.Rand, now time.Time) {
	for i := range m.runs {
		run := &m.runs[i]
		switch {
		case run.Status == RunStatusQueued && run.ParkedReason != "" && run.due(now) && scopeTaken(CoalesceFacts{Runs: m.runs, Now: now}, run.ID):
			run.ParkedReason, run.ParkedUntil = ParkedReasonScopeBusy, time.Time{}
		case run.Status == RunStatusQueued && run.due(now) && random.IntN(3) == 0:
			run.Status, run.ParkedReason, run.ParkedUntil = RunStatusClaimed, "", time.Time{}
		case run.Status == RunStatusQueued && run.due(now) && random.IntN(8) == 0:
			run.ParkedReason, run.ParkedUntil = ParkedReasonTaskBlocked, time.Time{}
		case run.Status == RunStatusClaimed && !run.Started && random.IntN(2) == 0:
			run.Started = true
		case run.Started && random.IntN(4) == 0:
			run.Status, run.Started = RunStatusFinished, false
		case run.Started && random.IntN(4) == 0:
			run.Status, run.Started, run.ParkedReason, run.ParkedUntil = RunStatusQueued, false, ParkedReasonBackoff, now.Add(time.Minute)
		}
	}
	if !scopeTaken(CoalesceFacts{Runs: m.runs, Now: now}, "") {
		for i := range m.runs {
			if m.runs[i].ParkedReason == ParkedReasonScopeBusy && m.runs[i].Status == RunStatusQueued {
				m.runs[i].ParkedReason = ""
				break
			}
		}
	}
}

// check says what must hold after every step: at most one live run, and one that is due and none beside a live one.
func (m *scopeModel) check(now time.Time) error {
	live, due := 0, 0
	for _, run := range m.runs {
		if run.Status == RunStatusClaimed {
			live++
		}
		if run.Status == RunStatusQueued && run.ParkedReason == "" {
			due++
		}
	}
	if live > 1 || due > 1 || live+due > 1 {
		return fmt.Errorf("%d live and %d due runs at %s: %+v", live, due, now, m.runs)
	}
	return nil
}

func TestRoutingKeepsItsPromises(t *testing.T) {
	requests := []CoalesceRequest{comment, person, assignment, review, resolved, heartbeat, heartbeat,
		{Class: WakeClassPeriodic, RoutineID: "R", Fingerprint: "g"}, {Class: WakeClassEvent, Resend: true}}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		model := scopeModel{merged: map[string]int{}}
		now, routed := noon, 0
		for range 120 {
			now = now.Add(time.Duration(random.IntN(20)) * time.Second)
			model.advance(random, now)
			request := requests[random.IntN(len(requests))]
			classes := map[string]WakeClass{}
			for _, run := range model.runs {
				classes[run.ID] = run.WakeClass
			}
			plan, err := model.route(request, now)
			if err == nil {
				err = model.check(now)
			}
			for _, run := range model.runs {
				if classes[run.ID] == WakeClassEvent && run.WakeClass != WakeClassEvent {
					err = fmt.Errorf("the class of %s went back", run.ID)
				}
			}
			if err != nil {
				t.Fatalf("seed %d: %+v: %+v: %v", seed, request, plan, err)
			}
			routed++
		}
		total := 0
		for _, n := range model.merged {
			total += n
		}
		if total != routed {
			t.Fatalf("seed %d: %d requests, %d routed", seed, routed, total)
		}
	}
}

func TestFiftyWakesMakeOneRun(t *testing.T) { // C213
	model := scopeModel{merged: map[string]int{}}
	for range 50 {
		if _, err := model.route(comment, noon); err != nil {
			t.Fatal(err)
		}
	}
	if model.made != 1 || model.merged["run_00001"] != 50 {
		t.Errorf("%d runs, %v", model.made, model.merged)
	}
}

func TestHeartbeatLongerThanItsPeriodLaunchesEveryOtherTime(t *testing.T) { // C306: 5.5 minutes every 5, a day
	model := scopeModel{merged: map[string]int{}}
	launches := 0
	var ends time.Time
	for minute := 0; minute < 24*60; minute += 5 {
		now := noon.Add(time.Duration(minute) * time.Minute)
		if !now.Before(ends) {
			model.runs = nil
		}
		plan, err := model.route(heartbeat, now)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Action == CoalesceNew {
			launches++
			started := startedBeat
			started.ID = fmt.Sprintf("run_%05d", model.made)
			model.runs, ends = []ScopeRun{started}, now.Add(330*time.Second)
		}
	}
	if launches != 144 {
		t.Errorf("%d launches", launches)
	}
}
