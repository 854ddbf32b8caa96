package store

import (
	"errors"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

func TestCausation(t *testing.T) {
	t.Parallel()
	causation := func(w *world, run xid.ID) xid.ID {
		return one[xid.ID](w, `SELECT causation_id FROM runs WHERE id = $1`, run)
	}
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.1 every origin mints exactly one id", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker")
		w.wake(agent)
		w.wake(agent)
		w.makeDue(w.routine(agent, nil))
		w.tick()
		const origins = `SELECT count(*) || ' ' || count(DISTINCT id) || ' ' || count(*) FILTER (WHERE id = '') FROM (
  SELECT causation_id AS id FROM wakeup_requests WHERE routine_run_id IS NULL UNION ALL SELECT causation_id FROM routine_runs) o`
		if got := one[string](w, origins); got != "3 3 0" {
			t.Errorf("origins, ids and empty ids: %s, want 3 3 0", got)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.2 the request of a fire carries the fire's id", func(t *testing.T) {
		w := newWorld(t)
		w.makeDue(w.routine(w.agent("worker"), nil))
		w.tick()
		if n := one[int](w, `SELECT count(*) FROM wakeup_requests q JOIN routine_runs f ON f.id = q.routine_run_id AND f.causation_id = q.causation_id`); n != 1 {
			t.Errorf("%d requests carry their fire's id", n)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.3 a run carries its request's id", func(t *testing.T) {
		w := newWorld(t)
		request := w.wake(w.agent("worker"))
		if got, want := causation(w, w.runOf(request)), one[xid.ID](w, `SELECT causation_id FROM wakeup_requests WHERE id = $1`, request); got != want {
			t.Errorf("the run carries %s, its request %s", got, want)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.4 a merged request leaves the run's id alone", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker")
		run := w.runOf(w.wake(agent))
		before := causation(w, run)
		merged := w.wake(agent)
		w.wantRequest(merged, domain.WakeupStatusCoalesced)
		if own := one[xid.ID](w, `SELECT causation_id FROM wakeup_requests WHERE id = $1`, merged); causation(w, run) != before || own == before || w.runOf(merged) != run {
			t.Errorf("the run carries %s, before %s, the merged request %s", causation(w, run), before, own)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.5 retry, hand-back, rescue, parking and its end keep it", func(t *testing.T) {
		w := newWorld(t)
		run := w.runOf(w.wake(w.agent("worker")))
		before := causation(w, run)
		for name, step := range map[string]func(Claimed){
			"hand-back": func(c Claimed) { w.ok(w.HandBack(t.Context(), c.Attempt, Unfinished{})) },
			"rescue":    func(c Claimed) { w.lose(c.Attempt) },
			"retry": func(c Claimed) {
				w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "killed"}))
				w.sql(`UPDATE runs SET parked_until = clock_timestamp() - interval '1 second'`)
			},
		} {
			c := w.claimOne()
			w.start(c)
			step(c)
			if got := causation(w, run); got != before {
				t.Errorf("after a %s the run carries %s, before %s", name, got, before)
			}
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.6 an empty id joins nothing", func(t *testing.T) {
		w := newWorld(t)
		w.wake(w.agent("worker"))
		w.sql(`UPDATE runs SET causation_id = ''`)
		w.sql(`UPDATE wakeup_requests SET causation_id = ''`)
		if got := must(w, first(w.Trace(t.Context(), w.workspace, "")), nil); got != nil {
			t.Errorf("the trace of the empty id is %+v", got)
		}
	})
}

func TestSessionsOfRuns(t *testing.T) {
	t.Parallel()
	session := func(w *world, run xid.ID) *string {
		return one[*string](w, `SELECT session_id FROM runs WHERE id = $1`, run)
	}
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.8 a launch without a session leaves it empty and is counted", func(t *testing.T) {
		w := newWorld(t)
		w.wake(w.agent("worker"))
		c := w.claimOne()
		w.launch(c)
		w.ok(w.RecordSession(t.Context(), c.Attempt, ""))
		w.finish(c)
		if got := w.Counters(w.workspace); session(w, c.RunID) != nil || got.LaunchesWithoutSession != 1 || got.SessionWriteFailures != 0 {
			t.Errorf("the session is %v, counted %+v", session(w, c.RunID), got)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.9 a launch is counted once, whatever its agent calls its session", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker")
		w.wake(agent)
		c := w.claimOne()
		w.start(c)
		w.ok(w.RecordSession(t.Context(), c.Attempt, "another name"))
		w.ok(w.Finish(t.Context(), c.Attempt, Success{SessionID: "a third"}))
		w.wake(agent)
		c = w.claimOne()
		w.launch(c)
		w.ok(w.Finish(t.Context(), c.Attempt, Success{SessionID: "told at the end only"}))
		if got := w.Counters(w.workspace); got.AgentLaunches != 2 || got.LaunchesWithoutSession != 0 {
			t.Errorf("two launches are counted as %+v", got)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.10 of several launches the newest claim's session stays, and nothing empties it", func(t *testing.T) {
		w := newWorld(t)
		w.wake(w.agent("worker"))
		old := w.claimOne()
		w.start(old)
		w.lose(old.Attempt)
		fresh := w.claimOne()
		w.launch(fresh)
		w.ok(w.RecordSession(t.Context(), fresh.Attempt, "second"))
		if err := w.RecordSession(t.Context(), old.Attempt, "late"); !errors.Is(err, ErrFenced) {
			t.Errorf("a session of the older launch gives %v", err)
		}
		w.ok(w.RecordSession(t.Context(), fresh.Attempt, ""))
		w.ok(w.Finish(t.Context(), fresh.Attempt, Success{SessionID: ""}))
		if got := session(w, fresh.RunID); got == nil || *got != "second" {
			t.Errorf("the session is %v", got)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.11 a session that cannot be stored leaves the old value, and is counted apart", func(t *testing.T) {
		w := newWorld(t)
		w.wake(w.agent("worker"))
		c := w.claimOne()
		w.start(c)
		before := *session(w, c.RunID)
		w.sql(`ALTER TABLE runs ADD CONSTRAINT test_no_session CHECK (session_id <> 'unstored')`)
		if err := w.RecordSession(t.Context(), c.Attempt, "unstored"); err == nil {
			t.Fatal("the session was stored")
		}
		w.SessionNotStored(w.workspace)
		if got := w.Counters(w.workspace); *session(w, c.RunID) != before || got.SessionWriteFailures != 1 || got.LaunchesWithoutSession != 0 {
			t.Errorf("the session is %s, counted %+v", *session(w, c.RunID), got)
		}
	})
}

func TestAHeavyFireReachesItsSessions(t *testing.T) {
	t.Parallel()
	t.Run("AC-OFFICE-LOOP-LIVENESS-002.9 its routine run has its causation id and its task, and by the task the sessions", func(t *testing.T) {
		w := newWorld(t)
		trigger := w.routine(w.agent("worker"), func(r *CreateRoutine) { r.TaskTemplate = &domain.TaskTemplate{Title: "Review {{date}}"} })
		w.makeDue(trigger)
		w.tick()
		fire := one[xid.ID](w, `SELECT id FROM routine_runs`)
		if n := one[int](w, `SELECT count(*) FROM routine_runs f JOIN tasks t ON t.id = f.task_id WHERE f.status = 'TASK_CREATED' AND f.source = 'CRON' AND f.causation_id <> ''`); n != 1 {
			t.Errorf("%d fires of the schedule have their causation id and their task, want 1", n)
		}
		c := w.claimOne()
		w.launch(c)
		w.ok(w.RecordSession(t.Context(), c.Attempt, "s-1"))
		w.ok(w.Finish(t.Context(), c.Attempt, Success{SessionID: "s-1", Resumable: true}))
		const keyed = `SELECT s.external_id FROM routine_runs f JOIN tasks t ON t.id = f.task_id JOIN task_sessions s ON s.task_id = t.id WHERE f.causation_id <> '' AND f.id = $1`
		if got := one[string](w, keyed, fire); got != "s-1" {
			t.Errorf("the fire's task has the session %s", got)
		}
		if n := one[int](w, `SELECT count(*) FROM routine_runs f JOIN runs r ON r.task_id = f.task_id AND r.causation_id = f.causation_id WHERE f.id = $1`, fire); n != 1 {
			t.Errorf("%d runs of the fire's task carry its causation id", n)
		}
	})
}

func TestHopsAreCounted(t *testing.T) {
	t.Parallel()
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.1 each hop from the trigger to the run's end is counted", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker", func(a *CreateAgent) { a.SkipIdleWakeups = pgtx.Ptr(false) })
		w.makeDue(w.routine(agent, nil))
		w.tick()
		c := w.claimOne()
		w.start(c)
		w.finish(c)
		got := w.Counters(w.workspace)
		ended := 0
		for _, x := range got.TerminalRuns {
			ended += int(x.Count)
		}
		type steps struct{ triggers, claims, launches, ends, fires, requests int }
		counted := steps{int(got.TriggersClaimed), int(got.RunsClaimed), int(got.AgentLaunches), ended, int(w.counted(domain.RoutineRunStatusEnqueued)), int(w.created())}
		if want := (steps{1, 1, 1, 1, 1, 1}); counted != want {
			t.Errorf("counted %+v, want %+v", counted, want)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.2 fires are counted by disposition, ends by shape", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker") // without a task: idle
		trigger := w.routine(agent, nil)
		for range 2 {
			w.makeDue(trigger)
			w.tick()
		}
		if got := w.claim(10); len(got) != 0 {
			t.Errorf("an idle agent claimed %d runs", len(got))
		}
		if w.counted(domain.RoutineRunStatusEnqueued) != 1 || w.counted(domain.RoutineRunStatusCoalesced) != 1 || w.counted(domain.RoutineRunStatusSkipped) != 0 {
			t.Errorf("fires are counted as %+v", w.Counters(w.workspace).RoutineRuns)
		}
		for _, x := range w.Counters(w.workspace).TerminalRuns {
			if want := map[domain.TerminalShape]int64{domain.TerminalShapeUnlaunchedSkipped: 1}[x.Shape]; x.Count != want {
				t.Errorf("%d runs of shape %s, want %d", x.Count, x.Shape, want)
			}
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.9 a change is counted once, when it is committed, and not when it is not", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker")
		insert := func(x *tx) error {
			_, _, err := x.insertRequest(t.Context(), newRequest{workspaceID: w.workspace, agentID: agent, causationID: xid.New("cau"), scope: domain.ScopeTaskless,
				source: domain.WakeupSourceSelf, class: domain.WakeClassEvent, reason: "test", payload: &domain.SelfPayload{Reason: "test"}})
			return err
		}
		refused := errors.New("refused")
		if err := w.inTx(t.Context(), func(x *tx) error { return errors.Join(insert(x), refused) }); !errors.Is(err, refused) {
			t.Fatal(err)
		}
		if n := w.created(); n != 0 {
			t.Errorf("a request that was rolled back was counted %d times", n)
		}
		tries := 0
		w.ok(w.inTx(t.Context(), func(x *tx) error {
			tries++
			if err := insert(x); err != nil || tries > 1 {
				return err
			}
			_, err := pgtx.Exec(t.Context(), x, `DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$`)
			return err
		}))
		if n := w.created(); n != 1 || tries != 2 {
			t.Errorf("a request that took %d tries was counted %d times", tries, n)
		}
		w.route(agent)
		c := w.claimOne()
		w.start(c)
		w.finish(c)
		if err := w.Finish(t.Context(), c.Attempt, Success{}); !errors.Is(err, ErrFenced) {
			t.Errorf("a second end gives %v", err)
		}
		ended := 0
		for _, x := range w.Counters(w.workspace).TerminalRuns {
			ended += int(x.Count)
		}
		if ended != 1 {
			t.Errorf("one run ended, %d were counted", ended)
		}
	})
}

// counted is how many fires of a disposition were counted.
func (w *world) counted(status domain.RoutineRunStatus) (n int64) {
	for _, x := range w.Counters(w.workspace).RoutineRuns {
		if x.Status == status {
			n += x.Count
		}
	}
	return n
}

// created is how many requests were counted.
func (w *world) created() (n int64) {
	for _, x := range w.Counters(w.workspace).WakeupsCreated {
		n += x.Count
	}
	return n
}
