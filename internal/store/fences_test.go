package store

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// SPEC S10.1: the database's clock says whether a token still counts, and nothing else does.
func TestATokenThatExpiredOrWasRevokedIsNotKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	soon := time.Now().Add(time.Hour)
	id := must(w, first(w.CreateToken(t.Context(), NewToken{WorkspaceID: w.workspace, Name: "ci", Digest: "digest", Scopes: []domain.TokenScope{domain.TokenScopeRead}, ExpiresAt: &soon})), nil)
	known := func() bool {
		token := must(w, first(w.TokenByDigest(t.Context(), "digest")), nil)
		return token != nil && token.ID == id
	}
	if !known() {
		t.Fatal("a token that counts for an hour is not known")
	}
	w.sql(`UPDATE api_tokens SET expires_at = clock_timestamp() - interval '1 millisecond'`)
	if known() {
		t.Error("a token that expired is known")
	}
	w.sql(`UPDATE api_tokens SET expires_at = NULL`)
	if !known() {
		t.Error("a token without an end is not known")
	}
	w.sql(`UPDATE api_tokens SET revoked_at = clock_timestamp()`)
	if known() {
		t.Error("a token that was revoked is known")
	}
}

// SPEC S5.6: a task that falls free calls those that its lock made skip, and none that was skipped for another reason.
func TestATaskThatFallsFreeCallsOnlyThoseThatItsLockHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	holder, other := w.agent("holder"), w.agent("other")
	task := w.task("Shared", assignedTo(holder))
	held := w.claimOne()
	w.start(held)
	skipped := map[domain.EndReason]xid.ID{}
	for _, reason := range []domain.EndReason{domain.EndReasonCheckoutHeld, domain.EndReasonBacklogFull, domain.EndReasonIdleSkipped} {
		id := xid.New("wkp")
		w.sql(`INSERT INTO wakeup_requests (id, workspace_id, agent_id, task_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, end_reason, finished_at, recovered, resends, hops, retry_count)
VALUES ($1, $2, $3, $4, 'cau', $6, 'SELF', 'EVENT', false, 'test', '{}', 'SKIPPED', $5, now(), false, 0, 0, 0)`, id, w.workspace, other, task, reason, "task:"+string(task))
		skipped[reason] = id
	}
	w.ok(w.inTx(t.Context(), func(x *tx) error { return x.resendHeld(t.Context(), w.workspace, task) }))
	for reason, id := range skipped {
		want := domain.WakeupStatusSkipped
		if reason == domain.EndReasonCheckoutHeld {
			want = domain.WakeupStatusQueued
		}
		w.wantRequest(id, want)
	}
}

// SPEC S7.7: an attempt belongs to the owner of its lease. Whoever had it before, under the same number, changes nothing.
func TestReportsOfAnotherOwnerAreFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wake(w.agent("worker"))
	c := w.claimOne()
	w.start(c)
	w.sql(`UPDATE attempt_leases SET owner = 'another'`)
	w.wantFenced(c.Attempt)
	now := c.Attempt
	now.Owner = "another"
	reports := w.reports()
	w.ok(reports["lines of a worker"](now))
	w.ok(reports["an end"](now))
}

// SPEC S7.7: a report of an earlier attempt changes nothing, also when its owner has the run again.
func TestReportsOfAnEarlierAttemptAreFenced(t *testing.T) {
	w := newWorld(t)
	w.wake(w.agent("worker"))
	earlier := w.claimOne()
	w.start(earlier)
	w.ok(w.HandBack(t.Context(), earlier.Attempt, Unfinished{}))
	now := w.claimOne()
	if now.RunID != earlier.RunID || now.Number != earlier.Number+1 || now.Owner != earlier.Owner {
		t.Fatalf("claimed %+v after %+v", now.Attempt, earlier.Attempt)
	}
	w.start(now)
	w.wantFenced(earlier.Attempt)
	w.ok(w.reports()["an end"](now.Attempt))
}

// reports are what the owner of an attempt can say about it, by names.
func (w *world) reports() map[string]func(Attempt) error {
	ctx := w.Context()
	line := []LogLine{{Seq: 1, Stream: domain.LogStreamStdout, Text: "late", At: time.Now()}}
	return map[string]func(Attempt) error{
		"lines of a worker": func(a Attempt) error { _, err := w.AppendReported(ctx, a, 1, line); return err },
		"a step and lines": func(a Attempt) error {
			_, err := w.ReportProgress(ctx, a, map[string]any{"step": 1}, 1, line)
			return err
		},
		"a step":                func(a Attempt) error { return w.Progress(ctx, a, map[string]any{"step": 1}) },
		"lines":                 func(a Attempt) error { return w.AppendLog(ctx, a, line) },
		"a start":               func(a Attempt) error { _, err := w.Start(ctx, a); return err },
		"a session":             func(a Attempt) error { return w.RecordSession(ctx, a, "late") },
		"a process":             func(a Attempt) error { return w.RecordProcess(ctx, a, ProcessGroup{PGID: 7}) },
		"a sign of a worker":    func(a Attempt) error { _, err := w.Renew(ctx, a); return err },
		"a failure":             func(a Attempt) error { return w.Fail(ctx, a, Failure{Code: domain.RunErrorCodeOther}) },
		"an end after a cancel": func(a Attempt) error { return w.Cancelled(ctx, a, Unfinished{}) },
		"an end of a shutdown":  func(a Attempt) error { return w.HandBack(ctx, a, Unfinished{}) },
		"an end":                func(a Attempt) error { return w.Finish(ctx, a, Success{}) },
	}
}

// wantFenced makes each report about an attempt that is not the live one, and looks at what must stay as it is.
func (w *world) wantFenced(a Attempt) {
	w.Helper()
	const state = `SELECT concat_ws(' ', r.status, r.attempt, r.event_seq, r.session_id, l.attempt, l.owner, l.process_group, l.lease_until, (SELECT count(*) FROM run_log_lines))
FROM runs r JOIN attempt_leases l ON l.run_id = r.id WHERE r.id = $1`
	before := one[string](w, state, a.RunID)
	for name, report := range w.reports() {
		if err := report(a); !errors.Is(err, ErrFenced) {
			w.Errorf("%s: %v, want ErrFenced", name, err)
		}
	}
	if states := must(w, first(w.Heartbeat(w.Context(), []Attempt{a}, lease)), nil); len(states) != 1 || !states[0].Lost {
		w.Errorf("a sign of life gives %+v", states)
	}
	if after := one[string](w, state, a.RunID); after != before {
		w.Errorf("before the reports: %s\nand after them:   %s", before, after)
	}
}

// SPEC S3.2: two changes of blockers of which each alone makes no cycle are done one after the other.
func TestTwoChangesOfBlockersMakeNoCycleTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := w.task("A"), w.task("B"), w.task("C")
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	letGo := sync.OnceFunc(func() { close(free) })
	defer letGo() // also of a test that fails: else its database would wait for the transaction
	go func() {   // another change, which has looked for cycles and is not committed
		done <- w.inTx(w.background(), func(x *tx) error {
			if _, err := x.lockForBlockers(w.background(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: c}); err != nil {
				return err
			}
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	ends := make(chan error, 2)
	for task, blocker := range map[xid.ID]xid.ID{a: b, b: a} {
		go func() {
			_, err := w.SetTaskBlockers(w.background(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: task, BlockedBy: []xid.ID{blocker}})
			ends <- err
		}()
	}
	w.until("both wait for the other change", func() bool {
		return w.waitForLocks() == 2
	})
	letGo()
	w.ok(<-done)
	refused := 0
	for range 2 {
		if err := <-ends; err != nil {
			w.refused(err, domain.UserErrorCodeBlockerCycle)
			refused++
		}
	}
	if n := one[int](w, `SELECT count(*) FROM task_blockers`); refused != 1 || n != 1 {
		t.Errorf("%d of two changes were refused and %d links are there, want one of each", refused, n)
	}
}

// SPEC S7.6: what an agent makes is forced to its task, so that its key on another task is another key.
func TestAnAgentsKeyIsBoundToItsTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	as := func(task xid.ID) context.Context {
		return auth.WithPrincipal(t.Context(), auth.Principal{Kind: auth.KindRun, WorkspaceID: w.workspace, AgentID: agent, TaskID: task})
	}
	comment := func(ctx context.Context, key string) Made {
		var made Made
		w.ok(w.inTx(ctx, func(x *tx) (err error) {
			made, err = x.idempotent(ctx, w.workspace, "addComment", Idempotency{Key: key, InputDigest: "d"}, func() (Made, error) { return Made{ID: xid.New("cmt")}, nil })
			return err
		}))
		return made
	}
	made := comment(as("tsk_1"), "k")
	if again := comment(as("tsk_1"), "k"); !again.Replayed || again.ID != made.ID {
		t.Errorf("the same key on the same task: %+v, want %+v again", again, made)
	}
	for name, other := range map[string]Made{"another task": comment(as("tsk_2"), "k"), "a person": comment(t.Context(), "k")} {
		if other.Replayed || other.ID == made.ID {
			t.Errorf("the same key of %s gives what the agent made: %+v", name, other)
		}
	}
}

// SPEC S3.5: what waits behind a run of its scope stays there while one is live or due.
func TestAScopeIsNotReleasedWhileOneOfItIsLiveOrDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.queued(agent, 2)
	w.sql(`UPDATE runs SET scope = 'task:x' WHERE agent_id = $1`, agent)
	runs := w.texts(`SELECT id FROM runs WHERE agent_id = $1 ORDER BY id`, agent)
	ahead, waiting := runs[0], runs[1]
	release := func(together bool) bool {
		w.Helper()
		w.sql(`UPDATE runs SET parked_reason = 'SCOPE_BUSY', due_at = NULL WHERE id = $1`, waiting)
		w.ok(w.inTx(t.Context(), func(x *tx) error {
			if together {
				return x.releaseScopesOf(t.Context(), []runRow{{agentID: agent, scope: "task:x"}})
			}
			return x.releaseScope(t.Context(), agent, "task:x")
		}))
		return one[bool](w, `SELECT parked_reason IS NULL FROM runs WHERE id = $1`, waiting)
	}
	want := func(state string, released bool) {
		w.Helper()
		for _, together := range []bool{false, true} {
			if got := release(together); got != released {
				t.Errorf("together %t: beside one that is %s it is released: %t", together, state, got)
			}
		}
	}
	want("due", false)
	w.sql(`UPDATE runs SET parked_reason = 'SCOPE_BUSY', due_at = NULL WHERE id = $1`, waiting)
	c := w.claimOne()
	if string(c.RunID) != ahead {
		t.Fatalf("claimed %s, want %s", c.RunID, ahead)
	}
	want("live", false)
	w.start(c)
	w.finish(c)
	want("ended", true)
}

// SPEC S6.5: what a budget reserves is for one attempt: when the run is live as another one, the repair frees it.
func TestAReserveOfAnEarlierAttemptIsFreed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	budget := w.budget(agent, "10")
	w.costly(agent, "1")
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	before := w.ledger(budget)
	must(w, first(w.Repair(t.Context())), nil)
	w.wantLedger("while its attempt is live", budget, before)
	w.sql(`UPDATE budget_holds SET attempt = attempt - 1 WHERE run_id = $1 AND status = 'HELD'`, c.RunID)
	must(w, first(w.Repair(t.Context())), nil)
	if n := one[int](w, `SELECT count(*) FROM budget_holds WHERE status = 'HELD'`); n != 0 {
		t.Errorf("%d reserves of an attempt before are held", n)
	}
	if reserved := one[string](w, `SELECT reserved_usd::numeric(10,2)::text FROM budget_policies`); reserved != "0.00" {
		t.Errorf("the budget reserves %s", reserved)
	}
}

// SPEC S10.1: who waits for a lane goes on with what its holder left, and with a clock that is read after that; and a claim goes past
// a lane that somebody holds. Without the lock, both would decide on what was there before.
func TestALaneIsOneTransactionsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.wake(agent)
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	letGo := sync.OnceFunc(func() { close(free) })
	defer letGo() // also of a test that fails: else its database would wait for the transaction
	var left time.Time
	go func() {
		done <- w.inTx(w.background(), func(x *tx) error {
			if _, err := x.lockLane(w.background(), agent); err != nil {
				return err
			}
			close(held)
			<-free
			return pgtx.QueryRow(w.background(), x, []any{&left}, `UPDATE agent_lanes SET max_sessions = 7 WHERE agent_id = $1 RETURNING clock_timestamp()`, agent)
		})
	}()
	<-held
	due := func() (n int) {
		w.Helper()
		w.ok(w.inTx(t.Context(), func(x *tx) error {
			lanes, err := x.lockDueLanes(t.Context(), []xid.ID{agent}, false)
			n = len(lanes)
			return err
		}))
		return n
	}
	if n := due(); n != 0 {
		t.Errorf("a claim takes %d lanes that somebody holds", n)
	}
	type got struct {
		lane
		at  time.Time
		err error
	}
	waited := make(chan got, 1)
	go func() {
		var g got
		g.err = w.inTx(w.background(), func(x *tx) (err error) {
			g.lane, err = x.lockLane(w.background(), agent)
			g.at = x.Now
			return err
		})
		waited <- g
	}()
	w.until("the second waits for the first", func() bool { return w.waitForLocks() == 1 })
	letGo()
	w.ok(<-done)
	g := <-waited
	if w.ok(g.err); g.maxSessions != 7 || !g.at.After(left) {
		t.Errorf("the second goes on with %d sessions at %v, want the 7 that the first left at %v", g.maxSessions, g.at, left)
	}
	if n := due(); n != 1 {
		t.Errorf("a claim takes %d lanes once it is free, want 1", n)
	}
}
