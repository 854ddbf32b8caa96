package store

import (
	"encoding/json"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// lastRun is a routine's last_run_at, zero when it never fired.
func (w *world) lastRun(routine xid.ID) time.Time {
	w.Helper()
	return one[time.Time](w, `SELECT coalesce(last_run_at, '0001-01-01Z') FROM routines WHERE id = $1`, routine)
}

func (w *world) touch(routine xid.ID, at time.Time) {
	w.Helper()
	w.ok(w.inTx(w.Context(), func(t *tx) error {
		if err := t.ReadClock(w.Context()); err != nil {
			return err
		}
		return t.touchLastRun(w.Context(), at, &routineRow{id: routine, workspaceID: w.workspace})
	}))
}

// SPEC S4.12: last_run_at, here and below criterion by criterion.
func TestAC_OFFICE_LOOP_LIVENESS_001_1_and_2_EveryDispositionPersistsTheFiresInstant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trigger := w.routine(w.agent("worker"), func(r *CreateRoutine) { r.ConcurrencyPolicy = domain.ConcurrencyPolicySkipIfActive })
	routine := one[xid.ID](w, `SELECT id FROM routines`)
	check := func(what string, status domain.RoutineRunStatus) {
		t.Helper()
		var started time.Time
		var got domain.RoutineRunStatus
		w.ok(w.db.QueryRow(`SELECT started_at, status FROM routine_runs ORDER BY started_at DESC, id DESC LIMIT 1`).Scan(&started, &got))
		if got != status || !w.lastRun(routine).Equal(started) {
			t.Errorf("%s is %s: last_run_at is %s, the fire's started_at %s", what, got, w.lastRun(routine), started)
		}
	}
	w.makeDue(trigger)
	w.tick()
	check("the first fire", domain.RoutineRunStatusEnqueued)
	w.makeDue(trigger)
	w.tick()
	check("a fire beside an active one", domain.RoutineRunStatusSkipped)
	w.sql(`UPDATE routines SET concurrency_policy = 'COALESCE_IF_ACTIVE'`)
	_, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: routine})
	w.ok(err)
	check("a fire by hand", domain.RoutineRunStatusCoalesced)
}

func TestAC_OFFICE_LOOP_LIVENESS_001_3_TheWriteIsMonotonic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.routine(w.agent("worker"), nil)
	routine := one[xid.ID](w, `SELECT id FROM routines`)
	late, early := time.Date(2026, 4, 25, 10, 5, 0, 0, time.UTC), time.Date(2026, 4, 25, 10, 0, 0, 0, time.UTC)
	w.touch(routine, late)
	before := one[string](w, `SELECT updated_at::text FROM routines`)
	w.touch(routine, early) // C103
	w.touch(routine, late)
	if got := w.lastRun(routine); !got.Equal(late) || one[string](w, `SELECT updated_at::text FROM routines`) != before {
		t.Errorf("after an older instant it is %s", got)
	}
}

func TestAC_OFFICE_LOOP_LIVENESS_001_4_OfTwoAtOnceTheGreaterStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.routine(w.agent("worker"), nil)
	routine := one[xid.ID](w, `SELECT id FROM routines`)
	base := time.Date(2026, 4, 25, 10, 0, 0, 0, time.UTC)
	for i, order := range [][2]time.Duration{{time.Second, 2 * time.Second}, {4 * time.Second, 3 * time.Second}} {
		held, free := make(chan struct{}), make(chan struct{})
		done := make(chan error, 1)
		go func() { // writes first and commits last
			done <- w.inTx(w.background(), func(x *tx) error {
				if err := x.touchLastRun(w.background(), base.Add(order[0]), &routineRow{id: routine, workspaceID: w.workspace}); err != nil {
					return err
				}
				close(held)
				<-free
				return nil
			})
		}()
		<-held
		second := make(chan error, 1)
		go func() {
			second <- w.inTx(w.background(), func(x *tx) error {
				return x.touchLastRun(w.background(), base.Add(order[1]), &routineRow{id: routine, workspaceID: w.workspace})
			})
		}()
		close(free)
		w.ok(<-done)
		w.ok(<-second)
		if got, want := w.lastRun(routine), base.Add(max(order[0], order[1])); !got.Equal(want) {
			t.Errorf("round %d: %s, want %s", i, got, want)
		}
	}
}

func TestAC_OFFICE_LOOP_LIVENESS_001_5_NothingElseOfTheRoutineIsTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trigger := w.routine(w.agent("worker"), nil)
	row := func() map[string]any {
		t.Helper()
		var all map[string]any
		w.ok(json.Unmarshal([]byte(one[string](w, `SELECT to_jsonb(r)::text FROM routines r`)), &all))
		return all
	}
	before := row()
	w.makeDue(trigger)
	w.tick()
	for name, value := range row() {
		was, _ := json.Marshal(before[name])
		is, _ := json.Marshal(value)
		if changed := string(was) != string(is); changed != (name == "last_run_at" || name == "updated_at") {
			t.Errorf("%s went from %s to %s", name, was, is)
		}
	}
}

func TestAC_OFFICE_LOOP_LIVENESS_001_6_ZeroRowsAreSuccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.touch(xid.New("rtn"), time.Now())
	if n := w.Store.counters.Workspace(w.workspace).LastRunAtWriteFailures; n != 0 {
		t.Errorf("%d failures are counted", n)
	}
}

// SPEC S4.12: its write is in a savepoint.
func TestAC_OFFICE_LOOP_LIVENESS_001_7_AFailedWriteIsCountedAndTheFireStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trigger := w.routine(w.agent("worker"), nil)
	w.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not today'; END $$`)
	w.sql(`CREATE TRIGGER refuse BEFORE UPDATE OF last_run_at ON routines FOR EACH ROW EXECUTE FUNCTION refuse()`)
	w.makeDue(trigger)
	w.tick()
	if n := one[int](w, `SELECT count(*) FROM routine_runs f JOIN wakeup_requests q ON q.routine_run_id = f.id`); n != 1 {
		t.Errorf("%d fires stand", n)
	}
	if !one[bool](w, `SELECT last_run_at IS NULL FROM routines`) {
		t.Error("last_run_at was written")
	}
	if n := w.Store.counters.Workspace(w.workspace).LastRunAtWriteFailures; n != 1 {
		t.Errorf("%d failures are counted, want 1", n)
	}
}

func TestAC_OFFICE_LOOP_LIVENESS_001_8_NoOtherWriteMovesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	trigger := w.routine(agent, nil)
	routine := one[xid.ID](w, `SELECT id FROM routines`)
	w.makeDue(trigger)
	w.tick()
	fired := w.lastRun(routine)
	_, err := w.UpdateRoutine(t.Context(), UpdateRoutine{WorkspaceID: w.workspace, RoutineID: routine, Patch: domain.RoutinePatch{Name: domain.To("Another"),
		Description: domain.To("x"), CatchUpMax: domain.To(3), Policy: domain.To(domain.ConcurrencyPolicyAlwaysEnqueue)}})
	w.ok(err)
	w.ok(w.PauseRoutine(t.Context(), w.workspace, routine))
	w.ok(w.ResumeRoutine(t.Context(), w.workspace, routine))
	_, err = w.UpdateTrigger(t.Context(), UpdateTrigger{WorkspaceID: w.workspace, TriggerID: trigger, Patch: domain.TriggerPatch{Cron: domain.To("0 0 1 1 *")}})
	w.ok(err)
	w.ok(w.DeleteTrigger(t.Context(), w.workspace, trigger))
	w.ok(w.ArchiveRoutine(t.Context(), w.workspace, routine))
	w.ok(w.DeleteRoutine(t.Context(), w.workspace, routine))
	if got := w.lastRun(routine); fired.IsZero() || !got.Equal(fired) {
		t.Errorf("C103 it went from %s to %s", fired, got)
	}
}
