package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// routine makes a lightweight routine with a schedule every minute and returns its trigger.
func (w *world) routine(agent xid.ID, change func(*CreateRoutine)) xid.ID {
	w.Helper()
	in := CreateRoutine{WorkspaceID: w.workspace, Name: "heartbeat " + string(xid.New("x")), Description: "Look around, {{date}}.", AssigneeID: agent,
		ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap, CatchUpMax: 25,
		Triggers: []TriggerSpec{{Kind: domain.TriggerKindSchedule, Cron: w.hourly(), Enabled: true}}}
	if change != nil {
		change(&in)
	}
	made, err := w.CreateRoutine(w.Context(), in)
	w.ok(err)
	return one[xid.ID](w, `SELECT id FROM routine_triggers WHERE routine_id = $1`, made.ID)
}

const everyMinute = "* * * * *"

// hourly is a schedule whose last slot was half an hour ago, so that no slot comes due while a test runs.
func (w *world) hourly() string {
	w.Helper()
	return fmt.Sprintf("%d * * * *", one[int](w, `SELECT extract(minute FROM clock_timestamp() - interval '30 minutes')::int`))
}

// lastSlot is the newest slot of a trigger whose schedule is everyMinute or hourly, in SQL.
const lastSlot = `
CASE cron
  WHEN '* * * * *' THEN date_trunc('minute', clock_timestamp())
  ELSE date_trunc('hour', clock_timestamp() - make_interval(mins => split_part(cron, ' ', 1)::int)) + make_interval(mins => split_part(cron, ' ', 1)::int)
END`

// makeDue sets a trigger's cursor to its last slot.
func (w *world) makeDue(trigger xid.ID) {
	w.Helper()
	w.sql(`UPDATE routine_triggers SET next_run_at = `+lastSlot+` WHERE id = $1`, trigger)
	w.sql(`UPDATE routine_runs SET fire_key = fire_key || ':earlier' WHERE trigger_id = $1`, trigger)
	w.sql(`UPDATE wakeup_requests SET idempotency_key = idempotency_key || ':earlier'`)
}

// down moves a trigger's cursor to a slot that is older than its last one by d, as if nothing had ticked for so long.
func (w *world) down(trigger xid.ID, d time.Duration) {
	w.Helper()
	w.sql(`UPDATE routine_triggers SET next_run_at = `+lastSlot+` - make_interval(secs => $2) WHERE id = $1`, trigger, d.Seconds())
}

// tick does what the cron tick does: fire what is due, route what was sent.
func (w *world) tick() {
	w.Helper()
	for _, due := range must(w, first(w.DueTriggers(w.Context(), DueTrigger{}, 100)), nil) {
		agents, err := w.FireDue(w.Context(), due.ID)
		w.ok(err)
		for _, agent := range agents {
			w.route(agent)
		}
	}
}

// SPEC S4.5: what fires after an outage, under each policy.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		down         time.Duration
		change       func(*CreateRoutine)
		fires, runs  int
		missed       int
		skippedFires int
	}{
		{"C39 nothing missed", 0, nil, 1, 1, 0, 0},
		{"C40 ten minutes down become one run", 10 * time.Minute, nil, 11, 1, 0, 0},
		{"C41 a hundred minutes down, cap 5", 100 * time.Minute, func(r *CreateRoutine) { r.CatchUpMax = 5 }, 5, 1, 96, 0},
		{"C43 SKIP_MISSED fires the newest slot", 5 * time.Hour, func(r *CreateRoutine) { r.CatchUpPolicy = domain.CatchUpPolicySkipMissed }, 1, 1, 0, 0},
		{"C44 ALWAYS_ENQUEUE makes a run for each", 100 * time.Minute, func(r *CreateRoutine) {
			r.CatchUpMax, r.ConcurrencyPolicy = 5, domain.ConcurrencyPolicyAlwaysEnqueue
		}, 5, 5, 96, 0},
		{"C44 SKIP_IF_ACTIVE makes one run and skips the rest", 100 * time.Minute, func(r *CreateRoutine) {
			r.CatchUpMax, r.ConcurrencyPolicy = 5, domain.ConcurrencyPolicySkipIfActive
		}, 5, 1, 96, 4},
		{"C45 a year down", 366 * 24 * time.Hour, func(r *CreateRoutine) { r.CatchUpMax = 5 }, 5, 1, 10_000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			trigger := w.routine(w.agent("worker"), c.change)
			w.sql(`UPDATE routine_triggers SET cron = $1`, everyMinute)
			w.down(trigger, c.down)
			w.tick()
			if n := one[int](w, `SELECT count(*) FROM routine_runs`); n != c.fires {
				t.Errorf("%d fires, want %d", n, c.fires)
			}
			if n := one[int](w, `SELECT count(*) FROM runs`); n != c.runs {
				t.Errorf("%d runs, want %d", n, c.runs)
			}
			if n := one[int](w, `SELECT max(missed_ticks) FROM routine_runs`); n != c.missed {
				t.Errorf("missed %d, want %d", n, c.missed)
			}
			if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE status = 'SKIPPED' AND skip_reason = 'CONCURRENCY_POLICY'`); n != c.skippedFires {
				t.Errorf("%d fires are SKIPPED, want %d", n, c.skippedFires)
			}
			if !one[bool](w, `SELECT next_run_at > clock_timestamp() AND next_run_at <= clock_timestamp() + interval '1 minute' FROM routine_triggers`) {
				t.Error("the cursor is not at the first slot after now")
			}
			if !one[bool](w, `SELECT last_run_at IS NOT NULL FROM routines`) {
				t.Error("last_run_at was not written")
			}
			w.tick()
			if n := one[int](w, `SELECT count(*) FROM routine_runs`); n != c.fires {
				t.Error("C208 a second tick fired again")
			}
			w.sound()
		})
	}
}

// SPEC S3.3, S4.3: a slot is known by its trigger and its minute.
func TestACronKeyNamesTheMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trigger := w.routine(w.agent("worker"), nil)
	w.makeDue(trigger)
	w.tick()
	want := one[string](w, `SELECT 'routine:' || routine_id || ':' || id || ':' || floor(extract(epoch FROM clock_timestamp()) / 60)::bigint FROM routine_triggers`)
	got := one[string](w, `SELECT idempotency_key FROM wakeup_requests`)
	if got[:strings.LastIndex(got, ":")] != want[:strings.LastIndex(want, ":")] {
		t.Errorf("C32 the key is %s, want %s", got, want)
	}
}

// SPEC S4.3: a slot fires once, also where the cursor was set back.
func TestASlotThatFiredIsNotFiredAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trigger := w.routine(w.agent("worker"), nil)
	w.down(trigger, 0)
	slot := one[time.Time](w, `SELECT next_run_at FROM routine_triggers`)
	w.tick()
	w.sql(`UPDATE routine_triggers SET next_run_at = $1`, slot)
	w.tick()
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE scheduled_for = $1`, slot); n != 1 {
		t.Errorf("C49 the slot has %d routine runs, want 1", n)
	}
}

// SPEC S4.4: the status gate: the cursor moves on and nothing is banked; fires by hand are refused.
func TestARoutineThatIsNotActiveDoesNotFire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trigger := w.routine(w.agent("worker"), nil)
	w.sql(`UPDATE routines SET status = 'PAUSED'`)
	w.down(trigger, time.Hour)
	w.tick()
	if n := one[int](w, `SELECT count(*) FROM routine_runs`); n != 0 {
		t.Errorf("C30 a paused routine has %d fires", n)
	}
	if !one[bool](w, `SELECT next_run_at > clock_timestamp() AND last_fired_at IS NULL FROM routine_triggers`) {
		t.Error("C30 the cursor did not move on, or last_fired_at was written")
	}
	if one[bool](w, `SELECT last_run_at IS NOT NULL FROM routines`) {
		t.Error("C30 last_run_at was written")
	}
	_, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: one[xid.ID](w, `SELECT id FROM routines`)})
	wantUserError(t, err, domain.UserErrorCodeInvalidState)
}

// SPEC S4.3: an unparsable stored expression switches its trigger off with a visible error.
func TestAnUnparsableStoredExpressionSwitchesItsTriggerOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	broken, good := w.routine(agent, nil), w.routine(agent, nil)
	w.makeDue(broken)
	w.makeDue(good)
	w.sql(`UPDATE routine_triggers SET cron = 'nonsense' WHERE id = $1`, broken)
	w.tick()
	if one[bool](w, `SELECT enabled OR error IS NULL FROM routine_triggers WHERE id = $1`, broken) {
		t.Error("C46 the broken trigger is still on, or says nothing")
	}
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE trigger_id = $1`, good); n != 1 {
		t.Error("C46 the other trigger did not fire")
	}
	if n := one[int](w, `SELECT count(*) FROM activities WHERE code = 'TRIGGER_CHANGED'`); n != 1 {
		t.Errorf("C46 %d activity entries, want 1", n)
	}
}

// SPEC S4.3: an enabled trigger without a next slot is armed, without a fire.
func TestATriggerWithoutANextSlotIsArmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.routine(w.agent("worker"), nil)
	w.sql(`UPDATE routine_triggers SET next_run_at = NULL`)
	if n := must(w, first(w.ArmTriggers(t.Context())), nil); n != 1 {
		t.Errorf("C47 armed %d triggers, want 1", n)
	}
	if !one[bool](w, `SELECT next_run_at > clock_timestamp() FROM routine_triggers`) {
		t.Error("C47 the next slot is not after now")
	}
	if n := one[int](w, `SELECT count(*) FROM routine_runs`); n != 0 {
		t.Error("C47 arming fired")
	}
}

func TestATriggerThatCannotBeArmedKeepsNoOtherFromItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.routine(agent, func(r *CreateRoutine) { r.Name = "one" })
	w.routine(agent, func(r *CreateRoutine) { r.Name = "two" })
	w.sql(`UPDATE routine_triggers SET next_run_at = NULL`)
	first := one[xid.ID](w, `SELECT id FROM routine_triggers t WHERE next_run_at IS NULL LIMIT 1`)
	w.sql(`ALTER TABLE routine_triggers ADD CONSTRAINT test_never CHECK (next_run_at IS NULL OR id <> '` + string(first) + `')`)
	armed, err := w.ArmTriggers(t.Context())
	if armed != 1 || err == nil || !strings.Contains(err.Error(), string(first)) {
		t.Errorf("armed %d triggers, %v; want one, and an error that names the other", armed, err)
	}
}

func TestAFireByHandTellsTheTimeOfTheScheduleItNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := w.CreateRoutine(t.Context(), CreateRoutine{WorkspaceID: w.workspace, Name: "r", AssigneeID: w.agent("worker"), Description: "{{datetime}}",
		ConcurrencyPolicy: domain.ConcurrencyPolicyAlwaysEnqueue, CatchUpPolicy: domain.CatchUpPolicySkipMissed, CatchUpMax: 1,
		Triggers: []TriggerSpec{{Kind: domain.TriggerKindSchedule, Cron: "0 9 * * *", TimeZone: "Pacific/Kiritimati", Enabled: true}, {Kind: domain.TriggerKindManual, Enabled: true}}})
	w.ok(err)
	for kind, zone := range map[string]string{"SCHEDULE": "Pacific/Kiritimati", "MANUAL": "UTC", "": "UTC"} { // 14 hours ahead of UTC
		trigger := one[xid.ID](w, `SELECT coalesce((SELECT id FROM routine_triggers WHERE kind = $1), '')`, kind)
		location, err := time.LoadLocation(zone)
		w.ok(err)
		fire, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: made.ID, TriggerID: trigger})
		w.ok(err)
		at := one[time.Time](w, `SELECT started_at FROM routine_runs WHERE id = $1`, fire.ID)
		told := one[string](w, `SELECT variables->>'date' FROM routine_runs WHERE id = $1`, fire.ID)
		if want := at.In(location).Format(time.DateOnly); told != want {
			t.Errorf("a fire that names a %q trigger is told %s, want %s", kind, told, want)
		}
		preview, err := w.PreviewFire(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: made.ID, TriggerID: trigger}, false)
		w.ok(err)
		if got := domain.VariableValues(preview.Resolved)["date"]; got != told {
			t.Errorf("the preview says %s, the fire said %s", got, told)
		}
	}
}

// SPEC S4.10, S3.3: fires by hand have no key, and a person waits for them.
func TestTwoManualFiresInAMinuteAreTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.routine(w.agent("worker"), nil)
	routine := one[xid.ID](w, `SELECT id FROM routines`)
	for range 2 {
		_, agent, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: routine})
		if w.ok(err); agent != "" {
			t.Errorf("%s is to be routed still", agent)
		}
	}
	if n := one[int](w, `SELECT count(*) FROM routine_runs`); n != 2 {
		t.Errorf("C33 %d routine runs, want 2", n)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE person_waiting`); n != 2 {
		t.Errorf("C33 %d requests of a waiting person, want 2", n)
	}
}

// SPEC S4.10, S3.5: a fire by hand that meets a queued heartbeat.
func TestAManualFireOfAQueuedHeartbeatPromotesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.window(time.Minute)
	trigger := w.routine(w.agent("worker"), nil)
	w.makeDue(trigger)
	w.tick()
	_, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: one[xid.ID](w, `SELECT id FROM routines`)})
	w.ok(err)
	if class := one[string](w, `SELECT wake_class FROM runs`); class != "EVENT" {
		t.Errorf("C214 the run's class is %s, want EVENT", class)
	}
	w.start(w.claimOne()) // an idle worker's heartbeat would have been skipped
	w.sound()
}

// SPEC S4.2: what is refused when saved, at its field, and nothing of it is kept.
func TestCreateRoutineRefusesWholeWhatItCannotFire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	for _, c := range []struct {
		name   string
		change func(*CreateRoutine)
		code   domain.UserErrorCode
		field  string
	}{
		{"C16 a date that never comes", func(r *CreateRoutine) { r.Triggers[0].Cron = "0 0 30 2 *" }, domain.UserErrorCodeCronNeverFires, "triggers.0.schedule.cron"},
		{"C17 nonsense", func(r *CreateRoutine) { r.Triggers[0].Cron = "invalid" }, domain.UserErrorCodeInvalid, "triggers.0.schedule.cron"},
		{"C17 an unknown zone", func(r *CreateRoutine) { r.Triggers[0].TimeZone = "Not/AZone" }, domain.UserErrorCodeUnknownTimeZone, "triggers.0.schedule.timeZone"},
		{"an agent that does not exist", func(r *CreateRoutine) { r.AssigneeID = xid.New("agt") }, domain.UserErrorCodeNotFound, "assigneeId"},
		{"no name", func(r *CreateRoutine) { r.Name = "  " }, domain.UserErrorCodeRequired, "name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := CreateRoutine{WorkspaceID: w.workspace, Name: "r", AssigneeID: agent, ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive,
				CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap, CatchUpMax: 25, Triggers: []TriggerSpec{{Kind: domain.TriggerKindSchedule, Cron: everyMinute, Enabled: true}}}
			c.change(&in)
			_, err := w.CreateRoutine(t.Context(), in)
			wantUserError(t, err, c.code)
			if err != nil && !strings.HasPrefix(err.Error(), c.field+":") {
				t.Errorf("the error is at %q, want %s", err, c.field)
			}
			if n := one[int](w, `SELECT count(*) FROM routines`); n != 0 {
				t.Error("something was kept")
			}
		})
	}
}

// SPEC S4.5: catch_up_max is clamped to 1..1000.
func TestCatchUpMaxIsClampedAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	for given, want := range map[int]int{0: 1, -3: 1, 5000: 1000, 25: 25} {
		in := CreateRoutine{WorkspaceID: w.workspace, Name: string(xid.New("r")), AssigneeID: agent, ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive,
			CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap, CatchUpMax: given}
		made := must(w, first(w.CreateRoutine(t.Context(), in)), nil)
		if got := one[int](w, `SELECT catch_up_max FROM routines WHERE id = $1`, made.ID); got != want {
			t.Errorf("C42 %d is stored as %d, want %d", given, got, want)
		}
		if clamped := len(made.Clamped) == 1; clamped != (given != want) {
			t.Errorf("C42 %d is reported as clamped: %v", given, made.Clamped)
		}
	}
}

// SPEC S4.6: a fire that was merged into one whose run had begun, and so got a run of its own, is active until that run ends.
func TestAMergedFireWithARunOfItsOwnIsActive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.routine(agent, func(*CreateRoutine) {})
	routine := one[xid.ID](w, `SELECT id FROM routines`)
	fire := func() xid.ID {
		t.Helper()
		made, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: routine})
		w.ok(err)
		w.route(agent)
		return made.ID
	}
	shown := func(id xid.ID) string {
		t.Helper()
		return one[string](w, `SELECT status || CASE WHEN completed_at IS NULL THEN ' open' ELSE ' ended' END || coalesce(' held by ' || held_by_id, '') FROM routine_runs WHERE id = $1`, id)
	}
	first := fire()
	begun := w.claimOne()
	w.start(begun)
	second := fire() // an event beside a run that has begun: a run of its own
	if got := shown(second); got != "COALESCED open held by "+string(first) {
		t.Fatalf("the second fire is %s", got)
	}
	w.finish(begun)
	w.sql(`UPDATE agent_lanes SET eligible_at = clock_timestamp()`)
	third := fire()
	if got := shown(third); got != "COALESCED ended held by "+string(second) {
		t.Errorf("beside the second one's run the third fire is %s, want it held by %s", got, second)
	}
	next := w.claimOne()
	w.start(next)
	w.finish(next)
	if got := shown(second); got != "COALESCED ended held by "+string(first) {
		t.Errorf("once its run has ended the second fire is %s", got)
	}
	if got := shown(fire()); got != "ENQUEUED open" {
		t.Errorf("the next fire is %s", got)
	}
}
