package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// batch makes agents with routines that are due now, and returns their triggers in the order in which they fire.
func (w *world) batch(agents, each int, change func(*CreateRoutine)) (of map[xid.ID][]xid.ID, triggers []xid.ID) {
	w.Helper()
	of = map[xid.ID][]xid.ID{}
	for i := range agents {
		agent := w.agent(fmt.Sprint("agent ", i))
		for range each {
			trigger := w.routine(agent, change)
			of[agent], triggers = append(of[agent], trigger), append(triggers, trigger)
		}
	}
	w.allDue()
	return of, triggers
}

// allDue sets every cursor to the same minute, its last slot.
func (w *world) allDue() {
	w.Helper()
	w.sql(`UPDATE routine_triggers SET next_run_at = ` + lastSlot)
}

func TestABatchFiresTheTriggersOfSeveralAgentsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	of, triggers := w.batch(3, 4, nil)
	agents, err := w.FireDue(t.Context(), triggers...)
	w.ok(err)
	if len(agents) != 0 {
		t.Errorf("%d of %d agents are to be routed still", len(agents), len(of))
	}
	again, err := w.FireDue(t.Context(), triggers...)
	w.ok(err)
	if len(again) != 0 {
		t.Errorf("C208 a second time woke %v", again)
	}
	w.wantFires(len(triggers))
	if n := one[int](w, `SELECT count(*) FROM runs WHERE status = 'QUEUED'`); n != len(triggers) {
		t.Errorf("%d runs, want %d", n, len(triggers))
	}
	if n := one[int](w, `SELECT count(*) FROM routines WHERE last_run_at IS NOT NULL`); n != len(triggers) {
		t.Errorf("last_run_at of %d routines was written, want %d", n, len(triggers))
	}
	w.sound()
}

// S3.2: fires stand although what they sent cannot be routed with them, and their agents are named for the dispatcher.
func TestFiresThatCannotBeRoutedStand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	of, triggers := w.batch(3, 2, nil)
	w.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`)
	w.sql(`CREATE TRIGGER refuse BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION refuse()`)
	agents, err := w.FireDue(t.Context(), triggers...)
	if w.ok(err); len(agents) != len(of) {
		t.Errorf("%d agents are to be routed, want %d", len(agents), len(of))
	}
	w.wantFires(len(triggers))
	w.sql(`DROP TRIGGER refuse ON runs`)
	_, err = w.Route(t.Context(), agents...)
	w.ok(err)
	if n := one[int](w, `SELECT count(*) FROM runs WHERE status = 'QUEUED'`); n != len(triggers) {
		t.Errorf("%d runs, want %d", n, len(triggers))
	}
	w.sound()
}

// C206, S4.6: a fire in a batch finds the fires before it, of its own routine and of others.
func TestTwoTriggersOfARoutineInABatchSeeEachOther(t *testing.T) {
	t.Parallel()
	for policy, want := range map[domain.ConcurrencyPolicy]map[string]int{
		domain.ConcurrencyPolicyCoalesceIfActive: {"ENQUEUED": 1, "COALESCED": 1},
		domain.ConcurrencyPolicySkipIfActive:     {"ENQUEUED": 1, "SKIPPED": 1},
		domain.ConcurrencyPolicyAlwaysEnqueue:    {"ENQUEUED": 2},
	} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			every := TriggerSpec{Kind: domain.TriggerKindSchedule, Cron: w.hourly(), Enabled: true}
			w.routineOf(w.agent("worker"), every, every)
			w.sql(`UPDATE routines SET concurrency_policy = $1`, policy)
			w.allDue()
			triggers, err := pgtx.Collect(t.Context(), w.db, pgtx.ScanOne[xid.ID], `SELECT id FROM routine_triggers`)
			w.ok(err)
			agents, err := w.FireDue(t.Context(), triggers...)
			w.ok(err)
			_, err = w.Route(t.Context(), agents...)
			w.ok(err)
			for status, n := range want {
				if got := one[int](w, `SELECT count(*) FROM routine_runs WHERE status = $1`, status); got != n {
					t.Errorf("C206 %d fires are %s, want %d", got, status, n)
				}
			}
			if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE status = 'COALESCED' AND coalesced_into_id IS NULL`); n != 0 {
				t.Error("a coalesced fire does not say into which")
			}
			w.sound()
		})
	}
}

// S4.3: a trigger that cannot fire, for a reason of the database or of its own, stops no other of its batch or agent.
func TestAPoisonedTriggerOfABatchStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, triggers := w.batch(3, 5, nil)
	refused, unfit, broken, gone := triggers[6], triggers[7], triggers[8], triggers[11]
	w.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not today'; END $$`)
	w.sql(fmt.Sprintf(`CREATE TRIGGER refuse BEFORE INSERT ON routine_runs FOR EACH ROW WHEN (NEW.trigger_id = '%s') EXECUTE FUNCTION refuse()`, refused))
	w.sql(`UPDATE routines SET variables = '[{"name": "branch", "type": "TEXT", "required": true}]' WHERE id = (SELECT routine_id FROM routine_triggers WHERE id = $1)`, unfit)
	w.sql(`UPDATE routine_triggers SET cron = 'nonsense' WHERE id = $1`, broken)
	w.sql(`UPDATE routines SET deleted_at = clock_timestamp() WHERE id = (SELECT routine_id FROM routine_triggers WHERE id = $1)`, gone)
	agents, err := w.FireDue(t.Context(), triggers...)
	if err == nil || !strings.Contains(err.Error(), "fire trigger "+string(refused)) || !strings.Contains(err.Error(), "fire trigger "+string(unfit)) {
		t.Errorf("C48 the error is %v", err)
	}
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 2 {
		t.Errorf("C48 the error is not one for each trigger that failed: %v", err)
	}
	if routed := one[int](w, `SELECT count(*) FROM runs`); len(agents) != 0 || routed != len(triggers)-4 {
		t.Errorf("%d fires have their runs, and %d agents are to be routed still", routed, len(agents))
	}
	w.wantFires(len(triggers) - 4)
	if n := one[int](w, `SELECT count(*) FROM routine_triggers WHERE id IN ($1, $2) AND next_run_at <= clock_timestamp() AND last_fired_at IS NULL`, refused, unfit); n != 2 {
		t.Errorf("C48 %d of 2 failed triggers are still due", n)
	}
	if one[bool](w, `SELECT enabled OR error IS NULL FROM routine_triggers WHERE id = $1`, broken) {
		t.Error("C46 the broken schedule is on, or says nothing")
	}
	w.sql(`DROP TRIGGER refuse ON routine_runs`)
	w.sql(`UPDATE routines SET variables = '[]'`)
	_, err = w.FireDue(t.Context(), triggers...)
	w.ok(err)
	w.wantFires(len(triggers) - 2)
}

// S4.5: one trigger that was away for long, or many with a long catch-up, are fired in several transactions, whole.
func TestABatchIsBoundedHoweverMuchItCatchesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, triggers := w.batch(2, 3, func(r *CreateRoutine) { r.CatchUpMax = 500 })
	w.sql(`UPDATE routine_triggers SET next_run_at = ` + lastSlot + ` - interval '499 hours'`)
	_, err := w.FireDue(t.Context(), triggers...)
	w.ok(err)
	w.wantFires(6 * 500)
	if n := one[int](w, `SELECT count(DISTINCT xmin::text) FROM routine_runs`); n < 3 {
		t.Errorf("3,000 fires took %d transactions, want several", n)
	}
	if one[bool](w, `SELECT bool_or(missed_ticks > 0) FROM routine_runs`) {
		t.Error("slots are called missed")
	}
}

// Nobody waits for a lane while he holds a batch's: what others hold is fired after the rest.
func TestALaneThatIsHeldDelaysNoOtherOfItsBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	of, triggers := w.batch(3, 2, nil)
	held := w.lockedLane(func() xid.ID {
		for agent := range of {
			return agent
		}
		return ""
	}())
	fired := make(chan error, 1)
	go func() { _, err := w.FireDue(w.background(), triggers...); fired <- err }()
	w.until("the other lanes' triggers fired", func() bool { return one[int](w, `SELECT count(*) FROM routine_runs`) == 4 })
	held()
	w.ok(<-fired)
	w.wantFires(6)
	agents := make([]xid.ID, 0, len(of))
	for agent := range of {
		agents = append(agents, agent)
		w.unrouted(agent)
	}
	held = w.lockedLane(agents[0])
	routed := make(chan error, 1)
	go func() { _, err := w.Route(w.background(), agents...); routed <- err }()
	w.until("the other lanes were routed", func() bool { return one[int](w, `SELECT count(*) FROM runs`) == 6+2 })
	held()
	w.ok(<-routed)
	if n := one[int](w, `SELECT count(*) FROM runs`); n != 6+3 {
		t.Errorf("%d runs, want 9", n)
	}
	w.sound()
}

// lockedLane takes an agent's lane in a transaction of its own; calling the result gives it back.
func (w *world) lockedLane(agent xid.ID) (release func()) {
	w.Helper()
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- w.inTx(w.background(), func(x *tx) error {
			if _, err := x.lockLane(w.background(), agent); err != nil {
				return err
			}
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	return func() { close(free); w.ok(<-done) }
}

// until waits for a condition.
func (w *world) until(what string, is func() bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	const soonest, latest = 2 * time.Millisecond, 32 * time.Millisecond
	for pause := soonest; !is(); pause = min(2*pause, latest) { // each look is a statement
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			w.Fatalf("not within a minute: %s", what)
		}
	}
}

// waitForLocks is how many sessions wait for a lock; those of other tests, which run on the same server, do not count.
func (w *world) waitForLocks() int {
	w.Helper()
	return one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// SPEC S3.3: a request's key is looked for whole: a duplicate is no error, and what only looks alike is another.
func TestAKeyIsTakenOnceAndMatchesOnlyItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	insert := func(key string) (id xid.ID, duplicate bool) {
		t.Helper()
		w.ok(w.inTx(t.Context(), func(x *tx) (err error) {
			id, duplicate, err = x.insertRequest(t.Context(), newRequest{workspaceID: w.workspace, agentID: agent, causationID: xid.New("cau"), scope: domain.ScopeTaskless,
				source: domain.WakeupSourceSelf, class: domain.WakeClassEvent, reason: "test", payload: &domain.SelfPayload{Reason: "test"}, key: key})
			return err
		}))
		return id, duplicate
	}
	stored, _ := insert("wake:t1")
	if id, duplicate := insert("wake:t1"); !duplicate || id != stored {
		t.Errorf("C35 the same key gave %s, duplicate %v", id, duplicate)
	}
	for _, key := range []string{"wake:t2", "wake:t1:salt", "wake:t", "", ""} {
		if id, duplicate := insert(key); duplicate || id == stored {
			t.Errorf("C37 the key %q matches", key)
		}
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests`); n != 6 {
		t.Errorf("C35, C37 %d requests, want 6", n)
	}
}
