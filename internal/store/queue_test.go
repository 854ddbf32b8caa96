package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

func TestAWakeGoesThroughTheWholeQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	request := w.wake(agent)
	run := w.runOf(request)
	w.wantRun(run, domain.RunStatusQueued, "")
	w.sound()

	claimed := w.claimOne()
	w.wantRun(run, domain.RunStatusClaimed, "")
	w.wantRequest(request, domain.WakeupStatusClaimed)
	w.sound()

	launch := w.start(claimed)
	if launch.Executor.Echo == nil || launch.ExecutorHolder != agent || launch.RunToken.Reveal() == "" {
		t.Errorf("launch lacks its executor, its holder or its token: %+v", launch)
	}
	if !strings.Contains(launch.Prompt, "ann") || !strings.Contains(launch.Prompt, string(run)) {
		t.Errorf("the prompt names neither who woke the agent nor the run:\n%s", launch.Prompt)
	}
	stored := one[string](w, `SELECT assembled_prompt FROM run_contents WHERE run_id = $1`, run)
	if stored != launch.Prompt {
		t.Error("the stored prompt is not the one that was sent")
	}
	if token := must(w, first(w.RunTokenByDigest(t.Context(), launch.RunToken.Digest().String())), nil); token == nil || token.RunID != run || token.Attempt != 1 {
		t.Errorf("the run token stands for %+v", token)
	}
	w.ok(w.Finish(t.Context(), claimed.Attempt, Success{Summary: "all good", Result: map[string]any{"summary": "all good"}, Usage: &Usage{InputTokens: 5, CostUSD: "0.012"}}))
	w.wantRun(run, domain.RunStatusFinished, "")
	w.wantRequest(request, domain.WakeupStatusFinished)
	w.sound()
	if token := must(w, first(w.RunTokenByDigest(t.Context(), launch.RunToken.Digest().String())), nil); token == nil || !token.Ended {
		t.Error("the run token outlived its attempt, or is not known any more")
	}
	events := must(w, first(w.RunEventsAfter(t.Context(), run, 0, 100)), nil)
	var kinds []string
	for i, e := range events {
		kinds = append(kinds, string(e.Kind))
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has number %d", i, e.Seq)
		}
	}
	if got, want := strings.Join(kinds, " "), "CREATED CLAIMED LAUNCHED SESSION_RECORDED FINISHED"; got != want {
		t.Errorf("events are %s, want %s", got, want)
	}
	if !w.events.has(event.Run, run) || !w.events.has(event.Queue, agent) {
		t.Error("nobody was told of the run or the queue")
	}
}

// first turns (v, err) into v and fails loudly through must when err is set; it keeps table code on one line.
func first[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestABurstInsideTheWindowBecomesOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.window(time.Minute)
	agent := w.agent("echo")
	var requests []xid.ID
	for range 5 {
		requests = append(requests, w.request(agent, scoped("task:t1")))
	}
	run := w.runOf(requests[0])
	w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonWindow)
	if n := one[int](w, `SELECT coalesced_count FROM runs WHERE id = $1`, run); n != 5 {
		t.Errorf("C63 coalesced_count is %d, want 5", n)
	}
	if got := w.claim(10); len(got) != 0 {
		t.Errorf("C63 claimed %d runs inside the window", len(got))
	}
	w.sql(`UPDATE runs SET parked_until = clock_timestamp() - interval '1 second'`)
	w.start(w.claimOne())
	for i, id := range requests {
		if one[*time.Time](w, `SELECT delivered_at FROM wakeup_requests WHERE id = $1`, id) == nil {
			t.Errorf("request %d has no receipt", i)
		}
	}
	w.sound()
}

func TestAPersonDoesNotWaitForTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.window(time.Minute)
	agent := w.agent("echo")
	waiting := w.request(agent, scoped(domain.ScopeTaskless))
	w.wantRun(w.runOf(waiting), domain.RunStatusQueued, domain.ParkedReasonWindow)
	person := w.wake(agent)
	if w.runOf(person) != w.runOf(waiting) {
		t.Error("C64 the person's wake was not merged")
	}
	w.wantRun(w.runOf(waiting), domain.RunStatusQueued, "")
	w.wantRequest(person, domain.WakeupStatusCoalesced)
	w.claimOne()
	w.sound()
}

func TestAMessageNeverJoinsAPromptAlreadySent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	one_ := w.request(agent, scoped("task:t1"))
	claimed := w.unstartedOne()
	merged := w.request(agent, scoped("task:t1")) // C57: not started yet
	if w.runOf(merged) != w.runOf(one_) {
		t.Error("C57 a wake before the start was not merged")
	}
	w.start(claimed)
	var late []xid.ID
	for range 5 {
		late = append(late, w.request(agent, scoped("task:t1")))
	}
	next := w.runOf(late[0])
	if next == claimed.RunID {
		t.Fatal("C57 a wake after the start was merged into the prompt already sent")
	}
	w.wantRun(next, domain.RunStatusQueued, domain.ParkedReasonScopeBusy)
	for _, id := range late[1:] {
		if w.runOf(id) != next {
			t.Error("C57 five comments during a run made more than one follow-up")
		}
	}
	w.sound()
	w.finish(claimed)
	w.wantRun(next, domain.RunStatusQueued, "")
	w.sound()
	w.start(w.claimOne())
}

func TestAHeartbeatDuringAHeartbeatIsTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo", func(a *CreateAgent) { a.SkipIdleWakeups = pgtx.Ptr(false) })
	routine := w.routine(agent, nil)
	w.makeDue(routine)
	w.tick()
	claimed := w.claimOne()
	w.start(claimed)
	w.makeDue(routine)
	w.tick()
	if n := one[int](w, `SELECT count(*) FROM runs`); n != 1 {
		t.Errorf("there are %d runs, want 1", n)
	}
	w.finish(claimed)
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE status IN ('QUEUED', 'CLAIMED')`); n != 0 {
		t.Errorf("C306 %d requests were sent again by receipts", n)
	}
	if s := one[string](w, `SELECT string_agg(status::text, ' ' ORDER BY started_at) FROM routine_runs`); s != "DONE COALESCED" {
		t.Errorf("C51 the fires are %s, want DONE COALESCED", s)
	}
	w.sound()
}

func TestClaimOrderCapacityAndCooldown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a1, a2 := w.agent("a1"), w.agent("a2")
	second := w.wake(a2)
	first := w.wake(a1)
	w.sql(`UPDATE runs SET requested_at = requested_at - interval '1 hour' WHERE id = $1`, w.runOf(first))
	w.sql(`UPDATE agent_lanes l SET head_at = (SELECT requested_at FROM runs WHERE id = l.head_id)`)
	got := w.claim(1)
	if len(got) != 1 || got[0].RunID != w.runOf(first) {
		t.Errorf("C66 claimed %v, want the older run first", got)
	}
	more := w.request(a1, scoped("task:t"))
	got = w.claim(10)
	if len(got) != 1 || got[0].RunID != w.runOf(second) {
		t.Errorf("C67 claimed %v, want only the free agent's run", got)
	}
	w.sql(`UPDATE agent_lanes SET cooldown_ms = 600000`)
	c := Claimed{Attempt: Attempt{RunID: w.runOf(first), Number: 1, Owner: w.owner.ID}}
	w.start(c)
	w.finish(c)
	if got := w.claim(10); len(got) != 0 {
		t.Error("C71 claimed inside the cooldown")
	}
	w.sql(`UPDATE agent_lanes SET eligible_at = clock_timestamp()`)
	if got := w.claim(10); len(got) != 1 || got[0].RunID != w.runOf(more) {
		t.Errorf("C71 claimed %v after the cooldown", got)
	}
	w.sound()
}

func TestTwoSessionsTakeTwoScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("busy", func(a *CreateAgent) { a.MaxConcurrentSessions = 2 })
	for _, scope := range []string{"task:1", "task:2", "task:3"} {
		w.request(agent, scoped(scope))
	}
	if got := append(w.claim(10), w.claim(10)...); len(got) != 2 {
		t.Errorf("C72 claimed %d runs with two sessions, want 2", len(got))
	}
	w.sound()
	w.sql(`UPDATE agent_lanes SET max_sessions = 1`)
	if got := w.claim(10); len(got) != 0 {
		t.Error("C311 claimed above the lowered capacity")
	}
}

func TestAWorkspaceCeilingHoldsAndDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql(`UPDATE workspace_lanes SET max_running = 1`)
	for i := range 3 {
		w.wake(w.agent(fmt.Sprint("full", i)))
	}
	other := must(w, first(w.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Other"})), nil)
	elsewhere := w.agent("elsewhere", func(a *CreateAgent) { a.WorkspaceID = other.ID })
	made, err := w.Wake(t.Context(), Wake{WorkspaceID: other.ID, AgentID: elsewhere, UserID: "ann"})
	w.ok(err)
	w.route(elsewhere)
	got := append(w.claim(10), w.claim(10)...)
	if len(got) != 2 {
		t.Errorf("C309 claimed %d runs, want one of each workspace", len(got))
	}
	w.wantRequest(made.ID, domain.WakeupStatusClaimed)
	w.sound()
}

func TestManyClaimersClaimEachRunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const agents, claimers = 3, 10
	for i := range agents {
		agent := w.agent(fmt.Sprint("agent", i))
		w.request(agent, scoped("task:1"))
		w.request(agent, scoped("task:2"))
	}
	var mu sync.Mutex
	seen := map[xid.ID]int{}
	var wg sync.WaitGroup
	for range claimers {
		wg.Go(func() {
			owner := w.owner
			owner.ID = xid.New("prc")
			got, err := w.Claim(w.background(), owner, 16, lease)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, c := range got {
				seen[c.RunID]++
			}
		})
	}
	wg.Wait()
	if len(seen) != agents {
		t.Errorf("C69 claimed %d runs, want one for each of %d agents", len(seen), agents)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("C69 run %s was claimed %d times", id, n)
		}
	}
	w.sound()
}

// newPatientWorld is a world whose transactions wait a minute for a lock, whatever they ask for: a test can hold one for as long as a
// busy machine takes. Its sessions find a function before the real one, as they find a simulated clock.
func newPatientWorld(t *testing.T) *world {
	t.Helper()
	made, url := pgtest.NewURL(t)
	for _, query := range []string{
		`CREATE SCHEMA patient`,
		`CREATE FUNCTION patient.set_config(name text, value text, local boolean) RETURNS text LANGUAGE sql VOLATILE AS
'SELECT pg_catalog.set_config($1, CASE $1 WHEN ''lock_timeout'' THEN ''1min'' ELSE $2 END, $3)'`,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = patient, pg_catalog, public', current_database()); END $$`,
	} {
		if _, err := made.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // the world's cleanups, which come first, have no more to ask it
	return newWorldOn(t, db)
}

func TestAClaimWaitsForALaneThatIsOnlyLocked(t *testing.T) {
	t.Parallel()
	w := newPatientWorld(t)
	agent := w.agent("worker")
	w.wake(agent)
	holding, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- w.inTx(w.background(), func(t *tx) error {
			_, err := t.lockLane(w.background(), agent)
			close(holding)
			<-release
			return err
		})
	}()
	<-holding
	claimed := make(chan int, 1)
	go func() {
		got, err := w.Claim(w.background(), w.owner, 10, lease)
		if err != nil {
			t.Error(err)
		}
		claimed <- len(got)
	}()
	w.until("the claim waits, or has ended", func() bool { return w.waitForLocks() > 0 || len(claimed) > 0 })
	close(release)
	w.ok(<-done)
	if n := <-claimed; n != 1 {
		t.Errorf("claimed %d runs, want the one whose lane was locked for a moment", n)
	}
}

func TestAnIdleOrInactiveAgentIsNotLaunched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare func(w *world, agent xid.ID)
		outcome string
		request domain.WakeupStatus
	}{
		{"C85 a worker's cron heartbeat without tasks", func(w *world, agent xid.ID) { w.makeDue(w.routine(agent, nil)); w.tick() }, "idle_skipped", domain.WakeupStatusFinished},
		{"C219 a paused agent's wake", func(w *world, agent xid.ID) {
			w.sql(`UPDATE agent_lanes SET status = 'PAUSED', pause_reason = 'USER'`)
			w.wake(agent)
		}, "agent_inactive", domain.WakeupStatusFinished},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.prepare(w, w.agent("worker"))
			if got := w.claim(10); len(got) != 0 {
				t.Fatal("it was claimed")
			}
			if got := one[string](w, `SELECT outcome FROM runs`); got != c.outcome {
				t.Errorf("outcome is %s, want %s", got, c.outcome)
			}
			if got := one[domain.WakeupStatus](w, `SELECT status FROM wakeup_requests`); got != c.request {
				t.Errorf("request is %s, want %s", got, c.request)
			}
			if n := one[int](w, `SELECT count(*) FROM activities WHERE code IN ('WAKEUP_IDLE_SKIPPED', 'WAKEUP_AGENT_INACTIVE')`); n != 1 {
				t.Errorf("there are %d activity entries, want 1", n)
			}
			if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE completed_at IS NULL OR status <> 'SKIPPED'`); n != 0 {
				t.Error("the fire did not end SKIPPED")
			}
			w.sound()
		})
	}
}

func TestAFailureIsRetriedAndTheFifthEscalates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	coordinator := w.agent("boss", func(a *CreateAgent) { a.Role = domain.AgentRoleCoordinator })
	agent := w.agent("worker")
	request := w.wake(agent)
	run := w.runOf(request)
	delays := []time.Duration{2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour}
	for i, delay := range delays {
		c := w.claimOne()
		if c.Number != i+1 {
			t.Errorf("C80 attempt %d has number %d", i+1, c.Number)
		}
		w.start(c)
		w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "exit status 1"}))
		w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonBackoff)
		w.wantRequest(request, domain.WakeupStatusQueued)
		r := w.run(run)
		if wait := time.Until(*r.parkedUntil); wait < delay-time.Minute || wait > delay+time.Second {
			t.Errorf("C80 retry %d waits %s, want %s", i+1, wait, delay)
		}
		if r.retryCount != i+1 || r.startedAt != nil {
			t.Errorf("C80 retry_count %d, started_at %v", r.retryCount, r.startedAt)
		}
		w.sound()
		w.sql(`UPDATE runs SET parked_until = clock_timestamp() - interval '1 second' WHERE id = $1`, run)
		w.sql(`UPDATE agent_lanes SET eligible_at = clock_timestamp()`)
	}
	c := w.claimOne()
	w.start(c)
	w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "exit status 1"}))
	w.wantRun(run, domain.RunStatusFailed, "")
	w.wantRequest(request, domain.WakeupStatusFailed)
	if n := one[int](w, `SELECT count(*) FROM inbox_items WHERE kind = 'AGENT_ERROR'`); n != 1 {
		t.Errorf("C81 %d inbox items, want 1", n)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE source = 'AGENT_ERROR' AND agent_id = $1`, coordinator); n != 1 {
		t.Errorf("C81 the coordinator was woken %d times, want once", n)
	}
	w.sound()
}

func TestTheCoordinatorIsNotWokenAboutItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := w.agent("boss", func(a *CreateAgent) { a.Role = domain.AgentRoleCoordinator })
	w.wake(boss)
	c := w.claimOne()
	w.start(c)
	w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeLaunch, Message: "no such file", Permanent: true}))
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE source = 'AGENT_ERROR'`); n != 0 {
		t.Error("C81 the coordinator was woken about itself")
	}
	if n := one[int](w, `SELECT count(*) FROM inbox_items`); n != 1 {
		t.Errorf("C81 %d inbox items, want 1", n)
	}
}

func TestARateLimitWaitsForItsReset(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.runOf(w.wake(w.agent("worker")))
	c := w.claimOne()
	w.start(c)
	const words = "429 Too Many Requests. Retry-After: 3600"
	w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeOther, Message: words, Words: words}))
	w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonRateLimit)
	if wait := time.Until(*w.run(run).parkedUntil); wait < 3570*time.Second || wait > 3631*time.Second {
		t.Errorf("C74 waits %s, want 3630 s", wait)
	}
	if code := one[string](w, `SELECT error_code FROM runs WHERE id = $1`, run); code != "RATE_LIMITED" {
		t.Errorf("error code is %s", code)
	}
}

// SPEC S8.2: what an agent printed is no evidence, and a limit is no failure: it has a count of its own, which failures end.
func TestARateLimitIsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	request := w.wake(agent)
	run := w.runOf(request)
	fail := func(f Failure) {
		t.Helper()
		w.sql(`UPDATE runs SET parked_until = clock_timestamp() - interval '1 second' WHERE id = $1 AND status = 'QUEUED' AND parked_until IS NOT NULL`, run)
		w.sql(`UPDATE agent_lanes SET eligible_at = clock_timestamp() - interval '1 second' WHERE agent_id = $1`, agent)
		c := w.claimOne()
		w.start(c)
		w.ok(w.Fail(t.Context(), c.Attempt, f))
	}
	counts := func() string {
		return one[string](w, `SELECT r.retry_count || ' ' || r.limits || ' ' || (r.limited_since IS NOT NULL) || ' ' || q.retry_count FROM runs r JOIN wakeup_requests q ON q.id = $2 WHERE r.id = $1`, run, request)
	}
	printed := Failure{Code: domain.RunErrorCodeCrash, Message: "exit code 1; its last output:\n429 Too Many Requests. Retry-After: 3600"}
	limited := Failure{Code: domain.RunErrorCodeOther, Message: "503", RetryAfter: time.Hour}
	fail(printed)
	w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonBackoff)
	if got := counts(); got != "1 0 false 1" {
		t.Errorf("after a failure that only printed of a limit: %s", got)
	}
	for range 6 {
		fail(limited)
	}
	w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonRateLimit)
	if got := counts(); got != "1 6 true 1" {
		t.Errorf("after six limits: %s", got)
	}
	fail(printed)
	if got := counts(); got != "2 0 false 2" {
		t.Errorf("after another failure: %s", got)
	}
	w.sql(`UPDATE runs SET limits = 39, limited_since = clock_timestamp() WHERE id = $1`, run)
	fail(limited)
	w.wantRun(run, domain.RunStatusFailed, "")
	w.sound()
}

func TestARunWithoutAnExecutorFailsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	request := w.wake(w.agent("bare", func(a *CreateAgent) { a.Executor = nil }))
	run := w.runOf(request)
	launch, err := w.Start(t.Context(), w.unstartedOne().Attempt)
	if launch != nil || err != nil {
		t.Fatalf("got %v, %v", launch, err)
	}
	w.wantRun(run, domain.RunStatusFailed, "")
	if got := one[string](w, `SELECT end_reason || ': ' || error_message FROM runs`); !strings.HasPrefix(got, "NO_EXECUTOR: no executor: set one") {
		t.Errorf("ended with %s", got)
	}
	w.wantRequest(request, domain.WakeupStatusFailed) // and is not sent again, to fail again
	w.sound()
}

func TestCancel(t *testing.T) {
	t.Parallel()
	t.Run("C84 a queued run ends at once, with all its requests", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker")
		first, merged := w.wake(agent), w.wake(agent)
		w.ok(w.CancelRun(t.Context(), w.workspace, w.runOf(first), "no longer needed"))
		w.wantRun(w.runOf(first), domain.RunStatusCancelled, "")
		w.wantRequest(first, domain.WakeupStatusCancelled)
		w.wantRequest(merged, domain.WakeupStatusCancelled)
		if note := one[string](w, `SELECT data->>'note' FROM activities WHERE code = 'RUN_CANCELLED'`); note != "no longer needed" {
			t.Errorf("the feed says %q", note)
		}
		w.sound()
	})
	t.Run("C84 of a live run it is a flag that the owner obeys", func(t *testing.T) {
		w := newWorld(t)
		request := w.wake(w.agent("worker"))
		c := w.claimOne()
		w.start(c)
		w.ok(w.CancelRun(t.Context(), w.workspace, c.RunID, "wrong branch"))
		w.wantRun(c.RunID, domain.RunStatusClaimed, "")
		if asked := must(w, first(w.CancelRequested(t.Context(), c.RunID)), nil); !asked {
			t.Error("the flag is not raised")
		}
		states := must(w, first(w.Heartbeat(t.Context(), []Attempt{c.Attempt}, lease)), nil)
		if len(states) != 1 || !states[0].CancelRequested || states[0].Lost {
			t.Errorf("the heartbeat says %+v", states)
		}
		w.ok(w.Cancelled(t.Context(), c.Attempt, Unfinished{}))
		w.wantRun(c.RunID, domain.RunStatusCancelled, "")
		w.wantRequest(request, domain.WakeupStatusCancelled)
		if note := one[string](w, `SELECT data->>'note' FROM activities WHERE code = 'RUN_CANCELLED'`); note != "wrong branch" {
			t.Errorf("the feed says %q", note)
		}
		w.sound()
	})
	t.Run("C305 a cancelled run stays cancelled through retry, rescue and hand-back", func(t *testing.T) {
		for name, end := range map[string]func(*world, Attempt) error{
			"retry": func(w *world, a Attempt) error {
				return w.Fail(w.Context(), a, Failure{Code: domain.RunErrorCodeCrash, Message: "killed"})
			},
			"rescue":    func(w *world, a Attempt) error { _, err := w.Abandon(w.Context(), a, true); return err },
			"hand-back": func(w *world, a Attempt) error { return w.HandBack(w.Context(), a, Unfinished{}) },
			"start":     func(w *world, a Attempt) error { _, err := w.Start(w.Context(), a); return err },
		} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				w.wake(w.agent("worker"))
				c := w.unstartedOne()
				if name != "start" {
					w.start(c)
				}
				w.ok(w.CancelRun(t.Context(), w.workspace, c.RunID, ""))
				w.ok(end(w, c.Attempt))
				w.wantRun(c.RunID, domain.RunStatusCancelled, "")
				w.sound()
			})
		}
	})
	t.Run("C84 an ended run is refused", func(t *testing.T) {
		w := newWorld(t)
		w.wake(w.agent("worker"))
		c := w.claimOne()
		w.start(c)
		w.finish(c)
		wantUserError(t, w.CancelRun(t.Context(), w.workspace, c.RunID, ""), domain.UserErrorCodeAlreadyTerminal)
	})
	t.Run("a run of another workspace does not exist", func(t *testing.T) {
		w := newWorld(t)
		run := w.runOf(w.wake(w.agent("worker")))
		wantUserError(t, w.CancelRun(t.Context(), xid.New("wsp"), run, ""), domain.UserErrorCodeNotFound)
	})
}

func wantUserError(t *testing.T, err error, code domain.UserErrorCode) {
	t.Helper()
	var ue *domain.UserError
	if !errors.As(err, &ue) || ue.Problems[0].Code != code {
		t.Errorf("got %v, want a user error %s", err, code)
	}
}

func TestALateReportOfAnOlderAttemptChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wake(w.agent("worker"))
	old := w.claimOne()
	w.start(old)
	w.ok(w.AppendLog(t.Context(), old.Attempt, []LogLine{{Seq: 1, Stream: domain.LogStreamStdout, Text: "one", At: time.Now()}}))
	abandoned, err := w.Abandon(t.Context(), old.Attempt, false)
	if w.ok(err); abandoned {
		t.Fatal("C83 a lease that has not run out was abandoned")
	}
	w.sql(`UPDATE attempt_leases SET lease_until = clock_timestamp() - interval '1 second'`)
	if abandoned = must(w, first(w.Abandon(t.Context(), old.Attempt, false)), nil); !abandoned {
		t.Fatal("C83 a lease that ran out was not abandoned")
	}
	w.sound()
	w.waited(old.RunID)
	fresh := w.claimOne()
	if fresh.RunID != old.RunID || fresh.Number != 2 {
		t.Fatalf("C83 the next attempt is %+v", fresh)
	}
	for name, report := range map[string]func() error{
		"start":   func() error { _, err := w.Start(t.Context(), old.Attempt); return err },
		"finish":  func() error { return w.Finish(t.Context(), old.Attempt, Success{}) },
		"fail":    func() error { return w.Fail(t.Context(), old.Attempt, Failure{Code: domain.RunErrorCodeOther}) },
		"session": func() error { return w.RecordSession(t.Context(), old.Attempt, "late") },
		"log": func() error {
			return w.AppendLog(t.Context(), old.Attempt, []LogLine{{Seq: 2, Stream: "STDOUT", At: time.Now()}})
		},
		"process": func() error { return w.RecordProcess(t.Context(), old.Attempt, ProcessGroup{PGID: 7}) },
	} {
		if err := report(); !errors.Is(err, ErrFenced) {
			t.Errorf("a late %s gives %v, want ErrFenced", name, err)
		}
	}
	states := must(w, first(w.Heartbeat(t.Context(), []Attempt{old.Attempt, fresh.Attempt}, lease)), nil)
	for _, st := range states {
		if st.Lost != (st.Number == 1) {
			t.Errorf("heartbeat of attempt %d: lost %v", st.Number, st.Lost)
		}
	}
	w.start(fresh)
	w.ok(w.AppendLog(t.Context(), fresh.Attempt, []LogLine{{Seq: 1, Stream: domain.LogStreamStdout, Text: "two", At: time.Now()}}))
	lines := must(w, first(w.LogAfter(t.Context(), old.RunID, reads.LogPosition{}, 10)), nil)
	if len(lines) != 2 || lines[0].Attempt != 1 || lines[1].Attempt != 2 {
		t.Errorf("the log of both attempts is %+v", lines)
	}
	w.finish(fresh)
	w.sound()
}

func TestLeasesThatMayNeedRescue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 3 {
		w.wake(w.agent(fmt.Sprint("agent", i)))
	}
	if got := append(w.claim(10), w.claim(10)...); len(got) != 3 {
		t.Fatalf("claimed %d runs", len(got))
	}
	look := func(owner xid.ID, host string) int {
		t.Helper()
		return len(must(w, first(w.Leases(t.Context(), owner, host)), nil))
	}
	if n := look(w.owner.ID, "here"); n != 0 {
		t.Errorf("%d of the owner's own live leases are listed", n)
	}
	if n := look("prc_other", "here"); n != 3 {
		t.Errorf("%d leases of another owner on this host are listed, want 3", n)
	}
	if n := look("prc_other", "elsewhere"); n != 0 {
		t.Errorf("%d live leases of another host are listed", n)
	}
	w.sql(`UPDATE attempt_leases SET lease_until = clock_timestamp() - interval '1 second' WHERE run_id = (SELECT min(run_id) FROM attempt_leases)`)
	for name, owner := range map[string]xid.ID{"another owner": "prc_other", "its own owner": w.owner.ID} {
		if n := look(owner, "elsewhere"); n != 1 {
			t.Errorf("a lease that ran out is listed %d times to %s, want once", n, name)
		}
	}
}

// S8.4: attempts that had not launched never count; between losses the run waits longer and longer; the fifth fails it.
func TestTheFifthLostLeaseFailsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	request := w.wake(w.agent("worker"))
	run := w.runOf(request)
	for range 7 {
		c := w.unstartedOne()
		must(w, first(w.Abandon(t.Context(), c.Attempt, true)), nil)
		w.wantRun(run, domain.RunStatusQueued, "")
	}
	for i, wait := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 0} {
		c := w.claimOne()
		w.start(c)
		must(w, first(w.Abandon(t.Context(), c.Attempt, true)), nil)
		w.sound()
		if i == 4 {
			break
		}
		w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonBackoff)
		why := must(w, first(w.Waiting(t.Context(), []xid.ID{run}, []xid.ID{request})), nil)
		lost := one[time.Time](w, `SELECT max(finished_at) FROM run_attempts`)
		if got := why[request]; got.Hold != domain.QueueHoldBackoff || !got.Until.Equal(lost.Add(wait)) {
			t.Errorf("after loss %d it waits %s until %s, want until %s", i+1, got.Hold, got.Until, lost.Add(wait))
		}
		if len(w.claim(1)) != 0 {
			t.Error("it was claimed before its wait was over")
		}
		w.sql(`UPDATE runs SET parked_until = now() - interval '1 second' WHERE id = $1`, run)
	}
	w.wantRun(run, domain.RunStatusFailed, "")
	if n := one[int](w, `SELECT count(*) FROM run_attempts WHERE status = 'ABANDONED'`); n != 7+domain.MaxLosses {
		t.Errorf("C83 %d attempts are ABANDONED", n)
	}
}

func TestHandedBackRunsAreNeitherFailedNorAbandoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.runOf(w.wake(w.agent("worker")))
	for i := range 5 {
		c := w.claimOne()
		if c.Number != i+1 {
			t.Errorf("attempt has number %d, want %d", c.Number, i+1)
		}
		w.start(c)
		w.ok(w.HandBack(t.Context(), c.Attempt, Unfinished{}))
		w.wantRun(run, domain.RunStatusQueued, "")
		w.sound()
	}
	if r := w.run(run); r.retryCount != 0 || r.abandonments != 0 {
		t.Errorf("C317 retry_count %d, abandonments %d", r.retryCount, r.abandonments)
	}
}

func TestRoutingTheSameRequestTwiceIsANoOp(t *testing.T) { // C58, also at once
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	for range 50 {
		must(w, first(w.Wake(t.Context(), Wake{WorkspaceID: w.workspace, AgentID: agent, UserID: "ann"})), nil)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := w.Route(w.background(), agent); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := one[int](w, `SELECT count(*) FROM runs`); n != 1 {
		t.Errorf("C213 50 wakes made %d runs, want 1", n)
	}
	if n := one[int](w, `SELECT coalesced_count FROM runs`); n != 50 {
		t.Errorf("C213 coalesced_count is %d, want 50", n)
	}
	w.sound()
}

func TestIdempotencyKeysOfMutations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	wake := func(key, digest string) (Made, error) {
		return w.Wake(t.Context(), Wake{WorkspaceID: w.workspace, AgentID: agent, UserID: "ann", Idempotency: Idempotency{key, digest}})
	}
	made := must(w, first(wake("k", "d")), nil)
	again := must(w, first(wake("k", "d")), nil)
	if !again.Replayed || again.ID != made.ID {
		t.Errorf("C36 the same call gave %+v, want %s replayed", again, made.ID)
	}
	_, err := wake("k", "other")
	wantUserError(t, err, domain.UserErrorCodeIdempotencyKeyReused)
	in := CreateAgent{WorkspaceID: w.workspace, Name: "keyed", Role: domain.AgentRoleWorker, MaxConcurrentSessions: 1, Idempotency: Idempotency{"k", "d"}}
	if made, err := w.CreateAgent(t.Context(), in); err != nil || made.Replayed {
		t.Errorf("C36 another mutation with the key gave %+v, %v", made, err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[xid.ID]bool{}
	for range 8 {
		wg.Go(func() {
			made, err := w.Wake(w.background(), Wake{WorkspaceID: w.workspace, AgentID: agent, UserID: "ann", Idempotency: Idempotency{"at once", "d"}})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[made.ID] = true
		})
	}
	wg.Wait()
	if len(ids) != 1 {
		t.Errorf("C36 eight calls at once made %d requests", len(ids))
	}
	_, err = w.Wake(t.Context(), Wake{WorkspaceID: w.workspace, AgentID: xid.New("agt"), UserID: "ann", Idempotency: Idempotency{"lost", "d"}})
	wantUserError(t, err, domain.UserErrorCodeNotFound)
	if n := one[int](w, `SELECT count(*) FROM mutation_keys WHERE key = 'lost'`); n != 0 {
		t.Error("a refused mutation kept its key")
	}
}

func TestAFullBacklogRefusesPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class)
SELECT 'run_' || lpad(n::text, 26, '0'), $1, $2, 'cau', 'task:' || n, 'USER', 'EVENT' FROM generate_series(1, 1001) n`, w.workspace, agent)
	_, err := w.Wake(t.Context(), Wake{WorkspaceID: w.workspace, AgentID: agent, UserID: "ann"})
	wantUserError(t, err, domain.UserErrorCodeBacklogFull)
}

func TestRepairPutsRightWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.wake(agent)
	if done := must(w, first(w.Repair(t.Context())), nil); done != (Repairs{}) {
		t.Errorf("a sound queue was repaired: %+v", done)
	}
	w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL, running = 3`)
	w.sql(`UPDATE workspace_lanes SET running = 9`)
	done := must(w, first(w.Repair(t.Context())), nil)
	if done.Heads != 1 || done.Running != 1 || done.Workspaces != 1 {
		t.Errorf("repaired %+v", done)
	}
	w.sound()
	w.claimOne()
}

func TestAClaimThatOnlySettlesLooksFurther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	idle := w.agent("idle", func(a *CreateAgent) { a.SkipIdleWakeups = pgtx.Ptr(true) })
	w.request(idle, func(r *newRequest) { r.class = domain.WakeClassPeriodic })
	want := w.runOf(w.wake(w.agent("busy")))
	if claimed := w.claim(1); len(claimed) != 1 || claimed[0].RunID != want {
		t.Errorf("claimed %v, want %s behind the heartbeat that was settled", claimed, want)
	}
	w.sound()
}
