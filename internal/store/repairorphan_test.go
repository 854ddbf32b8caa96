package store

import "testing"

// TestWhatIsLeftOfARunThatIsGoneIsRemoved deletes a run behind the program's back, which no foreign key refuses.
func TestWhatIsLeftOfARunThatIsGoneIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ended, open, stays := w.agent("ended"), w.agent("open"), w.agent("stays")
	w.wake(ended)
	w.wake(stays)
	for _, c := range w.claim(2) {
		_ = w.launch(c)
		w.ok(w.Finish(t.Context(), c.Attempt, Success{Summary: "done"}))
	}
	w.wake(open)
	w.sql(`DELETE FROM runs WHERE agent_id <> $1`, stays)
	w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL WHERE agent_id = $1`, open)
	done, err := w.Repair(t.Context())
	w.ok(err)
	if done.Orphans == 0 || done.Heads != 0 {
		t.Errorf("the sweep repaired %+v, want rows of the two runs that are gone", done)
	}
	for _, table := range []string{"run_events", "run_attempts", "run_contents", "run_log_lines"} {
		if n := one[int](w, `SELECT count(*) FROM `+table+` x WHERE NOT EXISTS (SELECT 1 FROM runs WHERE id = x.run_id)`); n != 0 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	if n := one[int](w, `SELECT count(*) FROM run_events WHERE run_id = (SELECT id FROM runs)`); n < 4 {
		t.Errorf("the run that is there has %d events", n)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE agent_id = $1`, ended); n != 0 {
		t.Errorf("%d ended requests of the run that is gone are left", n)
	}
	if s := one[string](w, `SELECT status || coalesce(run_id, ' without a run') FROM wakeup_requests WHERE agent_id = $1`, open); s != "QUEUED without a run" {
		t.Errorf("the open request is %s, want it to wait for another run", s)
	}
	again, err := w.Repair(t.Context())
	w.ok(err)
	if again != (Repairs{}) {
		t.Errorf("the next sweep repaired %+v, want nothing", again)
	}
}

// TestTheWalkOverTheRowsOfRunsComesRound has more runs than one sweep looks at.
func TestTheWalkOverTheRowsOfRunsComesRound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql(`INSERT INTO run_contents (id, workspace_id, run_id, assembled_prompt, summary_injected, context_snapshot)
SELECT 'rct_' || i, $1, 'run_' || lpad(i::text, 8, '0'), '', '', '{}' FROM generate_series(1, $2::int) i`, w.workspace, 2*orphanStep+1)
	for _, want := range []int{orphanStep, orphanStep, 1, 0} {
		done, err := w.Repair(t.Context())
		w.ok(err)
		if done.Orphans != want {
			t.Errorf("a sweep removed %d rows, want %d", done.Orphans, want)
		}
	}
	w.sql(`INSERT INTO run_contents (id, workspace_id, run_id, assembled_prompt, summary_injected, context_snapshot) VALUES ('rct_1', $1, 'run_00000001', '', '', '{}')`, w.workspace)
	done, err := w.Repair(t.Context())
	w.ok(err)
	if done.Orphans != 1 {
		t.Errorf("the walk that began again removed %d rows, want 1", done.Orphans)
	}
}
