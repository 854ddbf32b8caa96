package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// waiting makes n due runs, of agents with up to eight sessions.
func (w *world) waiting(n int) (runs []xid.ID) {
	w.Helper()
	for left := n; left > 0; left -= 8 {
		agent := w.agent(string(xid.New("agent")), func(a *CreateAgent) { a.MaxConcurrentSessions = 8 })
		w.queued(agent, min(left, 8))
	}
	runs, err := pgtx.Collect(w.Context(), w.db, pgtx.ScanOne[xid.ID], `SELECT id FROM runs WHERE status = 'QUEUED' ORDER BY requested_at, id`)
	return must(w, runs, err)
}

// wantStarted fails the test unless each claimed run was claimed and started once, and its launch is what is stored of it.
func (w *world) wantStarted(claimed []Claimed) {
	w.Helper()
	w.sound()
	for _, c := range claimed {
		got := one[string](w, `
SELECT concat_ws(' ', r.status, r.attempt, r.started_at IS NOT NULL, a.status, a.executor, a.owner = l.owner,
  (SELECT array_agg(e.kind ORDER BY e.seq) FROM run_events e WHERE e.run_id = r.id),
  (SELECT array_agg(x.code ORDER BY x.id) FROM activities x WHERE x.subject_id = r.id AND x.code::text LIKE 'RUN%'),
  (SELECT array_agg(q.status || ' ' || (q.claimed_at = r.claimed_at AND q.delivered_at = r.started_at)) FROM wakeup_requests q WHERE q.run_id = r.id))
FROM runs r JOIN run_attempts a ON a.run_id = r.id JOIN attempt_leases l ON l.run_id = r.id WHERE r.id = $1`, c.RunID)
		if want := `CLAIMED 1 t LAUNCHING echo t {CLAIMED,LAUNCHED} {RUN_CLAIMED,RUN_LAUNCHED} {"CLAIMED true"}`; got != want {
			w.Fatalf("run %s: %s, want %s", c.RunID, got, want)
		}
		if l := c.Launch; l == nil || l.Attempt != c.Attempt || l.Prompt != one[string](w, `SELECT assembled_prompt FROM run_contents WHERE run_id = $1`, c.RunID) ||
			l.RunToken.Digest().String() != one[string](w, `SELECT token_digest FROM run_attempts WHERE run_id = $1`, c.RunID) {
			w.Errorf("run %s is given %+v", c.RunID, l)
		}
	}
}

// SPEC S6.1, S6.2: what is claimed in one transaction is started in it, in batches of any size, the oldest runs first.
func TestAClaimStartsItsRuns(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 16, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			want := w.waiting(n)
			claimed := w.claim(n)
			w.wantStarted(claimed)
			for i, c := range claimed {
				if c.RunID != want[i] {
					t.Errorf("place %d of the claim has %s, want %s", i, c.RunID, want[i])
				}
			}
			if len(claimed) != n {
				t.Errorf("claimed %d runs of %d", len(claimed), n)
			}
		})
	}
}

// C48: whichever statement of a claim fails, and its commit too, each run is claimed and started once, and none is lost.
func TestAFaultAfterAnyStatementOfAClaimLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 16, 64} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s, f := w.faulty()
			failed := 0
			for n := int64(1); ; n++ {
				w.waiting(size)
				f.left.Store(n)
				f.hit.Store(nil)
				claimed, err := s.Claim(t.Context(), w.owner, size, lease)
				f.left.Store(0)
				if f.hit.Load() == nil {
					w.ok(err)
				} else if err != nil && !errors.Is(err, errFault) {
					t.Fatalf("after %q: %v", *f.hit.Load(), err)
				}
				s.resting.claim.lanes = map[xid.ID]lanesRest{}
				for again := w.claim(size); len(again) > 0; again = w.claim(size) {
					claimed = append(claimed, again...)
				}
				for i := range claimed {
					claimed[i].Launch = w.launch(claimed[i])
				}
				w.wantStarted(claimed)
				if len(claimed) != size {
					t.Errorf("after %v %d runs were claimed, want %d", f.hit.Load(), len(claimed), size)
				}
				if f.hit.Load() == nil || t.Failed() {
					break
				}
				failed++
				w.sql(`UPDATE agent_lanes SET max_sessions = running WHERE running > 0`)
			}
			if failed < 7 {
				t.Errorf("only %d statements failed", failed)
			}
		})
	}
}

// S6.1: whatever becomes of a claim's commit, each run is claimed once: the one whose answer was lost is in nobody's hands, and its
// lease runs out.
func TestAFaultyCommitOfAClaimLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for name, commit := range commitFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s, f := w.faulty()
			w.waiting(9)
			f.commit.Store(&commit)
			claimed, err := s.Claim(t.Context(), w.owner, 9, lease)
			if f.commit.Load() != nil {
				t.Fatal("nothing was committed")
			}
			for again := w.claim(9); len(again) > 0; again = w.claim(9) {
				claimed = append(claimed, again...)
			}
			for i := range claimed {
				claimed[i].Launch = w.launch(claimed[i])
			}
			w.wantStarted(claimed)
			if lost := name == "cut after the server committed"; lost != (len(claimed) == 0) || !lost && len(claimed) != 9 {
				t.Errorf("claimed %d of 9: %v", len(claimed), err)
			}
			if n := one[int](w, `SELECT count(*) FROM attempt_leases`); n != 9 {
				t.Errorf("%d leases, want 9", n)
			}
		})
	}
}

// S6.2: a run whose prompt cannot be assembled is claimed and not started, those beside it are; its start says what is wrong.
func TestARunThatCannotBePreparedKeepsNoOtherFromItsStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad := w.runOf(w.wake(w.agent("bad")))
	w.waiting(5)
	w.sql(`UPDATE wakeup_requests SET payload = '[]' WHERE run_id = $1`, bad)
	claimed := w.claim(10)
	if len(claimed) != 6 {
		t.Fatalf("claimed %d runs, want 6", len(claimed))
	}
	for i, c := range claimed {
		if c.RunID != bad {
			claimed[i].Launch = w.launch(c)
			continue
		}
		if _, err := w.Start(t.Context(), c.Attempt); err == nil || !strings.Contains(err.Error(), "payload") {
			t.Errorf("the start of the bad run says %v", err)
		}
		w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeOther, Message: "not prepared"}))
		w.wantRun(bad, domain.RunStatusQueued, domain.ParkedReasonBackoff)
	}
	w.wantStarted(slices.DeleteFunc(claimed, func(c Claimed) bool { return c.RunID == bad }))
}

// S6.4: a run that nobody said how to execute is claimed and fails by its start; those beside it are started.
func TestARunWithoutAnExecutorKeepsNoOtherFromItsStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bare := w.runOf(w.wake(w.agent("bare", func(a *CreateAgent) { a.Executor = nil })))
	w.waiting(5)
	claimed := w.claim(10)
	if len(claimed) != 6 {
		t.Fatalf("claimed %d runs, want 6", len(claimed))
	}
	i := slices.IndexFunc(claimed, func(c Claimed) bool { return c.RunID == bare })
	if claimed[i].Launch != nil || w.launch(claimed[i]) != nil {
		t.Error("it was launched")
	}
	w.wantStarted(slices.Delete(claimed, i, i+1))
	w.wantRun(bare, domain.RunStatusFailed, "")
	w.sound()
}

// S6.1: one claim assembles as many prompts as there is room for, the first whatever its size, and the next claim goes on.
func TestAClaimAssemblesBoundedPrompts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.waiting(24)
	w.sql(`UPDATE agents SET instructions = repeat('x', 60000)`)
	var sizes []int
	var all []Claimed
	for claimed := w.claim(24); len(claimed) > 0; claimed = w.claim(24) {
		bytes := 0
		for _, c := range claimed {
			bytes += len(c.Launch.Prompt)
		}
		if bytes > promptBytesPerClaim+len(claimed[0].Launch.Prompt) {
			t.Errorf("a claim assembled %d bytes", bytes)
		}
		sizes, all = append(sizes, len(claimed)), append(all, claimed...)
	}
	w.wantStarted(all)
	if len(all) != 24 || len(sizes) < 2 || len(sizes) > 3 {
		t.Errorf("the claims were of %v runs", sizes)
	}
	if !slices.IsSortedFunc(all, func(a, b Claimed) int { return w.run(a.RunID).requestedAt.Compare(w.run(b.RunID).requestedAt) }) {
		t.Error("they are out of order")
	}
}

// S6.1: what a prompt shows of a task takes some statements to read, so that a claim starts few such runs.
func TestAClaimStartsFewRunsAboutTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker", func(in *CreateAgent) { in.MaxConcurrentSessions = 20 })
	for i := range 20 {
		w.wakeOnly(agent, w.task(fmt.Sprint("Task ", i)))
	}
	first, second := w.claim(20), w.claim(20)
	if len(first) != 16 || len(second) != 4 {
		t.Errorf("the claims were of %d and %d runs, want 16 and 4", len(first), len(second))
	}
	for _, c := range append(first, second...) {
		if c.Launch == nil || c.Launch.TaskID == "" {
			t.Errorf("run %s is given %+v", c.RunID, c.Launch)
		}
	}
	w.sound()
}

// The statements of a claim do not grow with it.
func TestTheStatementsOfAClaimDoNotGrowWithIt(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	count := func(n int) int64 {
		w.waiting(n)
		before := statements.Load()
		if claimed := w.claim(n); len(claimed) != n {
			t.Errorf("claimed %d runs of %d", len(claimed), n)
		}
		return statements.Load() - before
	}
	few, many := count(1), count(64)
	if many != few || few > 9 {
		t.Errorf("%d statements for 1 run, %d for 64, want at most 9", few, many)
	}
}

// A claim that may take a whole batch goes on while one of transitions is under way. It waits for that when it has less room, when all
// lanes that are due are held, and after one that went past a lane.
func TestAClaimGoesOnBesideABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w.waiting(1)
	w.ok(w.lanes.Take(soon)) // a batch
	claimed, err := w.Claim(soon, w.owner, claimBatch, lease)
	if w.ok(err); len(claimed) != 1 {
		t.Fatalf("%d runs were claimed beside a batch, want 1", len(claimed))
	}
	w.waiting(1)
	batch, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	_, err = batch.ExecContext(t.Context(), `SELECT 1 FROM agent_lanes FOR UPDATE`)
	w.ok(err)
	waits := func(why string, room int) {
		t.Helper()
		little, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Claim(little, w.owner, room, lease); little.Err() == nil {
			t.Errorf("%s, and the claim did not wait for the batch: %v", why, err)
		}
	}
	waits("the only due lane is held", claimBatch)
	w.ok(batch.Rollback())
	waits("there is less room", claimBatch-1)
	w.starved.update([]xid.ID{claimed[0].AgentID}, nil)
	waits("a lane was passed over", claimBatch)
	w.lanes.Give()
	if claimed := w.claim(1); len(claimed) != 1 {
		t.Errorf("%d runs were claimed after the batch, want 1", len(claimed))
	}
}
