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

// transitions makes n live attempts, of agents with up to eight sessions, and what their owners ask for next: of three, one
// starts, one records its session, and one ends.
func (w *world) transitions(n int) (batch []*transition) {
	w.Helper()
	for left := n; left > 0; left -= 8 {
		agent := w.agent(string(xid.New("agent")), func(a *CreateAgent) { a.MaxConcurrentSessions = 8 })
		w.queued(agent, min(left, 8))
	}
	for len(batch) < n {
		claimed := w.claimUnstarted(n - len(batch))
		if len(claimed) == 0 {
			w.Fatalf("claimed %d of %d runs", len(batch), n)
		}
		for _, c := range claimed {
			x := &transition{Attempt: c.Attempt, kind: transitionKind(len(batch) % 3), session: "said-" + string(c.RunID), success: Success{Summary: "done"}}
			if x.kind != toStart {
				w.start(c)
			}
			batch = append(batch, x)
		}
	}
	return batch
}

// wantMade fails the test unless each transition was made once.
func (w *world) wantMade(batch []*transition) {
	w.Helper()
	w.sound()
	for _, x := range batch {
		want := map[transitionKind]string{
			toStart:  "CLAIMED LAUNCHING {CLAIMED,LAUNCHED} 1",
			toRecord: "CLAIMED RUNNING {CLAIMED,LAUNCHED,SESSION_RECORDED,SESSION_RECORDED} 1",
			toFinish: "FINISHED SUCCEEDED {CLAIMED,LAUNCHED,SESSION_RECORDED,FINISHED} 1",
		}[x.kind]
		got := one[string](w, `
SELECT concat_ws(' ', r.status, a.status, (SELECT array_agg(e.kind ORDER BY e.seq) FROM run_events e WHERE e.run_id = r.id),
  (SELECT count(*) FROM wakeup_requests q WHERE q.run_id = r.id AND q.delivered_at IS NOT NULL AND (q.finished_at IS NULL) = (r.finished_at IS NULL)))
FROM runs r JOIN run_attempts a ON a.run_id = r.id WHERE r.id = $1`, x.RunID)
		if got != want {
			w.Errorf("run %s: %s, want %s", x.RunID, got, want)
		}
		if x.kind == toStart && (x.launch == nil || x.launch.RunID != x.RunID || x.launch.Prompt != one[string](w, `SELECT assembled_prompt FROM run_contents WHERE run_id = $1`, x.RunID)) {
			w.Errorf("run %s is given %+v", x.RunID, x.launch)
		}
		if session := one[*string](w, `SELECT session_id FROM runs WHERE id = $1`, x.RunID); x.kind == toRecord && (session == nil || *session != x.session) {
			w.Errorf("run %s has the session %v", x.RunID, session)
		}
	}
}

// S7: what shares a transaction has the rows that it would have alone, in batches of any size.
func TestTransitionsThatShareATransactionAreThoseOfEachAlone(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 16, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t)
			batch := w.transitions(n)
			if err := errors.Join(w.transitTogether(t.Context(), batch)...); err != nil {
				t.Error(err)
			}
			w.wantMade(batch)
		})
	}
}

// C48: whichever statement of a batch fails, and its commit too, each transition of it is made once, and none is lost.
func TestAFaultAfterAnyStatementOfABatchLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 16, 64} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			w := newWorld(t)
			s, f := w.faulty()
			failed := 0
			for n := int64(1); ; n++ {
				batch := w.transitions(size)
				f.left.Store(n)
				f.hit.Store(nil)
				results := s.transitTogether(t.Context(), batch)
				f.left.Store(0)
				if size == 1 && errors.Is(results[0], errFault) { // it is not asked for again here: its worker does that
					results = s.transitTogether(t.Context(), batch)
				}
				if err := errors.Join(results...); err != nil {
					t.Fatalf("after %q: %v", *f.hit.Load(), err)
				}
				w.wantMade(batch)
				if f.hit.Load() == nil || t.Failed() {
					break
				}
				failed++
				w.sql(`UPDATE agent_lanes SET max_sessions = running WHERE running > 0`)
			}
			if failed < 5 {
				t.Errorf("only %d statements failed", failed)
			}
		})
	}
}

// S7.7: whatever becomes of a batch's commit, what is asked for again is made once, or was made.
func TestAFaultyCommitOfABatchLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for name, commit := range commitFaults {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, f := w.faulty()
			batch := w.transitions(9)
			f.commit.Store(&commit)
			results := s.transitTogether(t.Context(), batch)
			for i, err := range results {
				x := batch[i]
				if err == nil || x.kind == toStart && one[bool](w, `SELECT started_at IS NOT NULL FROM runs WHERE id = $1`, x.RunID) {
					continue
				}
				if x.kind == toRecord && one[bool](w, `SELECT session_id = $2 FROM runs WHERE id = $1`, x.RunID, x.session) {
					continue
				}
				if err := s.transit(t.Context(), x); err != nil && !errors.Is(err, ErrFenced) {
					t.Errorf("asked for again: %v", err)
				}
			}
			for _, x := range batch {
				if x.kind == toStart && x.launch == nil {
					x.kind = -1 // its answer was lost with the connection; the lease runs out
				}
			}
			w.wantMade(slices.DeleteFunc(batch, func(x *transition) bool { return x.kind < 0 }))
		})
	}
}

// A transition that cannot be made fails alone; those that share its batch are made.
func TestATransitionThatFailsSpoilsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	batch := w.transitions(16)
	bad := batch[6]
	w.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`)
	w.sql(`CREATE TRIGGER refuse BEFORE UPDATE ON runs FOR EACH ROW WHEN (NEW.id = '` + string(bad.RunID) + `') EXECUTE FUNCTION refuse()`)
	for i, err := range w.transitTogether(t.Context(), batch) {
		if (err != nil) != (batch[i] == bad) {
			t.Errorf("transition %d: %v", i, err)
		}
	}
	w.wantMade(slices.DeleteFunc(batch, func(x *transition) bool { return x == bad }))
	if bad.launch != nil {
		t.Error("what failed has a launch")
	}
}

// S7.7: attempts that are not live are fenced, whoever shares their batch.
func TestAReportThatComesTooLateIsFencedInABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	batch := w.transitions(6)
	late, again := *batch[1], *batch[2]
	late.Owner = xid.New("prc")
	all := append(batch[:6:6], &late, &again)
	results := make([]error, len(all))
	w.Attempts.transitions.Gather(len(all))
	var wg sync.WaitGroup
	for i, x := range all {
		wg.Go(func() { results[i] = w.transit(t.Context(), x) })
	}
	wg.Wait()
	for i, err := range results {
		switch i {
		case 2, 7: // one end that is said twice: one of the two counts
		case 6:
			if !errors.Is(err, ErrFenced) {
				t.Errorf("a report of another owner: %v", err)
			}
		default:
			w.ok(err)
		}
	}
	if errors.Is(results[2], ErrFenced) == errors.Is(results[7], ErrFenced) {
		t.Errorf("an end that is said twice: %v and %v", results[2], results[7])
	}
	w.wantMade(batch)
}

// A lane that somebody holds delays its own transitions alone.
func TestALaneThatSomebodyHoldsDelaysNoOtherTransition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	batch := append(w.transitions(1), w.transitions(1)...)
	held, other := batch[0], batch[1]
	holder, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	_, err = holder.ExecContext(t.Context(), `SELECT 1 FROM agent_lanes WHERE agent_id = (SELECT agent_id FROM runs WHERE id = $1) FOR UPDATE`, held.RunID)
	w.ok(err)
	w.Attempts.transitions.Gather(2)
	waits, done := make(chan error, 1), make(chan error, 1)
	go func() { waits <- w.transit(t.Context(), held) }()
	go func() { done <- w.transit(t.Context(), other) }()
	w.ok(<-done)
	if len(waits) > 0 {
		t.Error("a lane that is held was passed over")
	}
	w.ok(holder.Rollback())
	w.ok(<-waits)
	w.wantMade(batch)
}

// A row that somebody holds for long delays those that need it, and the others a moment.
func TestARowThatSomebodyHoldsDelaysOthersAMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	batch := slices.Concat(w.transitions(1), w.transitions(1), w.transitions(1), w.transitions(1))
	held := batch[0]
	holder, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	_, err = holder.ExecContext(t.Context(), `SELECT 1 FROM runs WHERE id = $1 FOR UPDATE`, held.RunID)
	w.ok(err)
	w.Attempts.transitions.Gather(4)
	results := make(chan *transition, 4)
	for _, x := range batch {
		go func() {
			if err := w.transit(context.WithoutCancel(t.Context()), x); err != nil {
				t.Error(err)
			}
			results <- x
		}()
	}
	for range 3 {
		if <-results == held {
			t.Error("a row that is held was passed over")
		}
	}
	w.ok(holder.Rollback())
	<-results
	w.wantMade(batch)
}

// The statements of a batch do not grow with it.
func TestTheStatementsOfABatchDoNotGrowWithIt(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	count := func(n int) int64 {
		batch := w.transitions(n)
		before := statements.Load()
		if err := errors.Join(w.transitTogether(t.Context(), batch)...); err != nil {
			t.Error(err)
		}
		return statements.Load() - before
	}
	if few, many := count(3), count(63); many != few {
		t.Errorf("%d statements for 3 transitions, %d for 63", few, many)
	}
}
