package domain

import (
	"slices"
	"testing"
	"time"
)

// queuedRun is a due run of its own scope, asked for some seconds after noon.
func queuedRun(id string, second int, change ...func(*PassRun)) PassRun {
	r := PassRun{ID: id, Scope: id, Status: RunStatusQueued, RequestedAt: noon.Add(time.Duration(second) * time.Second)}
	for _, f := range change {
		f(&r)
	}
	return r
}

func TestWaitingFollowsTheClaimsOwnPredicates(t *testing.T) {
	now := noon.Add(time.Hour)
	soon, past := now.Add(time.Minute), now.Add(-time.Minute)
	parkedAs := func(reason ParkedReason, until time.Time) func(*PassRun) {
		return func(r *PassRun) { r.ParkedReason, r.ParkedUntil = reason, until }
	}
	inScope := func(s string) func(*PassRun) { return func(r *PassRun) { r.Scope = s } }
	live := func(r *PassRun) { r.Status = RunStatusClaimed }
	settles := func(r *PassRun) { r.Settles = true }
	lane := func(agent string, sessions int, runs ...PassRun) PassLane {
		l := PassLane{AgentID: agent, MaxSessions: sessions, Runs: runs}
		for _, r := range runs {
			if r.Status == RunStatusClaimed {
				l.Running++
			}
		}
		return l
	}
	resting := func(l PassLane) PassLane { l.EligibleAt = soon; return l }
	rested := func(l PassLane) PassLane { l.EligibleAt = past; return l }
	places := func(n int) *int { return &n }
	none := Waiting{Hold: QueueHoldNone}
	full := func(by ...string) Waiting { return Waiting{Hold: QueueHoldAgentAtCapacity, BlockedBy: by} }
	busy := func(by ...string) Waiting { return Waiting{Hold: QueueHoldScopeBusy, BlockedBy: by} }
	until := func(h QueueHold, at time.Time) Waiting { return Waiting{Hold: h, Until: at} }
	ceiling := Waiting{Hold: QueueHoldWorkspaceCeiling}
	for _, c := range []struct {
		name   string
		places *int
		lanes  []PassLane // the run asked about is "x" of agent "a"
		want   Waiting
	}{
		{"the only due run of an idle agent is taken", nil, []PassLane{lane("a", 1, queuedRun("x", 1))}, none},
		{"C66 a newer run counts the older one ahead of it as claimed", nil, []PassLane{lane("a", 1, queuedRun("o", 0), queuedRun("x", 1))}, full("o")},
		{"C66 the older run is taken", nil, []PassLane{lane("a", 1, queuedRun("n", 2), queuedRun("x", 1))}, none},
		{"runs asked for at one instant go by id", nil, []PassLane{lane("a", 1, queuedRun("w", 1), queuedRun("x", 1))}, full("w")},
		{"C67 another agent's run ahead holds nothing up", nil, []PassLane{lane("a", 1, queuedRun("x", 1)), lane("b", 1, queuedRun("o", 0))}, none},
		{"C67 a live run holds the agent's next one", nil, []PassLane{lane("a", 1, queuedRun("l", 0, live), queuedRun("x", 1))}, full("l")},
		{"C72 two sessions, one live: taken", nil, []PassLane{lane("a", 2, queuedRun("l", 0, live), queuedRun("x", 1))}, none},
		{"C72 two sessions, both live", nil, []PassLane{lane("a", 2, queuedRun("l", 0, live), queuedRun("m", 0, live), queuedRun("x", 1))}, full("l", "m")},
		{"two sessions, one live, one ahead", nil, []PassLane{lane("a", 2, queuedRun("l", 0, live), queuedRun("o", 0), queuedRun("x", 1))}, full("l", "o")},
		{"C311 capacity below the live runs", nil, []PassLane{lane("a", 1, queuedRun("l", 0, live), queuedRun("m", 0, live), queuedRun("x", 1))}, full("l", "m")},
		{"C71 the agent rests", nil, []PassLane{resting(lane("a", 1, queuedRun("x", 1)))}, until(QueueHoldAgentCooldown, soon)},
		{"C71 the agent has rested", nil, []PassLane{rested(lane("a", 1, queuedRun("x", 1)))}, none},
		{"C71 a rest ends at its instant", nil, []PassLane{func() PassLane { l := lane("a", 1, queuedRun("x", 1)); l.EligibleAt = now; return l }()}, none},
		{"live runs are named before the rest, since their end begins another", nil, []PassLane{resting(lane("a", 1, queuedRun("l", 0, live), queuedRun("x", 1)))}, full("l")},
		{"C63 the window is open", nil, []PassLane{lane("a", 1, queuedRun("x", 1, parkedAs(ParkedReasonWindow, soon)))}, until(QueueHoldWindow, soon)},
		{"C63 the window has closed, nobody promoted the run yet", nil, []PassLane{lane("a", 1, queuedRun("x", 1, parkedAs(ParkedReasonWindow, past)))}, none},
		{"C68 a retry in an hour", nil, []PassLane{lane("a", 1, queuedRun("x", 1, parkedAs(ParkedReasonBackoff, soon)))}, until(QueueHoldBackoff, soon)},
		{"C68 a retry whose time came", nil, []PassLane{lane("a", 1, queuedRun("x", 1, parkedAs(ParkedReasonBackoff, past)))}, none},
		{"C68 a retry whose time came is in its old place: the newer run waits", nil,
			[]PassLane{lane("a", 1, queuedRun("o", 0, parkedAs(ParkedReasonBackoff, past)), queuedRun("x", 1))}, full("o")},
		{"a run that stays parked is not ahead", nil, []PassLane{lane("a", 1, queuedRun("o", 0, parkedAs(ParkedReasonBackoff, soon)), queuedRun("x", 1))}, none},
		{"C64 a rate limit", nil, []PassLane{lane("a", 1, queuedRun("x", 1, parkedAs(ParkedReasonRateLimit, soon)))}, until(QueueHoldRateLimit, soon)},
		{"C318 a guard that could not be evaluated", nil, []PassLane{lane("a", 1, queuedRun("x", 1, parkedAs(ParkedReasonGuardError, soon)))}, until(QueueHoldGuardError, soon)},
		{"no worker", nil, []PassLane{lane("a", 1, queuedRun("x", 1, parkedAs(ParkedReasonNoWorker, time.Time{})))}, Waiting{Hold: QueueHoldNoWorker}},
		{"a blocked task", nil, []PassLane{lane("a", 1, queuedRun("x", 1, parkedAs(ParkedReasonTaskBlocked, time.Time{})))}, Waiting{Hold: QueueHoldTaskBlocked}},
		{"a reserved budget", nil, []PassLane{lane("a", 1, queuedRun("x", 1, parkedAs(ParkedReasonBudgetReserved, soon)))}, until(QueueHoldBudgetReserved, soon)},
		{"parking is named before the agent's capacity", nil,
			[]PassLane{lane("a", 1, queuedRun("l", 0, live), queuedRun("x", 1, parkedAs(ParkedReasonWindow, soon)))}, until(QueueHoldWindow, soon)},
		{"C307 a live run of the scope", nil, []PassLane{lane("a", 2, queuedRun("l", 0, live, inScope("s")), queuedRun("x", 1, inScope("s"), parkedAs(ParkedReasonScopeBusy, time.Time{})))}, busy("l")},
		{"C307 another scope goes in parallel", nil, []PassLane{lane("a", 2, queuedRun("l", 0, live, inScope("s")), queuedRun("x", 1))}, none},
		{"a due run of the scope", nil, []PassLane{lane("a", 2, queuedRun("o", 2, inScope("s")), queuedRun("x", 1, inScope("s"), parkedAs(ParkedReasonScopeBusy, time.Time{})))}, busy("o")},
		{"a retry whose time came, with a live run of its scope", nil,
			[]PassLane{lane("a", 2, queuedRun("l", 2, live, inScope("s")), queuedRun("x", 1, inScope("s"), parkedAs(ParkedReasonBackoff, past)))}, busy("l")},
		{"of two retries of a scope whose time came, the newer waits", nil,
			[]PassLane{lane("a", 2, queuedRun("o", 0, inScope("s"), parkedAs(ParkedReasonBackoff, past)), queuedRun("x", 1, inScope("s"), parkedAs(ParkedReasonBackoff, past)))}, busy("o")},
		{"C309 the workspace is full", places(0), []PassLane{lane("a", 1, queuedRun("x", 1))}, ceiling},
		{"C309 the ceiling was lowered below the live runs", places(-2), []PassLane{lane("a", 1, queuedRun("x", 1))}, ceiling},
		{"one place, another agent's run ahead", places(1), []PassLane{lane("a", 1, queuedRun("x", 1)), lane("b", 1, queuedRun("o", 0))}, ceiling},
		{"one place, the other run is newer", places(1), []PassLane{lane("a", 1, queuedRun("x", 1)), lane("b", 1, queuedRun("n", 2))}, none},
		{"the other agent's second turn is ahead, too", places(2), []PassLane{lane("a", 1, queuedRun("x", 3)), lane("b", 2, queuedRun("o", 1), queuedRun("p", 2))}, ceiling},
		{"the other agent has no second session", places(2), []PassLane{lane("a", 1, queuedRun("x", 3)), lane("b", 1, queuedRun("o", 1), queuedRun("p", 2))}, none},
		{"the other agent rests, its place is free", places(1), []PassLane{lane("a", 1, queuedRun("x", 1)), resting(lane("b", 1, queuedRun("o", 0)))}, none},
		{"the agent's own live runs are named before the ceiling", places(0), []PassLane{lane("a", 1, queuedRun("l", 0, live), queuedRun("x", 1))}, full("l")},
		{"a paused agent's run is taken off the queue", nil, []PassLane{lane("a", 1, queuedRun("x", 1, settles))}, none},
		{"all of them in one pass: what is settled takes no session", nil, []PassLane{lane("a", 1, queuedRun("o", 0, settles), queuedRun("x", 1, settles))}, none},
		{"C85 a heartbeat to be skipped ahead takes no session", nil, []PassLane{lane("a", 1, queuedRun("o", 0, settles), queuedRun("x", 1))}, none},
		{"nor a place of the workspace", places(1), []PassLane{lane("a", 1, queuedRun("x", 1)), lane("b", 1, queuedRun("o", 0, settles))}, none},
		{"a paused agent at capacity settles nothing: the claim does not look at it", nil, []PassLane{lane("a", 1, queuedRun("l", 0, live), queuedRun("x", 1, settles))}, full("l")},
		{"a full workspace settles nothing", places(0), []PassLane{lane("a", 1, queuedRun("x", 1, settles))}, ceiling},
		{"C310 the run ahead in the scope is settled, so this one is taken in the same pass", nil,
			[]PassLane{lane("a", 1, queuedRun("o", 0, settles, inScope("s")), queuedRun("x", 1, inScope("s"), parkedAs(ParkedReasonScopeBusy, time.Time{})))}, none},
		{"C310 what such a settlement frees is ahead, too", nil,
			[]PassLane{lane("a", 1, queuedRun("o", 0, settles, inScope("s")), queuedRun("p", 1, inScope("s"), parkedAs(ParkedReasonScopeBusy, time.Time{})), queuedRun("x", 2))}, full("p")},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Foresee(PassFacts{Now: now, Places: c.places, Lanes: c.lanes}).Waiting("a", "x")
			if got.Hold != c.want.Hold || !got.Until.Equal(c.want.Until) || !slices.Equal(got.BlockedBy, c.want.BlockedBy) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestForeseeingChangesNoFacts(t *testing.T) {
	places := 1
	facts := PassFacts{Now: noon.Add(time.Hour), Places: &places, Lanes: []PassLane{{AgentID: "a", MaxSessions: 1, Runs: []PassRun{queuedRun("y", 2), queuedRun("x", 1)}}}}
	Foresee(facts)
	if places != 1 || facts.Lanes[0].Runs[0].ID != "y" || facts.Lanes[0].Runs[1].Status != RunStatusQueued {
		t.Errorf("facts became %+v with %d places", facts, places)
	}
}

func TestEveryParkingHasItsAnswer(t *testing.T) {
	for _, reason := range parkedReasonValues {
		if parkedHolds[reason] == "" {
			t.Errorf("a run parked %s has no answer", reason)
		}
	}
}

func TestWhatWaitsForTheNextPassWaitsForAScheduler(t *testing.T) {
	seen := func(ago time.Duration) SchedulerSigns { return SchedulerSigns{Last: noon.Add(-ago), Now: noon} }
	never := SchedulerSigns{Now: noon}
	none, routing := Waiting{Hold: QueueHoldNone}, Waiting{Hold: QueueHoldRouting}
	rests := Waiting{Hold: QueueHoldAgentCooldown, Until: noon.Add(time.Minute)}
	for _, c := range []struct {
		name    string
		without Waiting // a look at the schedulers
		signs   SchedulerSigns
		want    Waiting
	}{
		{"a scheduler that was heard of a moment ago takes it", none, seen(time.Second), none},
		{"a sign as old as the lease still counts", none, seen(SchedulerLease), none},
		{"an older sign does not: it waits for a scheduler since then", none, seen(SchedulerLease + 1), Waiting{Hold: QueueHoldNoScheduler, Since: noon.Add(-SchedulerLease - 1)}},
		{"where no scheduler ever ran, nobody knows since when", none, never, Waiting{Hold: QueueHoldNoScheduler}},
		{"what is not routed waits for one, too", routing, never, Waiting{Hold: QueueHoldNoScheduler}},
		{"what the router will route within seconds is being routed", routing, seen(0), routing},
		{"what else holds a run would hold it with a scheduler, too", rests, never, rests},
		{"a clock of the database that was set back keeps nobody waiting", none, seen(-time.Hour), none},
	} {
		if got := c.without.Under(c.signs); got.Hold != c.want.Hold || !got.Since.Equal(c.want.Since) || !got.Until.Equal(c.want.Until) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestEveryAnswerSaysWhatToDo(t *testing.T) {
	for _, hold := range queueHoldValues {
		if (Waiting{Hold: hold}).Message() == "" {
			t.Errorf("%s has no words", hold)
		}
	}
	want := "since 2026-12-01T12:00:00Z no scheduler runs, so nothing is taken: start `rouse serve`; one that runs with --standby must be started without it"
	if got := (Waiting{Hold: QueueHoldNoScheduler, Since: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}).Message(); got != want {
		t.Errorf("it says %q", got)
	}
}

func TestOnlyAMissingSchedulerIsDatedInTheMessage(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for name, w := range map[string]Waiting{
		"no scheduler ever gave a sign": {Hold: QueueHoldNoScheduler},
		"another answer with a date":    {Hold: QueueHoldWindow, Since: noon},
	} {
		if got := w.Message(); got != holdTexts[w.Hold] {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestASchedulerThatNeverGaveASignDoesNotRunWhateverTheClockSays(t *testing.T) {
	if (SchedulerSigns{Now: time.Time{}.Add(time.Second)}).Run() {
		t.Error("it runs")
	}
}
