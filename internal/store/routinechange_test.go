package store

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"rouse.dev/rouse/internal/cron"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// SPEC S4.1, S2: a deleted routine.
func TestADeletedRoutineTakesBackWhatItSentFromEveryQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	awake := func(c *CreateAgent) { c.SkipIdleWakeups = pgtx.Ptr(false) }
	ada, bob := w.agent("ada", awake), w.agent("bob", awake)
	trigger := w.routine(ada, nil)
	routine := one[xid.ID](w, `SELECT id FROM routines`)
	w.makeDue(trigger)
	w.tick()
	other := w.wake(ada) // no business of the routine
	_, err := w.UpdateRoutine(t.Context(), UpdateRoutine{WorkspaceID: w.workspace, RoutineID: routine, Patch: domain.RoutinePatch{AssigneeID: domain.To(bob)}})
	w.ok(err)
	w.makeDue(trigger)
	w.tick()
	w.start(w.claimOf(bob))
	_, _, err = w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: routine, Variables: map[string]string{"a": "1"}}) // unrouted
	w.ok(err)
	w.ok(w.DeleteRoutine(t.Context(), w.workspace, routine))
	if n := one[int](w, `SELECT count(*) FROM runs WHERE routine_id IS NOT NULL AND agent_id = $1 AND status = 'CANCELLED' AND end_reason = 'ROUTINE_DELETED'`, ada); n != 1 {
		t.Errorf("%d runs of the former assignee are cancelled, want 1", n)
	}
	if n := one[int](w, `SELECT count(*) FROM runs WHERE agent_id = $1 AND status = 'CLAIMED'`, bob); n != 1 {
		t.Error("the live run did not go on")
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE agent_id = $1 AND status = 'CANCELLED' AND end_reason = 'ROUTINE_DELETED'`, bob); n != 1 {
		t.Errorf("%d unrouted requests are cancelled, want 1", n)
	}
	w.wantRequest(other, domain.WakeupStatusQueued)
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE status = 'CANCELLED' AND skip_reason = 'ROUTINE_DELETED'`); n != 2 {
		t.Errorf("%d fires are cancelled, want 2", n)
	}
	w.down(trigger, 0)
	w.sql(`UPDATE routine_triggers SET enabled = true`) // by hand: its routine is gone all the same
	w.tick()
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE trigger_id = $1`, trigger); n != 2 {
		t.Errorf("%d fires of a deleted routine's trigger", n)
	}
	w.sound()
}

// claimOf claims the due run of an agent.
func (w *world) claimOf(agent xid.ID) Claimed {
	w.Helper()
	for _, c := range w.claim(10) {
		if w.run(c.RunID).agentID == agent {
			return c
		}
		w.ok(w.HandBack(w.Context(), c.Attempt, Unfinished{}))
	}
	w.Fatalf("agent %s has no due run", agent)
	return Claimed{}
}

// SPEC S4.4: a missing agent leaves an activity entry, and other triggers fire.
func TestARoutineWhoseAgentIsGoneSaysWhyItDidNotFire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.agent("ada"), w.agent("bob")
	gone, good := w.routine(ada, nil), w.routine(bob, nil)
	w.ok(w.DeleteAgent(t.Context(), w.workspace, ada))
	w.makeDue(gone)
	w.makeDue(good)
	w.tick()
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE trigger_id = $1`, gone); n != 0 {
		t.Errorf("C220 %d fires", n)
	}
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE trigger_id = $1`, good); n != 1 {
		t.Error("C220 the other trigger did not fire")
	}
	if n := one[int](w, `SELECT count(*) FROM activities WHERE code = 'ROUTINE_CHANGED' AND summary LIKE '%its agent was deleted%'`); n != 1 {
		t.Errorf("C220 %d activity entries, want 1", n)
	}
	if !one[bool](w, `SELECT next_run_at > clock_timestamp() AND last_fired_at IS NULL FROM routine_triggers WHERE id = $1`, gone) {
		t.Error("C220 the cursor did not move on")
	}
}

// SPEC S4.3, S3.3: a fire is keyed on its trigger.
func TestTwoTriggersWithOneExpressionAreTwoFires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := TriggerSpec{Kind: domain.TriggerKindSchedule, Cron: w.hourly(), Enabled: true}
	w.routineOf(w.agent("worker"), spec, spec)
	w.sql(`UPDATE routine_triggers SET next_run_at = ` + lastSlot)
	w.tick()
	if n := one[int](w, `SELECT count(*) FROM routine_runs`); n != 2 {
		t.Errorf("C206 %d routine runs, want 2", n)
	}
}

func (w *world) routineOf(agent xid.ID, triggers ...TriggerSpec) xid.ID {
	w.Helper()
	made, err := w.CreateRoutine(w.Context(), CreateRoutine{WorkspaceID: w.workspace, Name: string(xid.New("r")), AssigneeID: agent,
		ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap, CatchUpMax: 25, Triggers: triggers})
	return must(w, made, err).ID
}

// SPEC S4.3: the next slot depends only on expression, zone and now.
func TestALateSlotFiresAndTheScheduleDoesNotDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.routineOf(w.agent("worker"), TriggerSpec{Kind: domain.TriggerKindSchedule, Cron: "0 * * * *", Enabled: true})
	slot := one[time.Time](w, `SELECT date_trunc('hour', clock_timestamp())`)
	w.sql(`UPDATE routine_triggers SET next_run_at = $1`, slot)
	w.tick()
	if got := one[time.Time](w, `SELECT scheduled_for FROM routine_runs`); !got.Equal(slot) {
		t.Errorf("C205 the fire stands for %s, want %s", got, slot)
	}
	if got := one[time.Time](w, `SELECT next_run_at FROM routine_triggers`); !got.Equal(slot.Add(time.Hour)) {
		t.Errorf("C205 the next slot is %s, want %s", got, slot.Add(time.Hour))
	}
}

// SPEC S4.3: a person edits the schedule while ticks race; whoever is first, each due slot fires once.
func TestAnEditWhileASlotIsDueLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trigger := w.routine(w.agent("worker"), nil)
	for i := range 6 {
		w.sql(`DELETE FROM wakeup_requests`)
		w.sql(`DELETE FROM routine_runs`)
		w.sql(`UPDATE routine_triggers SET cron = $1`, w.hourly())
		w.down(trigger, 2*time.Hour)
		done := make(chan error, 3)
		for range 2 {
			go func() { _, err := w.FireDue(w.background(), trigger); done <- err }()
		}
		go func() {
			_, err := w.UpdateTrigger(w.background(), UpdateTrigger{WorkspaceID: w.workspace, TriggerID: trigger, Patch: domain.TriggerPatch{Cron: domain.To(fmt.Sprintf("%d 0 1 1 *", i))}})
			done <- err
		}()
		for range 3 {
			w.ok(<-done)
		}
		if n, distinct := one[int](w, `SELECT count(*) FROM routine_runs`), one[int](w, `SELECT count(DISTINCT scheduled_for) FROM routine_runs`); n != 3 || distinct != 3 {
			t.Errorf("C204 round %d: %d fires for %d slots, want 3", i, n, distinct)
		}
		if !one[bool](w, `SELECT extract(month FROM next_run_at) = 1 FROM routine_triggers`) {
			t.Errorf("C204 round %d: the next slot is not the new expression's", i)
		}
	}
}

// SPEC S4.11, S4.1: the pre-installed routine of a coordinator.
func TestACoordinatorGetsItsHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	coordinator := func(c *CreateAgent) { c.Role = domain.AgentRoleCoordinator }
	w.sql(`UPDATE workspaces SET default_time_zone = 'Europe/Lisbon'`)
	boss := w.agent("boss", coordinator)
	w.agent("worker")
	if n := one[int](w, `
SELECT count(*) FROM routines r JOIN routine_triggers t ON t.routine_id = r.id WHERE r.name = 'Coordinator heartbeat' AND r.assignee_id = $1 AND r.status = 'ACTIVE'
  AND r.concurrency_policy = 'COALESCE_IF_ACTIVE' AND r.catch_up_policy = 'ENQUEUE_MISSED_WITH_CAP' AND r.catch_up_max = 25 AND r.task_template IS NULL
  AND t.cron = '*/5 * * * *' AND t.time_zone = 'Europe/Lisbon' AND t.enabled AND t.next_run_at > clock_timestamp()`, boss); n != 1 {
		t.Error("the heartbeat is not as it should be")
	}
	second := w.agent("second", coordinator)
	if name := one[string](w, `SELECT name FROM routines WHERE assignee_id = $1`, second); name != "Coordinator heartbeat of second" {
		t.Errorf("the second coordinator's is called %q", name)
	}
	if n := one[int](w, `SELECT count(*) FROM routines`); n != 2 {
		t.Errorf("%d routines, want 2: a worker has none", n)
	}
}

// SPEC S4.11: it is installed in a savepoint.
func TestAHeartbeatThatCannotBeInstalledNeverFailsTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not today'; END $$`)
	w.sql(`CREATE TRIGGER refuse BEFORE INSERT ON routine_triggers FOR EACH ROW EXECUTE FUNCTION refuse()`)
	boss := w.agent("boss", func(c *CreateAgent) { c.Role = domain.AgentRoleCoordinator })
	if n := one[int](w, `SELECT count(*) FROM agents a JOIN agent_lanes l ON l.agent_id = a.id WHERE a.id = $1`, boss); n != 1 {
		t.Error("the agent is not there")
	}
	if n := one[int](w, `SELECT count(*) FROM routines`); n != 0 {
		t.Error("half a heartbeat was kept")
	}
}

// The fire ledger (SPEC S4.5): every slot of an ACTIVE routine under ENQUEUE_MISSED_WITH_CAP is a routine run, or lies in a
// range [missed_since, its slot) that one names, exact up to 10,000.
func TestEverySlotIsARoutineRunOrInARangeThatOneNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.routine(w.agent("worker"), func(r *CreateRoutine) { r.CatchUpMax, r.Triggers[0].Cron = 7, everyMinute })
	schedule, err := cron.Parse("* * * * *", "UTC")
	w.ok(err)
	start := one[time.Time](w, `SELECT date_trunc('minute', clock_timestamp()) - interval '5 hours'`)
	w.sql(`UPDATE routine_triggers SET next_run_at = $1`, start)
	w.tick()
	type fire struct {
		slot   time.Time
		missed domain.Missed
	}
	fires, err := pgtx.Collect(t.Context(), w.db, func(rows *sql.Rows) (f fire, err error) {
		err = rows.Scan(&f.slot, &f.missed.Ticks, &f.missed.Since)
		return f, err
	}, `SELECT scheduled_for, missed_ticks, coalesce(missed_since, scheduled_for) FROM routine_runs ORDER BY scheduled_for`)
	w.ok(err)
	covered := map[int64]int{}
	for _, f := range fires {
		covered[f.slot.Unix()]++
		inRange := schedule.Between(f.missed.Since, f.slot, 100_000)
		if len(inRange) != f.missed.Ticks {
			t.Errorf("the fire of %s names %d missed ticks since %s, and there are %d", f.slot, f.missed.Ticks, f.missed.Since, len(inRange))
		}
		for _, slot := range inRange {
			covered[slot.Unix()]++
		}
	}
	for _, slot := range schedule.Between(start, fires[len(fires)-1].slot.Add(time.Second), 100_000) {
		if covered[slot.Unix()] != 1 {
			t.Errorf("the slot %s is accounted for %d times", slot, covered[slot.Unix()])
		}
	}
}

// BenchmarkYearOfDowntime: a routine that is due every minute was down for a year (the aim is under a second).
func BenchmarkYearOfDowntime(b *testing.B) {
	for _, most := range []int{25, 1000} {
		b.Run(fmt.Sprint("cap ", most), func(b *testing.B) {
			w := newWorld(b)
			trigger := w.routine(w.agent("worker"), func(r *CreateRoutine) { r.CatchUpMax, r.Triggers[0].Cron = most, everyMinute })
			for b.Loop() {
				b.StopTimer()
				w.sql(`DELETE FROM wakeup_requests`)
				w.sql(`DELETE FROM routine_runs`)
				w.sql(`UPDATE routine_triggers SET last_fired_at = NULL`)
				w.down(trigger, 366*24*time.Hour)
				b.StartTimer()
				_, err := w.FireDue(b.Context(), trigger)
				w.ok(err)
			}
		})
	}
}
