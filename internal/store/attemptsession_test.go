package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"rouse.dev/rouse/internal/xid"
)

// named are n launched attempts with the sessions that they name.
func (w *world) named(n int) (batch []*namedSession) {
	w.Helper()
	for _, x := range w.transitions(n, toFinish) {
		if x.kind == toStart {
			w.start(Claimed{Attempt: x.Attempt})
		}
		batch = append(batch, &namedSession{x.Attempt, "named-" + string(x.RunID)})
	}
	return batch
}

// wantNamed fails the test unless each session was recorded once, after the one that its start recorded.
func (w *world) wantNamed(batch ...*namedSession) {
	w.Helper()
	w.sound()
	for _, x := range batch {
		got := one[string](w, `
SELECT concat_ws(' ', r.session_id, a.session_id, a.status, (SELECT array_agg(e.kind ORDER BY e.seq) FROM run_events e WHERE e.run_id = r.id),
  (SELECT max(e.seq) FROM run_events e WHERE e.run_id = r.id) = r.event_seq)
FROM runs r JOIN run_attempts a ON a.run_id = r.id AND a.number = r.attempt WHERE r.id = $1`, x.RunID)
		if want := x.id + " " + x.id + " RUNNING {CLAIMED,LAUNCHED,SESSION_RECORDED,SESSION_RECORDED} t"; got != want {
			w.Errorf("run %s: %s, want %s", x.RunID, got, want)
		}
	}
}

// S7.8: sessions that are named at once are recorded as each alone would be, in batches of any size and in one statement.
func TestSessionsThatAreNamedAtOnceShareAStatement(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 16, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			db, statements := countingDB(t)
			w := newWorldOn(t, db)
			batch := w.named(n)
			before := statements.Load()
			if err := errors.Join(w.recordTogether(t.Context(), batch)...); err != nil {
				t.Error(err)
			}
			if made := statements.Load() - before; made != 1 {
				t.Errorf("%d statements", made)
			}
			w.wantNamed(batch...)
		})
	}
}

// S7.7: a session of an attempt that is not live is fenced, whoever shares its statement; one that cannot be stored fails alone.
func TestASessionThatIsNotRecordedSpoilsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	batch := w.named(8)
	bad, late := batch[5], *batch[2]
	late.Owner, late.id = xid.New("prc"), "late"
	w.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`)
	w.sql(`CREATE TRIGGER refuse BEFORE UPDATE ON runs FOR EACH ROW WHEN (NEW.id = '` + string(bad.RunID) + `') EXECUTE FUNCTION refuse()`)
	all := append(slices.Clone(batch), &late)
	results := make([]error, len(all))
	w.GatherSessions(len(all))
	var wg sync.WaitGroup
	for i, x := range all {
		wg.Go(func() { results[i] = w.RecordSession(t.Context(), x.Attempt, x.id) })
	}
	wg.Wait()
	for i, err := range results {
		switch {
		case all[i] == bad && (err == nil || errors.Is(err, ErrFenced)), all[i] == &late && !errors.Is(err, ErrFenced), all[i] != bad && all[i] != &late && err != nil:
			t.Errorf("session %d: %v", i, err)
		}
	}
	w.wantNamed(slices.DeleteFunc(batch, func(x *namedSession) bool { return x == bad })...)
}

// A lane that somebody holds delays no session, and a run that somebody holds its own alone.
func TestASessionWaitsForItsRunAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	batch := w.named(3)
	holder, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	_, err = holder.ExecContext(t.Context(), `SELECT 1 FROM agent_lanes FOR UPDATE`)
	w.ok(err)
	_, err = holder.ExecContext(t.Context(), `SELECT 1 FROM runs WHERE id = $1 FOR UPDATE`, batch[0].RunID)
	w.ok(err)
	w.GatherSessions(3)
	recorded := make(chan *namedSession, 3)
	for _, x := range batch {
		go func() {
			if err := w.RecordSession(context.WithoutCancel(t.Context()), x.Attempt, x.id); err != nil {
				t.Error(err)
			}
			recorded <- x
		}()
	}
	for range 2 {
		if <-recorded == batch[0] {
			t.Error("a run that is held was passed over")
		}
	}
	w.ok(holder.Rollback())
	<-recorded
	w.wantNamed(batch...)
}
