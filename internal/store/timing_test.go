package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// timed makes a routine with a schedule, whose cursor is moved back so far, and returns both.
func (w *world) timed(spec TriggerSpec, back time.Duration) (routine, trigger xid.ID) {
	w.Helper()
	spec.Kind, spec.Enabled = domain.TriggerKindSchedule, true
	routine = w.routineOf(w.agent(string(xid.New("a"))), spec)
	trigger = one[xid.ID](w, `SELECT id FROM routine_triggers WHERE routine_id = $1`, routine)
	if back > 0 {
		w.sql(`UPDATE routine_triggers SET next_run_at = date_trunc('minute', clock_timestamp()) - make_interval(secs => $2) WHERE id = $1`, trigger, back.Seconds())
	}
	return routine, trigger
}

func (w *world) fireTrigger(trigger xid.ID) {
	w.Helper()
	_, err := w.FireDue(w.Context(), trigger)
	w.ok(err)
}

// SPEC S4.5: slots that are older than the deadline are counted and not fired, under either policy; the next fire tells of them.
func TestASlotBeyondItsDeadlineIsMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// The newest slot that fired says which ones are older than the deadline, whatever minute it is: those from its deadline back.
	const told = `
SELECT concat_ws(' ', count(*), (sum(missed_ticks) - extract(epoch FROM max(scheduled_for) - min(missed_since)) / 60 + 4)::int,
  max(missed_ticks) = (array_agg(missed_ticks ORDER BY scheduled_for))[1]) FROM routine_runs WHERE routine_id = $1`
	for name, row := range map[string]struct {
		policy domain.CatchUpPolicy
		want   string
	}{
		"with a cap": {domain.CatchUpPolicyEnqueueMissedWithCap, "5 0 t"},
		"the newest": {domain.CatchUpPolicySkipMissed, "1 0 t"},
	} {
		deadline := 5 * time.Minute
		routine, trigger := w.timed(TriggerSpec{Cron: "* * * * *", StartDeadline: &deadline}, 30*time.Minute)
		w.sql(`UPDATE routines SET catch_up_policy = $2, concurrency_policy = 'ALWAYS_ENQUEUE' WHERE id = $1`, routine, row.policy)
		w.fireTrigger(trigger)
		if got := one[string](w, told, routine); got != row.want {
			t.Errorf("%s: fires, missed slots beside those beyond the deadline, and whether the oldest tells: %s, want %s", name, got, row.want)
		}
		if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE routine_id = $1 AND scheduled_for < clock_timestamp() - interval '6 minutes'`, routine); n != 0 {
			t.Errorf("%s: %d fires are beyond the deadline", name, n)
		}
		if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE routine_id = $1 AND late_by_ms > 60000`, routine); n != max(0, len(w.texts(`SELECT id FROM routine_runs WHERE routine_id = $1 AND started_at - scheduled_for > interval '1 minute'`, routine))) {
			t.Errorf("%s: %d fires say that they are late", name, n)
		}
	}
	deadline := 5 * time.Minute
	routine, trigger := w.timed(TriggerSpec{Cron: "0 0 1 1 *", StartDeadline: &deadline}, 0)
	w.sql(`UPDATE routine_triggers SET next_run_at = date_trunc('year', clock_timestamp(), 'UTC') WHERE id = $1`, trigger)
	w.fireTrigger(trigger)
	if got := one[string](w, `SELECT concat_ws(' ', missed_ticks, missed_since IS NOT NULL, last_fired_at IS NULL, next_run_at > clock_timestamp()) FROM routine_triggers WHERE id = $1`, trigger); got != "1 t t t" {
		t.Errorf("what is left for the next fire: %s", got)
	}
	w.sql(`UPDATE routine_triggers SET cron = '* * * * *', next_run_at = date_trunc('minute', clock_timestamp()) WHERE id = $1`, trigger)
	w.fireTrigger(trigger)
	if got := w.texts(`SELECT missed_ticks::text FROM routine_runs WHERE routine_id = $1`, routine); !slices.Equal(got, []string{"1"}) {
		t.Errorf("the next fire tells %v missed, want 1", got)
	}
	if n := one[int](w, `SELECT missed_ticks FROM routine_triggers WHERE id = $1`, trigger); n != 0 {
		t.Errorf("%d are still left", n)
	}
}

// A schedule of one instant fires once and is switched off; one without a slot within its bounds is switched off when it is saved.
func TestAScheduleThatIsOverIsSwitchedOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := time.Now().Add(time.Hour).Truncate(time.Minute)
	routine, trigger := w.timed(TriggerSpec{At: &at}, 0)
	if next := one[time.Time](w, `SELECT next_run_at FROM routine_triggers WHERE id = $1`, trigger); !next.Equal(at) {
		t.Fatalf("it is due at %s, want %s", next, at)
	}
	w.sql(`UPDATE routine_triggers SET at = date_trunc('minute', clock_timestamp()), next_run_at = date_trunc('minute', clock_timestamp()) WHERE id = $1`, trigger)
	w.fireTrigger(trigger)
	w.fireTrigger(trigger)
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE routine_id = $1`, routine); n != 1 {
		t.Errorf("%d fires, want 1", n)
	}
	const state = `SELECT concat_ws(' ', enabled, next_run_at IS NULL, error) FROM routine_triggers WHERE id = $1`
	if got := one[string](w, state, trigger); got != "f t "+domain.NoSlotLeft {
		t.Errorf("after it: %s", got)
	}
	soon := time.Now().Add(time.Second)
	_, never := w.timed(TriggerSpec{Cron: "0 0 29 2 *", EndsAt: &soon}, 0)
	if got := one[string](w, state, never); got != "f t "+domain.NoSlotLeft {
		t.Errorf("without a slot: %s", got)
	}
	if armed, err := w.ArmTriggers(t.Context()); err != nil || armed != 0 {
		t.Errorf("%d schedules are armed again, %v", armed, err)
	}
	past := time.Now().Add(-time.Hour)
	_, err := w.CreateTrigger(t.Context(), CreateTrigger{WorkspaceID: w.workspace, RoutineID: routine, Spec: TriggerSpec{Kind: domain.TriggerKindSchedule, Enabled: true, At: &past}})
	if !isRefusal(err) {
		t.Errorf("an instant that is over: %v", err)
	}
	if _, err := w.UpdateTrigger(t.Context(), UpdateTrigger{WorkspaceID: w.workspace, TriggerID: never, Patch: domain.TriggerPatch{EndsAt: domain.Change[time.Time]{Set: true}, Enabled: domain.To(true)}}); err != nil {
		t.Fatal(err)
	}
	if got := one[string](w, state, never); got != "t f" {
		t.Errorf("without an end: %s", got)
	}
	w.sound()
}

// A slot fires once, with its jitter: the tick takes it when it is due, and not before.
func TestAJitteredSlotFiresWhenItIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	routine, trigger := w.timed(TriggerSpec{Cron: "0 * * * *", Jitter: 30 * time.Minute}, 0)
	due := one[time.Time](w, `SELECT next_run_at FROM routine_triggers WHERE id = $1`, trigger)
	if late := due.Sub(due.Truncate(time.Hour)); late > 30*time.Minute {
		t.Errorf("it is due %s after its slot", late)
	}
	w.fireTrigger(trigger)
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE routine_id = $1`, routine); n != 0 {
		t.Errorf("%d fires before it is due", n)
	}
	row, err := w.client.RoutineTrigger.Get(t.Context(), trigger)
	w.ok(err)
	if spec := TimingSpec(row); spec.Seed != string(trigger) || spec.Jitter != 30*time.Minute {
		t.Errorf("the spec is %+v", spec)
	}
}

// Slots of an outage are fired anew, marked and once each; what has fired, and what the schedule will fire, stays as it is.
func TestLostSlotsAreFiredAnewOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	routine, trigger := w.timed(TriggerSpec{Cron: "* * * * *"}, 2*time.Minute)
	w.sql(`UPDATE routines SET concurrency_policy = 'ALWAYS_ENQUEUE' WHERE id = $1`, routine)
	cursor := one[time.Time](w, `SELECT next_run_at FROM routine_triggers WHERE id = $1`, trigger)
	ask := func(from, until time.Time, dry bool) string {
		t.Helper()
		slots, _, err := w.BackfillRoutine(t.Context(), BackfillRoutine{WorkspaceID: w.workspace, RoutineID: routine, TriggerID: trigger, From: from, Until: until, DryRun: dry})
		w.ok(err)
		counts := map[domain.BackfillOutcome]int{}
		for _, s := range slots {
			counts[s.Outcome]++
		}
		return fmt.Sprint(counts[domain.BackfillOutcomeFired], counts[domain.BackfillOutcomeAlreadyFired], counts[domain.BackfillOutcomePending])
	}
	from, until := cursor.Add(-5*time.Minute), cursor.Add(time.Minute)
	for i, want := range []string{"5 0 1", "5 0 1", "0 5 1"} {
		if got := ask(from, until, i == 0); got != want {
			t.Errorf("call %d: %s, want %s", i, got, want)
		}
	}
	if got := one[string](w, `SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE backfilled), count(late_by_ms)) FROM routine_runs WHERE routine_id = $1`, routine); got != "5 5 0" {
		t.Errorf("fires, marked ones and late ones: %s", got)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE routine_id = $1 AND payload ->> 'backfilled' = 'true'`, routine); n != 5 {
		t.Errorf("%d requests are marked", n)
	}
	w.fireTrigger(trigger)
	if n := one[int](w, `SELECT count(*) FROM (SELECT fire_key FROM routine_runs WHERE routine_id = $1 GROUP BY 1 HAVING count(*) > 1) x`, routine); n != 0 {
		t.Errorf("%d slots fired twice", n)
	}
	for name, in := range map[string]BackfillRoutine{
		"a window in the future":     {From: from, Until: time.Now().Add(time.Hour)},
		"a window of no length":      {From: from, Until: from},
		"a window of too many slots": {From: from.Add(-20 * time.Hour), Until: from},
		"another's trigger":          {RoutineID: w.routineOf(w.agent("other")), From: from, Until: until},
	} {
		in.WorkspaceID, in.TriggerID = w.workspace, trigger
		if in.RoutineID == "" {
			in.RoutineID = routine
		}
		if _, _, err := w.BackfillRoutine(t.Context(), in); !isRefusal(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.sql(`UPDATE routines SET status = 'PAUSED' WHERE id = $1`, routine)
	if _, _, err := w.BackfillRoutine(t.Context(), BackfillRoutine{WorkspaceID: w.workspace, RoutineID: routine, TriggerID: trigger, From: from, Until: until}); !isRefusal(err) {
		t.Errorf("a paused routine: %v", err)
	}
	w.sound()
}
