package store

import (
	"fmt"
	"sync"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

func TestEightClaimersShareTwoThousandRuns(t *testing.T) { // C70
	t.Parallel()
	w := newWorld(t)
	const agents, runsEach, claimers = 100, 20, 8
	for i := range agents {
		agent := w.agent(fmt.Sprint("agent", i))
		w.ok(w.inTx(t.Context(), func(tx *tx) error {
			for j := range runsEach {
				_, _, err := tx.insertRequest(t.Context(), newRequest{workspaceID: w.workspace, agentID: agent, causationID: xid.New("cau"),
					scope: fmt.Sprint("task:", j), source: domain.WakeupSourceSelf, class: domain.WakeClassEvent, reason: "test", payload: &domain.SelfPayload{Reason: "test"}})
				if err != nil {
					return err
				}
			}
			return nil
		}))
		w.route(agent)
	}
	var mu sync.Mutex
	taken := map[xid.ID]int{}
	var wg sync.WaitGroup
	for range claimers {
		owner := w.owner
		owner.ID = xid.New("prc")
		wg.Go(func() {
			for { // until a pass finds nothing
				got, err := w.Claim(w.background(), owner, 16, lease)
				if err != nil {
					t.Error(err)
				}
				if len(got) == 0 {
					return
				}
				mu.Lock()
				for _, c := range got {
					taken[c.RunID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(taken) != agents {
		t.Errorf("C70 %d runs were claimed, want one for each of %d agents", len(taken), agents)
	}
	for run, n := range taken {
		if n != 1 {
			t.Errorf("C70 run %s was claimed %d times", run, n)
		}
	}
	w.sound()
}

func TestAWakeThatMissedItsPromptGoesBackToTheQueue(t *testing.T) { // C215
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	delivered, merged := w.request(agent, scoped("task:1")), w.request(agent, scoped("task:1"))
	c := w.claimOne()
	w.start(c)
	// A merge that a crash or a fault let through after the prompt was assembled: linked, and in no prompt.
	missed := w.request(agent, scoped("task:1"))
	w.sql(`UPDATE wakeup_requests SET run_id = $1, status = 'COALESCED' WHERE id = $2`, c.RunID, missed)
	w.finish(c)
	w.wantRequest(delivered, domain.WakeupStatusFinished)
	w.wantRequest(merged, domain.WakeupStatusCoalesced)
	w.route(agent)
	if run := w.runOf(missed); run == c.RunID {
		t.Error("C215 the wake that was in no prompt ended with the run")
	}
	w.start(w.claimOne())
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE id = $1 AND delivered_at IS NOT NULL AND resends = 1`, missed); n != 1 {
		t.Error("C215 the wake was not delivered by the next run")
	}
}

func TestACrashTouchesNoQueuedRun(t *testing.T) { // C216
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	live, waiting := w.wake(agent), w.request(agent, scoped("task:1"))
	c := w.claimOne()
	w.start(c)
	w.sql(`UPDATE attempt_leases SET lease_until = clock_timestamp() - interval '1 hour'`)
	leases := must(w, first(w.Leases(t.Context(), "prc_other", "elsewhere")), nil)
	if len(leases) != 1 || leases[0].RunID != c.RunID {
		t.Errorf("C216 to be rescued are %+v, want the live run alone", leases)
	}
	must(w, first(w.Abandon(t.Context(), c.Attempt, true)), nil)
	w.wantRun(w.runOf(live), domain.RunStatusQueued, domain.ParkedReasonBackoff)
	w.wantRun(w.runOf(waiting), domain.RunStatusQueued, "")
	if n := one[int](w, `SELECT count(*) FROM runs WHERE id = $1 AND abandonments = 0 AND attempt = 0`, w.runOf(waiting)); n != 1 {
		t.Error("C216 the queued run was touched")
	}
	w.sound()
}

func TestARunWithoutASessionIsASilentSuccess(t *testing.T) { // C221
	t.Parallel()
	w := newWorld(t)
	run := w.runOf(w.wake(w.agent("worker")))
	c := w.claimOne()
	w.launch(c)
	w.finish(c)
	r := w.run(run)
	activated := r.requestedAt.Add(-1)
	shape := domain.ShapeOf(domain.ShapeFacts{RequestedAt: r.requestedAt, ActivatedAt: &activated, Status: r.status, Outcome: one[string](w, `SELECT outcome FROM runs WHERE id = $1`, run),
		SessionID: one[string](w, `SELECT coalesce(session_id, '') FROM runs WHERE id = $1`, run)})
	if shape != domain.TerminalShapeSilentSuccess {
		t.Errorf("C221 the shape is %s", shape)
	}
}

func TestNoWayOutLeavesARunClaimed(t *testing.T) { // C232
	t.Parallel()
	ends := map[string]func(*world, Claimed) error{
		"finish": func(w *world, c Claimed) error { return w.Finish(w.Context(), c.Attempt, Success{}) },
		"failure": func(w *world, c Claimed) error {
			return w.Fail(w.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "killed"})
		},
		"fatal": func(w *world, c Claimed) error {
			return w.Fail(w.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeLaunch, Message: "none", Permanent: true})
		},
		"cancel":   func(w *world, c Claimed) error { return w.Cancelled(w.Context(), c.Attempt, Unfinished{}) },
		"shutdown": func(w *world, c Claimed) error { return w.HandBack(w.Context(), c.Attempt, Unfinished{}) },
		"rescue":   func(w *world, c Claimed) error { _, err := w.Abandon(w.Context(), c.Attempt, true); return err },
	}
	for name, end := range ends {
		for _, started := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, started %t", name, started), func(t *testing.T) {
				w := newWorld(t)
				w.wake(w.agent("worker"))
				c := w.claimOne()
				if started {
					w.start(c)
				}
				if name == "cancel" {
					w.ok(w.CancelRun(t.Context(), w.workspace, c.RunID, ""))
				}
				w.ok(end(w, c))
				if n := one[int](w, `SELECT count(*) FROM runs WHERE status = 'CLAIMED'`); n != 0 {
					t.Error("C232 the run is left CLAIMED")
				}
				w.sound()
			})
		}
	}
}
