package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// kinds are all transitions.
const kinds = int(toHandBack) + 1

// transitions makes n live attempts, of agents with up to eight sessions, and what their owners ask for next: each kind in turn,
// from first on.
func (w *world) transitions(n int, first ...transitionKind) (batch []*transition) {
	w.Helper()
	next := 0
	if len(first) > 0 {
		next = int(first[0])
	}
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
			x := &transition{Attempt: c.Attempt, kind: transitionKind(next % kinds), success: Success{Summary: "done"},
				failure: Failure{Code: domain.RunErrorCodeCrash, Message: "it broke"}}
			next++
			batch = append(batch, x)
		}
	}
	w.startAll(batch)
	return batch
}

// startAll starts those of a batch that are about to do something else, and records their sessions, together: one by one, sixty
// take a second.
func (w *world) startAll(batch []*transition) {
	w.Helper()
	var starts []*transition
	var sessions []*namedSession
	for _, x := range batch {
		if x.kind != toStart {
			starts = append(starts, &transition{Attempt: x.Attempt, kind: toStart})
			sessions = append(sessions, &namedSession{x.Attempt, "session-" + string(x.RunID)})
		}
	}
	w.ok(errors.Join(w.transitTogether(w.Context(), starts)...))
	w.ok(errors.Join(w.recordTogether(w.Context(), sessions)...))
	for _, x := range starts {
		if x.launch == nil {
			w.Fatal("the run was settled at its start")
		}
	}
}

// wantMade fails the test unless each transition was made once.
func (w *world) wantMade(batch []*transition) {
	w.Helper()
	w.sound()
	wants := map[transitionKind]string{
		toStart:    "CLAIMED LAUNCHING {CLAIMED,LAUNCHED} 1",
		toFinish:   "FINISHED SUCCEEDED {CLAIMED,LAUNCHED,SESSION_RECORDED,FINISHED} 1",
		toFail:     "QUEUED FAILED {CLAIMED,LAUNCHED,SESSION_RECORDED,RETRY_SCHEDULED} 1",
		toCancel:   "CANCELLED CANCELLED {CLAIMED,LAUNCHED,SESSION_RECORDED,CANCELLED} 1",
		toHandBack: "QUEUED INTERRUPTED {CLAIMED,LAUNCHED,SESSION_RECORDED,RECOVERED} 1",
	}
	rows := w.madeRows(batch)
	for _, x := range batch {
		got := rows[x.RunID]
		if want := wants[x.kind]; got.state != want {
			w.Errorf("run %s: %s, want %s", x.RunID, got.state, want)
		}
		if x.kind == toStart && (x.launch == nil || x.launch.RunID != x.RunID || x.launch.Prompt != got.prompt) {
			w.Errorf("run %s is given %+v", x.RunID, x.launch)
		}
	}
}

// madeRow is what the rows of a run say of its transitions.
type madeRow struct {
	run           xid.ID
	state, prompt string
}

func (w *world) madeRows(batch []*transition) map[xid.ID]madeRow {
	w.Helper()
	var runs []xid.ID
	for _, x := range batch {
		runs = append(runs, x.RunID)
	}
	list, err := pgtx.Collect(w.Context(), w.db, func(rows *sql.Rows) (m madeRow, err error) {
		return m, rows.Scan(&m.run, &m.state, &m.prompt)
	}, `
SELECT r.id, concat_ws(' ', r.status, a.status, (SELECT array_agg(e.kind ORDER BY e.seq) FROM run_events e WHERE e.run_id = r.id),
  (SELECT count(*) FROM wakeup_requests q WHERE q.run_id = r.id AND q.delivered_at IS NOT NULL AND (q.finished_at IS NULL) = (r.finished_at IS NULL))),
  coalesce((SELECT assembled_prompt FROM run_contents c WHERE c.run_id = r.id), '')
FROM runs r JOIN run_attempts a ON a.run_id = r.id WHERE r.id = ANY($1)`, pgtx.IDs(runs))
	w.ok(err)
	made := map[xid.ID]madeRow{}
	for _, m := range list {
		made[m.run] = m
	}
	return made
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
	type batches struct {
		name  string
		make  func(w *world) []*transition
		check func(w *world, batch []*transition)
	}
	all := []batches{
		{"8 fires", func(w *world) []*transition { return w.firesToEnd(8) }, (*world).wantFiresEnded},
		{"8 that were over at once", func(w *world) []*transition { return w.briefToEnd(8) }, (*world).wantBrief},
		{"5 runs on tasks", func(w *world) []*transition { return w.tasksToEnd(5) }, (*world).wantTasksKept},
	}
	for kind := range kinds {
		all = append(all, batches{fmt.Sprint("1 of kind ", kind), func(w *world) []*transition { return w.transitions(1, transitionKind(kind)) }, (*world).wantMade})
	}
	for _, size := range []int{2, 16, 64} {
		all = append(all, batches{fmt.Sprint(size), func(w *world) []*transition { return w.transitions(size, toFinish) }, (*world).wantMade})
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			s, f := w.faulty()
			failed := 0
			for n := int64(1); ; n++ {
				batch := c.make(w)
				f.left.Store(n)
				f.hit.Store(nil)
				results := s.transitTogether(t.Context(), batch)
				f.left.Store(0)
				if len(batch) == 1 && errors.Is(results[0], errFault) { // it is not asked for again here: its worker does that
					results = s.transitTogether(t.Context(), batch)
				}
				if err := errors.Join(results...); err != nil {
					t.Fatalf("after %q: %v", *f.hit.Load(), err)
				}
				c.check(w, batch)
				if f.hit.Load() == nil || t.Failed() {
					break
				}
				failed++
				w.putAside()
			}
			if failed < 3 {
				t.Errorf("only %d statements failed", failed)
			}
		})
	}
}

// putAside lets no run be claimed that is there.
func (w *world) putAside() {
	w.Helper()
	w.sql(`UPDATE agent_lanes SET max_sessions = running WHERE running > 0`)
	w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = clock_timestamp() + interval '1 day', due_at = NULL WHERE status = 'QUEUED'`)
	w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL`)
}

// firesToEnd are n launched fires of one lightweight routine, which end well.
func (w *world) firesToEnd(n int) (batch []*transition) {
	w.Helper()
	agent := w.agent(string(xid.New("agent")), func(a *CreateAgent) { a.MaxConcurrentSessions = n })
	trigger := w.routine(agent, func(r *CreateRoutine) { r.ConcurrencyPolicy = domain.ConcurrencyPolicyAlwaysEnqueue })
	for i := range n {
		c, _ := w.fire(trigger)
		batch = append(batch, &transition{Attempt: c.Attempt, kind: toFinish, success: Success{Summary: "done", Result: map[string]any{"summary": fmt.Sprint("Saw ", i)}}})
	}
	return batch
}

func (w *world) wantFiresEnded(batch []*transition) {
	w.Helper()
	w.sound()
	const query = `
SELECT concat_ws(' ', r.status, f.status, f.completed_at IS NOT NULL, s.updated_by_run_id = (SELECT max(id) FROM runs WHERE routine_id = r.routine_id),
  position('Saw' IN s.content) > 0)
FROM runs r
JOIN wakeup_requests q ON q.run_id = r.id
JOIN routine_runs f ON f.id = q.routine_run_id
JOIN continuation_summaries s ON s.agent_id = r.agent_id AND s.scope = 'routine:' || r.routine_id
WHERE r.id = $1`
	for _, x := range batch {
		if got := one[string](w, query, x.RunID); got != "FINISHED DONE t t t" {
			w.Errorf("run %s: %s", x.RunID, got)
		}
	}
}

// briefToEnd are n launched attempts that were over at once: their session and all their lines come with the end.
func (w *world) briefToEnd(n int) (batch []*transition) {
	w.Helper()
	for left := n; left > 0; left -= 8 {
		w.queued(w.agent(string(xid.New("agent")), func(a *CreateAgent) { a.MaxConcurrentSessions = 8 }), min(left, 8))
	}
	for _, c := range w.claim(n) {
		batch = append(batch, &transition{Attempt: c.Attempt, kind: toFinish, success: Success{Summary: "done", SessionID: "named-" + string(c.RunID), Named: true, Lines: lines(1, 2, 4)}})
	}
	if len(batch) != n {
		w.Fatalf("claimed %d of %d runs", len(batch), n)
	}
	return batch
}

func (w *world) wantBrief(batch []*transition) {
	w.Helper()
	w.sound()
	const query = `
SELECT concat_ws(' ', r.status, r.session_id, a.session_id, a.status, (SELECT array_agg(e.kind ORDER BY e.seq) FROM run_events e WHERE e.run_id = r.id),
  (SELECT max(e.seq) = count(*) AND max(e.seq) = r.event_seq FROM run_events e WHERE e.run_id = r.id),
  (SELECT e.data ->> 'sessionId' FROM run_events e WHERE e.run_id = r.id AND e.kind = 'SESSION_RECORDED'))
FROM runs r JOIN run_attempts a ON a.run_id = r.id AND a.number = r.attempt WHERE r.id = $1`
	for _, x := range batch {
		named := "named-" + string(x.RunID)
		if got, want := one[string](w, query, x.RunID), "FINISHED "+named+" "+named+" SUCCEEDED {CLAIMED,LAUNCHED,SESSION_RECORDED,FINISHED} t "+named; got != want {
			w.Errorf("run %s: %s, want %s", x.RunID, got, want)
		}
		w.wantLines(x.Attempt, 1, 2, 4)
	}
}

// S7.6, S7.8: the session and the lines of an attempt that was over at once are stored in the transaction of its end, in batches of any
// size. One whose lines cannot be stored spoils no other.
func TestWhatIsOverAtOnceIsStoredWithItsEnd(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 16, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t)
			batch := w.briefToEnd(n)
			before := w.counters.Workspace(w.workspace).AgentLaunches
			if err := errors.Join(w.transitTogether(t.Context(), batch)...); err != nil {
				t.Error(err)
			}
			w.wantBrief(batch)
			if got := w.counters.Workspace(w.workspace).AgentLaunches - before; got != int64(n) {
				t.Errorf("%d launches were counted, want %d", got, n)
			}
		})
	}
	t.Run("one of which is at fault", func(t *testing.T) {
		w := newWorld(t)
		batch := w.briefToEnd(8)
		batch[3].success.Lines[0].Text = "not storable: \x00"
		for i, err := range w.transitTogether(t.Context(), batch) {
			if (err != nil) != (i == 3) {
				t.Errorf("end %d: %v", i, err)
			}
		}
		w.wantBrief(append(batch[:3:3], batch[4:]...))
		if status := one[string](w, `SELECT status FROM runs WHERE id = $1`, batch[3].RunID); status != "CLAIMED" {
			t.Errorf("the run at fault is %s", status)
		}
	})
}

// tasksToEnd are n runs on tasks of one agent, which end in sessions of theirs and say what they used: two well, the others not.
func (w *world) tasksToEnd(n int) (batch []*transition) {
	w.Helper()
	agent := w.agent(string(xid.New("agent")), func(a *CreateAgent) { a.MaxConcurrentSessions = n })
	for i := range n {
		c, _ := w.wakeOn(agent, w.bareTask(agent))
		used, named := &Usage{InputTokens: 10, OutputTokens: 1, CostUSD: "0.5"}, "talk-"+string(c.RunID)
		batch = append(batch, &transition{Attempt: c.Attempt, kind: []transitionKind{toFinish, toFinish, toFail, toCancel, toHandBack}[i%5],
			success:    Success{Summary: "done", SessionID: named, Resumable: true, Usage: used},
			failure:    Failure{Code: domain.RunErrorCodeCrash, Message: "it broke", SessionID: named},
			unfinished: Unfinished{SessionID: named, Resumable: true, Usage: used}})
	}
	return batch
}

func (w *world) wantTasksKept(batch []*transition) {
	w.Helper()
	w.sound()
	const query = `
SELECT concat_ws(' ', r.input_tokens, r.cost_usd, (SELECT count(*) FROM cost_entries WHERE run_id = r.id),
  (SELECT string_agg(concat_ws(' ', s.state, s.run_count, s.external_id = 'talk-' || r.id), ',') FROM task_sessions s WHERE s.task_id = r.task_id))
FROM runs r WHERE r.id = $1`
	for _, x := range batch {
		if got := one[string](w, query, x.RunID); got != "10 0.500000 1 IDLE 1 t" {
			w.Errorf("run %s, kind %d: %s", x.RunID, x.kind, got)
		}
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
	count := func(n int, of func(int) []*transition) int64 {
		batch := of(n)
		before := statements.Load()
		if err := errors.Join(w.transitTogether(t.Context(), batch)...); err != nil {
			t.Error(err)
		}
		made := statements.Load() - before
		w.putAside() // what is tried again is claimed by nobody
		return made
	}
	for name, of := range map[string]func(int) []*transition{
		"all kinds": func(n int) []*transition { return w.transitions(n) }, "fires": w.firesToEnd,
	} {
		if few, many := count(6, of), count(48, of); many != few {
			t.Errorf("%s: %d statements for 6 transitions, %d for 48", name, few, many)
		}
	}
}

// A session is recorded in place: no index of runs has a column that this changes.
func TestASessionIsRecordedInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.waiting(1)
	claimed := w.claim(1)
	var before, after string
	w.ok(w.inTx(t.Context(), func(tx *tx) (err error) {
		const updates = `SELECT concat(n_tup_upd - n_tup_hot_upd) FROM pg_stat_xact_user_tables WHERE relname = 'runs'`
		if before, err = pgtx.QueryOne[string](t.Context(), tx, updates); err != nil {
			return err
		}
		_, err = w.recordSessions(t.Context(), tx, []*namedSession{{claimed[0].Attempt, "session"}}, "")
		if err != nil {
			return err
		}
		after, err = pgtx.QueryOne[string](t.Context(), tx, updates)
		return err
	}))
	if got := one[string](w, `SELECT session_id FROM runs WHERE id = $1`, claimed[0].RunID); got != "session" || before != after {
		t.Errorf("the session is %q, updates that wrote index entries went from %s to %s", got, before, after)
	}
}
