package store

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/sparing"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// refuse makes the database refuse what a trigger condition describes, until the test is over.
func (w *world) refuse(event, table, when string) {
	w.Helper()
	w.sql(`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not today'; END $$`)
	w.sql(fmt.Sprintf(`CREATE TRIGGER refuse_%d BEFORE %s ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION refuse()`, one[int](w, `SELECT count(*) FROM pg_trigger`), event, table, when))
}

// refuseUnparking makes the parked runs of an agent impossible to make due.
func (w *world) refuseUnparking(agent xid.ID) {
	w.Helper()
	w.refuse("UPDATE", "runs", fmt.Sprintf(`OLD.agent_id = '%s' AND OLD.parked_until IS NOT NULL AND NEW.parked_until IS NULL`, agent))
}

// overdue wakes an agent n times, and parks all its runs until a minute ago.
func (w *world) overdue(agent xid.ID, n int) {
	w.Helper()
	for i := range n {
		w.request(agent, scoped(fmt.Sprint("task:", agent, i)))
	}
	w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = clock_timestamp() - interval '1 minute', due_at = NULL WHERE agent_id = $1`, agent)
	w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL WHERE agent_id = $1`, agent)
}

// wantBlame fails the test unless the error joins one for each of the records, named so.
func (w *world) wantBlame(err error, what string, of ...xid.ID) {
	w.Helper()
	all := sparing.Unjoin(err)
	for _, id := range of {
		if !slices.ContainsFunc(all, func(e error) bool { return strings.HasPrefix(e.Error(), what+" "+string(id)+": ") }) {
			w.Errorf("the error does not say that it could not %s %s: %v", what, id, err)
		}
	}
	if len(all) != len(of) {
		w.Errorf("%d errors, want %d: %v", len(all), len(of), err)
	}
}

func agentsOf(claimed []Claimed) (agents []xid.ID) {
	for _, c := range claimed {
		agents = append(agents, c.AgentID)
	}
	return agents
}

// SPEC S6.2: a lane whose parked runs cannot be made due, however many there are in front, keeps no other: neither due runs nor parked ones.
func TestALaneThatCannotBePromotedKeepsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad, parked, due := w.agent("bad"), w.agent("parked"), w.agent("due")
	w.overdue(bad, promotionsPerPass+1)
	w.overdue(parked, 1)
	w.sql(`UPDATE runs SET parked_until = parked_until + interval '1 second' WHERE agent_id = $1`, parked)
	w.wake(due)
	w.refuseUnparking(bad)
	claimed, err := w.Claim(t.Context(), w.owner, 10, lease)
	w.wantBlame(err, "promote parked runs of lane", bad)
	if CutShort(err) {
		t.Error("the error says that nothing could be claimed")
	}
	if got := agentsOf(claimed); len(got) != 2 || !slices.Contains(got, parked) || !slices.Contains(got, due) {
		t.Errorf("claimed for %v, want %v", got, []xid.ID{parked, due})
	}
	w.sound()
}

// A lane that somebody holds for long is no reason either.
func TestALaneThatIsHeldKeepsNoOtherFromBeingPromoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held, parked := w.agent("held"), w.agent("parked")
	w.overdue(held, promotionsPerPass+1)
	w.overdue(parked, 1)
	w.sql(`UPDATE runs SET parked_until = parked_until + interval '1 second' WHERE agent_id = $1`, parked)
	release := w.lockedLane(held)
	defer release()
	if got := agentsOf(w.claim(10)); len(got) != 1 || got[0] != parked {
		t.Errorf("claimed for %v, want %s", got, parked)
	}
}

// SPEC S6.2: a lane from which nothing can be claimed, and whose run cannot even be parked, keeps no other; nor do as many of
// them as one claim looks at.
func TestALaneThatCannotBeClaimedFromKeepsNoOther(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, claimBatch + 1} {
		t.Run(fmt.Sprint(n, " of them"), func(t *testing.T) {
			w := newWorld(t)
			var bad []xid.ID
			for i := range n {
				bad = append(bad, w.agent(fmt.Sprint("bad", i)))
				w.wake(bad[i])
			}
			good := w.agent("good")
			w.wake(good)
			w.refuse("UPDATE", "runs", fmt.Sprintf(`OLD.agent_id <> '%s'`, good))
			claimed, err := w.Claim(t.Context(), w.owner, 10, lease)
			w.wantBlame(err, "claim lane", bad...)
			if got := agentsOf(claimed); len(got) != 1 || got[0] != good {
				t.Errorf("claimed for %v, want %s", got, good)
			}
			again, err := w.Claim(t.Context(), w.owner, 10, lease)
			w.wantBlame(err, "claim lane", bad...)
			if len(again) != 0 {
				t.Errorf("claimed for %v", agentsOf(again))
			}
			w.sound()
		})
	}
}

// The order is kept beside a lane that fails: what is newer than the heads that were looked at is not taken before them.
func TestTheOldestRunsAreClaimedFirstBesideALaneThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	w.Store.resting.claim.now = func() time.Time { now = now.Add(domain.LongestLaneRest / 2); return now } // a lane that fails never rests long
	bad := w.agent("bad")
	w.wake(bad)
	w.refuse("UPDATE", "runs", fmt.Sprintf(`OLD.agent_id = '%s'`, bad))
	several := w.agent("several", func(in *CreateAgent) { in.MaxConcurrentSessions = 5 })
	var want []xid.ID
	for i := range 2 {
		w.request(several, scoped(fmt.Sprint("task:", i)))
		other := w.agent(fmt.Sprint("other", i))
		w.wake(other)
		want = append(want, several, other)
	}
	var got []xid.ID
	for range len(want) {
		claimed, err := w.Claim(t.Context(), w.owner, 1, lease)
		w.wantBlame(err, "claim lane", bad)
		got = append(got, agentsOf(claimed)...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("claimed for %v, want %v", got, want)
	}
}

// S7.1: the same for workers: neither a lane that cannot be promoted, of whatever workspace, nor one that cannot be offered, nor
// a run that cannot be started keeps the others of the queue from them.
func TestWhatCannotBeOfferedKeepsNothingElseFromWorkers(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *world, bad xid.ID){
		"it cannot be promoted": func(w *world, bad xid.ID) {
			w.overdue(bad, 1)
			w.refuseUnparking(bad)
		},
		"it cannot be claimed": func(w *world, bad xid.ID) {
			w.wake(bad)
			w.refuse("UPDATE", "runs", fmt.Sprintf(`OLD.agent_id = '%s'`, bad))
		},
		"it cannot be offered again": func(w *world, bad xid.ID) {
			w.wake(bad)
			w.sql(`UPDATE runs SET parked_reason = 'NO_WORKER', due_at = NULL WHERE agent_id = $1`, bad)
			w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL WHERE agent_id = $1`, bad)
			w.refuse("UPDATE", "runs", fmt.Sprintf(`OLD.agent_id = '%s'`, bad))
		},
		"it cannot be started": func(w *world, bad xid.ID) {
			w.offered(w.wake(bad))
			w.refuse("UPDATE", "run_attempts", fmt.Sprintf(`OLD.run_id = '%s'`, one[xid.ID](w, `SELECT id FROM runs WHERE agent_id = $1`, bad)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			bad := w.agent("bad", pulled("gpu"))
			spoil(w, bad)
			good := w.agent("good", pulled("gpu"))
			run := w.runOf(w.wake(good))
			if got := w.acquireOne("gpu"); got.RunID != run {
				t.Errorf("a worker got %s, want %s", got.RunID, run)
			}
			if got := w.acquire("gpu"); got != nil {
				t.Errorf("a worker got %s", got.RunID)
			}
			w.sound()
		})
	}
}

func TestAProcessWithoutSlotsOffersPastALaneThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parked, bad, good := w.agent("parked"), w.agent("bad", pulled("gpu")), w.agent("good", pulled("gpu"))
	w.overdue(parked, 1)
	w.refuseUnparking(parked)
	w.wake(bad)
	w.refuse("UPDATE", "runs", fmt.Sprintf(`OLD.agent_id = '%s'`, bad))
	run := w.runOf(w.wake(good))
	defer w.AwaitOffers(w.workspace, "gpu")()
	err := w.OfferToWaiters(t.Context())
	if err == nil || !strings.Contains(err.Error(), "promote parked runs of lane "+string(parked)) || !strings.Contains(err.Error(), "claim lane "+string(bad)) {
		t.Errorf("the error is %v", err)
	}
	w.wantRun(run, domain.RunStatusClaimed, "")
	w.sound()
}

// A database that is away ends a pass at once.
func TestALostConnectionEndsAPassAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 3 {
		w.overdue(w.agent(fmt.Sprint("agent", i)), 1)
	}
	s, f := w.faulty()
	commits := 0
	var lose func(c *faultyConn, tx driver.Tx) error
	lose = func(c *faultyConn, tx driver.Tx) error {
		commits++
		f.commit.Store(&lose)
		return commitFaults["cut before the server committed"](c, tx)
	}
	f.commit.Store(&lose)
	claimed, err := s.Claim(t.Context(), w.owner, 10, lease)
	if len(claimed) != 0 || !CutShort(err) || commits != 1 {
		t.Errorf("claimed %v after %d commits that were lost: %v", claimed, commits, err)
	}
	w.sound()
}

// Each sweep goes on past what it cannot do, does the rest, and names what it left.
func TestASweepGoesOnPastWhatItCannotDo(t *testing.T) {
	t.Parallel()
	t.Run("the repair", func(t *testing.T) {
		w := newWorld(t)
		bad, good := w.agent("bad"), w.agent("good")
		w.wake(bad)
		w.wake(good)
		w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL`)
		w.sql(`UPDATE workspace_lanes SET running = 3`)
		task := w.bareTask(good)
		w.sql(`UPDATE tasks SET checkout_agent_id = $2, checkout_run_id = (SELECT min(id) FROM runs), checkout_at = now() WHERE id = $1`, task, good)
		budget := w.budget(good, "10")
		w.sql(`UPDATE budget_policies SET reserved_usd = 1`)
		w.refuse("UPDATE", "agent_lanes", fmt.Sprintf(`OLD.agent_id = '%s'`, bad))
		done, err := w.Repair(t.Context())
		w.wantBlame(err, "repair lane", bad)
		if want := (Repairs{Heads: 1, Workspaces: 1, Checkouts: 1, Holds: 1}); done != want {
			t.Errorf("repaired %+v, want %+v", done, want)
		}
		page := httptest.NewRecorder()
		w.counters.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
		if !strings.Contains(page.Body.String(), `rouse_repairs_total{what="head"} 1`) {
			t.Errorf("the repair is not counted:\n%s", page.Body)
		}
		w.wantLedger("after the repair", budget, "0 spent, 0 reserved, 0 told")
	})
	t.Run("the repair of checkouts", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker")
		bad, good := w.bareTask(agent), w.bareTask(agent)
		w.wake(agent)
		w.sql(`UPDATE tasks SET checkout_agent_id = $1, checkout_run_id = (SELECT min(id) FROM runs), checkout_at = now()`, agent)
		w.refuse("UPDATE", "tasks", fmt.Sprintf(`OLD.id = '%s'`, bad))
		done, err := w.Repair(t.Context())
		w.wantBlame(err, "repair checkout of task", bad)
		if done != (Repairs{Checkouts: 1}) || w.holder(good) != "" {
			t.Errorf("repaired %+v", done)
		}
	})
	t.Run("the sweep of budgets", func(t *testing.T) {
		w := newWorld(t)
		bad, good := w.agent("bad"), w.agent("good")
		budgets := map[xid.ID]xid.ID{bad: w.budget(bad, "10"), good: w.budget(good, "10")}
		w.sql(`UPDATE agent_lanes SET status = 'PAUSED', pause_reason = 'BUDGET', paused_at = clock_timestamp()`)
		w.sql(`UPDATE budget_policies SET spent_usd = 5`)
		w.refuse("UPDATE", "budget_policies", fmt.Sprintf(`OLD.id = '%s'`, budgets[bad]))
		w.refuse("UPDATE", "agent_lanes", fmt.Sprintf(`OLD.agent_id = '%s'`, bad))
		resumed, err := w.SweepBudgets(t.Context())
		if all := sparing.Unjoin(err); resumed != 1 || len(all) != 2 || !strings.HasPrefix(all[0].Error(), "renew budget "+string(budgets[bad])) ||
			!strings.HasPrefix(all[1].Error(), "resume an agent that a budget held: agent "+string(bad)) {
			t.Errorf("resumed %d agents: %v", resumed, err)
		}
		w.wantLedger("after the sweep", budgets[good], "0 spent, 0 reserved, 0 told")
	})
	t.Run("the recovery", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker")
		bad, good := w.unstarted(agent), w.unstarted(agent)
		w.refuse("INSERT", "wakeup_requests", fmt.Sprintf(`NEW.task_id = '%s'`, bad))
		done, err := w.Recover(t.Context())
		if len(done) != 1 || done[0].TaskID != good || err == nil || !strings.HasPrefix(err.Error(), "recover task "+string(bad)+" of workspace ") {
			t.Errorf("recovered %+v: %v", done, err)
		}
	})
	t.Run("the retention", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker")
		w.olds(agent, "new", domain.RetentionFloor, 1, "")
		w.olds(agent, "old", retentionBatch+50, 40, "")
		w.refuse("DELETE", "runs", `OLD.id = 'run_old249'`)
		var total domain.Removed
		for more := true; more; {
			removed, again, err := w.Prune(t.Context(), keepAMonth)
			w.wantBlame(err, "remove old runs: row", "run_old249")
			total, more = total.Plus(removed), again
		}
		if runs, _, _ := w.left("old"); runs != 1 || total.Runs != retentionBatch+49 {
			t.Errorf("%d old runs are left, %d were removed", runs, total.Runs)
		}
	})
	t.Run("the move of offers", func(t *testing.T) {
		w := newWorld(t)
		bad, good := w.agent("bad", pulled("gpu")), w.agent("good", pulled("gpu"))
		var runs []xid.ID
		for _, agent := range []xid.ID{bad, good} {
			runs = append(runs, w.offered(w.wake(agent)))
		}
		w.refuse("UPDATE", "runs", fmt.Sprintf(`OLD.agent_id = '%s'`, bad))
		w.sql(`UPDATE agents SET executor = '{"echo": {}}'`)
		w.wantBlame(w.moveOffers(t.Context(), entry{workspaceID: w.workspace, code: domain.ActivityCodeAgentChanged, by: system("test"), subjectID: bad}, &Moved{}), "lane", bad)
		w.wantRun(runs[0], domain.RunStatusClaimed, "")
		w.wantRun(runs[1], domain.RunStatusQueued, "")
	})
}

// What a transaction that lost a race had put right is not counted twice when it is repeated.
func TestARepairThatIsRepeatedCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.wake(agent)
	w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL`)
	s, f := w.faulty()
	refused := commitFaults["refused, a lost race"]
	f.commit.Store(&refused)
	done, err := s.Repair(t.Context())
	if w.ok(err); f.commit.Load() != nil || done != (Repairs{Heads: 1}) {
		t.Errorf("repaired %+v, want one head", done)
	}
	w.sound()
}

func TestEachEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	failed, err := pgtx.Each(ctx, []xid.ID{"a_1", "a_2", "a_3"}, func(id xid.ID) error {
		if done++; id == "a_2" {
			cancel()
		}
		return errFault
	}, pgtx.Blaming("do"))
	if done != 2 || len(failed) != 2 || err.Error() != "do a_1: "+errFault.Error()+"\ndo a_2: "+errFault.Error() {
		t.Errorf("it did %d and says %v", done, err)
	}
}

func TestALeaseThatCannotBeRenewedKeepsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad := w.agent("bad")
	for _, agent := range []xid.ID{bad, w.agent("one"), w.agent("two"), w.agent("three")} {
		w.wake(agent)
	}
	claimed := w.claim(4)
	var attempts []Attempt
	for _, c := range claimed {
		attempts = append(attempts, c.Attempt)
	}
	w.sql(`UPDATE attempt_leases SET lease_until = clock_timestamp() + interval '1 hour'`)
	w.refuse("UPDATE", "attempt_leases", fmt.Sprintf(`OLD.agent_id = '%s'`, bad))
	states, err := w.Heartbeat(t.Context(), attempts, lease)
	w.ok(err)
	if len(states) != 4 {
		t.Fatalf("%d states, want 4", len(states))
	}
	for _, s := range states {
		i := slices.IndexFunc(claimed, func(c Claimed) bool { return c.Attempt == s.Attempt })
		if s.Lost || s.Busy != (claimed[i].AgentID == bad) {
			t.Errorf("%+v", s)
		}
	}
	if n := one[int](w, `SELECT count(*) FROM attempt_leases WHERE lease_until < clock_timestamp() + interval '30 minutes'`); n != 3 {
		t.Errorf("%d leases were renewed, want 3", n)
	}
}

// A row of a run or of a budget that somebody holds for long delays nobody else's claims but once: the claim goes past it, and
// the lane that is kept by it rests longer each time.
func TestARowThatSomebodyHoldsDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]string{
		"a run":                  `SELECT 1 FROM runs WHERE agent_id = $1 FOR UPDATE`,
		"a budget of the agent":  `SELECT 1 FROM budget_policies WHERE subject_id = $1 FOR UPDATE`,
		"the lane of the agent":  `SELECT 1 FROM agent_lanes WHERE agent_id = $1 FOR UPDATE`,
		"the budget of the room": `SELECT 1 FROM budget_policies WHERE subject_kind = 'WORKSPACE' AND workspace_id = (SELECT workspace_id FROM agents WHERE id = $1) FOR UPDATE`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			now := time.Now()
			w.Store.resting.claim.now = func() time.Time { return now }
			kept := w.agent("kept")
			for kind, subject := range map[domain.BudgetSubjectKind]xid.ID{domain.BudgetSubjectKindAgent: kept, domain.BudgetSubjectKindWorkspace: w.workspace} {
				_, _, err := w.UpsertBudget(t.Context(), UpsertBudget{WorkspaceID: w.workspace, SubjectKind: kind, SubjectID: subject, LimitUSD: "1000", Period: domain.BudgetPeriodTotal,
					Thresholds: []int{80}, OnExceed: domain.BudgetActionPauseAgent})
				w.ok(err)
			}
			w.wake(kept)
			elsewhere := must(w, first(w.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Elsewhere"})), nil)
			w.sql(`UPDATE workspaces SET coalescing_window_ms = 0`)
			home := w.workspace
			w.workspace = elsewhere.ID
			other := w.agent("other", func(a *CreateAgent) { a.Cooldown = 0 })
			holder, err := w.db.BeginTx(t.Context(), nil)
			w.ok(err)
			defer holder.Rollback()
			_, err = holder.ExecContext(t.Context(), hold, kept)
			w.ok(err)
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			for range 8 {
				want := w.runOf(w.wake(other))
				claimed, err := w.Claim(ctx, w.owner, 10, lease)
				if ctx.Err() != nil || err != nil || len(claimed) != 1 || claimed[0].RunID != want {
					t.Fatalf("claimed %v while somebody holds %s, want %s: %v", claimed, name, want, err)
				}
				w.start(claimed[0])
				w.finish(claimed[0])
			}
			w.ok(holder.Rollback())
			now = now.Add(domain.LongestLaneRest)
			w.workspace = home
			if c := w.claimOne(); c.AgentID != kept {
				t.Errorf("claimed for %s once the row is free, want %s", c.AgentID, kept)
			}
			w.sound()
		})
	}
}

// That somebody holds a row is no failure of a claim; when it lasts, the log says who holds it, once in a while.
func TestALastingLockIsToldWithItsHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	w.Store.resting.claim.now = func() time.Time { return now }
	var told bytes.Buffer
	w.Store.log = slog.New(slog.NewTextHandler(&told, nil))
	kept := w.agent("kept")
	w.wake(kept)
	holder, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	defer holder.Rollback()
	_, err = holder.ExecContext(t.Context(), `SELECT 1 FROM runs WHERE agent_id = $1 FOR UPDATE`, kept)
	w.ok(err)
	var pid int
	w.ok(holder.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	for range 4 {
		claimed, err := w.Claim(t.Context(), w.owner, 1, lease)
		if err != nil || len(claimed) != 0 {
			t.Fatalf("claimed %v, %v", claimed, err)
		}
		now = now.Add(domain.LongestHeldRest)
	}
	want := fmt.Sprintf("a row of runs that agent %s needs is held by process %d of account ", kept, pid)
	if got := told.String(); strings.Count(got, "somebody holds a row") != 1 || !strings.Contains(got, want) || strings.Contains(got, "level=ERROR") {
		t.Errorf("the log says %s\nwant one line with %s", got, want)
	}
	w.ok(holder.Rollback())
	w.claimOne()
	w.sound()
}

// Lanes that fail at each pass cost the others less and less: each rests longer after each failure in a row.
func TestALaneThatFailsAgainAndAgainRestsLonger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	w.Store.resting.claim.now = func() time.Time { return now }
	bad := w.agent("bad")
	w.wake(bad)
	w.refuse("UPDATE", "runs", fmt.Sprintf(`OLD.agent_id = '%s' AND NEW.status = 'CLAIMED'`, bad))
	w.refuse("UPDATE", "runs", fmt.Sprintf(`OLD.agent_id = '%s' AND NEW.parked_reason = 'GUARD_ERROR'`, bad))
	tried := func() bool {
		_, err := w.Claim(t.Context(), w.owner, 10, lease)
		return err != nil
	}
	for range 2 {
		if !tried() {
			t.Fatal("the lane did not fail")
		}
	}
	var pauses []time.Duration
	for range 5 {
		began := now
		for !tried() {
			now = now.Add(500 * time.Millisecond)
			if now.Sub(began) > time.Hour {
				t.Fatal("the lane is never tried again")
			}
		}
		pauses = append(pauses, now.Sub(began))
	}
	if !slices.IsSorted(pauses) || pauses[0] == pauses[4] || pauses[4] > domain.LongestLaneRest {
		t.Errorf("it rested %v, want longer each time", pauses)
	}
	w.sql(`DROP FUNCTION refuse CASCADE`)
	now = now.Add(domain.LongestLaneRest)
	w.claimOne()
	w.sound()
}
