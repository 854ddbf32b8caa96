package store

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/feedtest"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// recorder keeps what was published.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
}

func (r *recorder) Publish(events ...event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, events...)
}

func (r *recorder) has(kind event.Kind, id xid.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == kind && e.ID == id {
			return true
		}
	}
	return false
}

// test is what a test or a benchmark offers, one level down, so that a store's methods of the same name win.
type test struct{ testing.TB }

// world is a store on a database of its own, with one workspace whose window is closed unless a test opens it.
type world struct {
	test
	*Store
	db        *sql.DB
	events    *recorder
	workspace xid.ID
	owner     Owner
}

// Fail is the store's, and not the test's.
func (w *world) Fail(ctx context.Context, a Attempt, f Failure) error { return w.Store.Fail(ctx, a, f) }

const lease = 20 * time.Second

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, pgtest.New(t))
}

func newWorldOn(t testing.TB, db *sql.DB) *world {
	t.Helper()
	w := &world{test: test{t}, db: db, events: &recorder{}, owner: Owner{ID: xid.New("prc"), Host: "here", BootID: "boot", PID: 1, Started: 1}}
	w.Store = New(db, Options{Events: w.events, Counters: metrics.New(), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Jitter: func() float64 { return 0 }})
	feedtest.Watch(t, db)
	if err := w.Activate(t.Context()); err != nil {
		t.Fatal(err)
	}
	made, err := w.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Test", OfficeWorkflow: true})
	if err != nil {
		t.Fatal(err)
	}
	w.workspace = made.ID
	w.window(0)
	return w
}

func (w *world) window(d time.Duration) {
	w.sql(`UPDATE workspaces SET coalescing_window_ms = $1`, d.Milliseconds())
}

func (w *world) sql(query string, args ...any) {
	w.Helper()
	if _, err := w.db.ExecContext(w.Context(), query, args...); err != nil {
		w.Fatalf("%s: %v", query, err)
	}
}

// one reads a single value.
func one[T any](w *world, query string, args ...any) T {
	w.Helper()
	v, err := pgtx.QueryOne[T](w.Context(), w.db, query, args...)
	if err != nil {
		w.Fatalf("%s: %v", query, err)
	}
	return v
}

// must fails the test on an error.
func must[T any](w *world, v T, err error) T {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return v
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// agent makes an echo agent without a cooldown; change adjusts it.
func (w *world) agent(name string, change ...func(*CreateAgent)) xid.ID {
	w.Helper()
	in := CreateAgent{WorkspaceID: w.workspace, Name: name, Role: domain.AgentRoleWorker, MaxConcurrentSessions: 1,
		Executor: &domain.ExecutorSpec{Echo: &domain.EchoSpec{}}}
	for _, f := range change {
		f(&in)
	}
	made, err := w.CreateAgent(w.Context(), in)
	return must(w, made, err).ID
}

// wake inserts and routes a USER wake, and returns the request.
func (w *world) wake(agentID xid.ID) xid.ID {
	w.Helper()
	made, err := w.Wake(w.Context(), Wake{WorkspaceID: w.workspace, AgentID: agentID, UserID: "ann"})
	w.ok(err)
	w.route(agentID)
	return made.ID
}

func (w *world) route(agentID xid.ID) {
	w.Helper()
	_, err := w.Route(w.Context(), agentID)
	w.ok(err)
}

// request inserts and routes a request of any kind, and returns it.
func (w *world) request(agentID xid.ID, change func(*newRequest)) xid.ID {
	w.Helper()
	r := newRequest{workspaceID: w.workspace, agentID: agentID, causationID: xid.New("cau"), scope: domain.ScopeTaskless,
		source: domain.WakeupSourceSelf, class: domain.WakeClassEvent, reason: "test", payload: &domain.SelfPayload{Reason: "test"}}
	change(&r)
	id := w.insert(r)
	w.route(agentID)
	return id
}

// unrouted inserts a request, and leaves it to the router.
func (w *world) unrouted(agentID xid.ID) xid.ID {
	w.Helper()
	return w.insert(newRequest{workspaceID: w.workspace, agentID: agentID, causationID: xid.New("cau"), scope: domain.ScopeTaskless,
		source: domain.WakeupSourceSelf, class: domain.WakeClassEvent, reason: "test", payload: &domain.SelfPayload{Reason: "test"}})
}

func (w *world) insert(r newRequest) (id xid.ID) {
	w.Helper()
	w.ok(w.inTx(w.Context(), func(t *tx) (err error) { id, _, err = t.insertRequest(w.Context(), r); return err }))
	return id
}

func scoped(scope string) func(*newRequest) { return func(r *newRequest) { r.scope = scope } }

// claim claims up to n runs.
func (w *world) claim(n int) []Claimed {
	w.Helper()
	claimed, err := w.Claim(w.Context(), w.owner, n, lease)
	return must(w, claimed, err)
}

// claimOne claims the only due run.
func (w *world) claimOne() Claimed {
	w.Helper()
	claimed := w.claim(10)
	if len(claimed) != 1 {
		w.Fatalf("claimed %d runs, want 1", len(claimed))
	}
	return claimed[0]
}

// claimUnstarted claims up to n runs as a claim does that cannot start them.
func (w *world) claimUnstarted(n int) []Claimed {
	w.Helper()
	claimed, err := w.claimNext(w.Context(), claimOrder{owner: w.owner, limit: n, lease: lease})
	return must(w, claimed, err)
}

// unstartedOne claims the only due run as a claim does that cannot start it.
func (w *world) unstartedOne() Claimed {
	w.Helper()
	claimed := w.claimUnstarted(10)
	if len(claimed) != 1 || claimed[0].Launch != nil {
		w.Fatalf("claimed %+v, want one run that is not started", claimed)
	}
	return claimed[0]
}

// launch is what a claimed run is launched with, nil when it was settled at its start.
func (w *world) launch(c Claimed) *Launch {
	w.Helper()
	if c.Launch != nil {
		return c.Launch
	}
	launch, err := w.Start(w.Context(), c.Attempt)
	return must(w, launch, err)
}

// start is launch for a run that is launched; it has a session then.
func (w *world) start(c Claimed) *Launch {
	w.Helper()
	launch := w.launch(c)
	if launch == nil {
		w.Fatal("the run was settled at its start")
	}
	w.ok(w.RecordSession(w.Context(), c.Attempt, "session-"+string(c.RunID)))
	return launch
}

// lose lets the process of an attempt die, and the wait after that be over.
func (w *world) lose(a Attempt) {
	w.Helper()
	must(w, first(w.Abandon(w.Context(), a, true)), nil)
	w.waited(a.RunID)
}

// waited ends the wait of a run that is to be tried again.
func (w *world) waited(run xid.ID) {
	w.Helper()
	w.sql(`UPDATE runs SET parked_until = clock_timestamp() - interval '1 second' WHERE id = $1 AND parked_reason = 'BACKOFF'`, run)
}

func (w *world) finish(c Claimed) {
	w.Helper()
	w.ok(w.Finish(w.Context(), c.Attempt, Success{Summary: "done"}))
}

// run reads a run.
func (w *world) run(id xid.ID) runRow {
	w.Helper()
	runs, err := pgtx.Collect(w.Context(), w.db, scanRun, `SELECT `+runColumns+` FROM runs r WHERE id = $1`, id)
	w.ok(err)
	if len(runs) != 1 {
		w.Fatalf("there is no run %s", id)
	}
	return runs[0]
}

// runOf is the run that a request was routed to.
func (w *world) runOf(request xid.ID) xid.ID {
	w.Helper()
	return one[xid.ID](w, `SELECT run_id FROM wakeup_requests WHERE id = $1`, request)
}

func (w *world) requestStatus(id xid.ID) domain.WakeupStatus {
	w.Helper()
	return one[domain.WakeupStatus](w, `SELECT status FROM wakeup_requests WHERE id = $1`, id)
}

func (w *world) wantRequest(id xid.ID, want domain.WakeupStatus) {
	w.Helper()
	if got := w.requestStatus(id); got != want {
		w.Errorf("request %s is %s, want %s", id, got, want)
	}
}

func (w *world) wantRun(id xid.ID, want domain.RunStatus, reason domain.ParkedReason) {
	w.Helper()
	run := w.run(id)
	var parked domain.ParkedReason
	if run.parkedReason != nil {
		parked = *run.parkedReason
	}
	if run.status != want || parked != reason {
		w.Errorf("run is %s parked %q, want %s parked %q", run.status, parked, want, reason)
	}
}

// sound checks what must hold of the queue after every transition.
func (w *world) sound() {
	w.Helper()
	for name, query := range map[string]string{
		"a lane's head is not its oldest due run": `
SELECT count(*) FROM agent_lanes l WHERE head_id IS DISTINCT FROM (SELECT id FROM runs WHERE agent_id = l.agent_id AND status = 'QUEUED'
  AND parked_reason IS NULL ORDER BY requested_at, id LIMIT 1)`,
		"a lane's running is not its live runs": `SELECT count(*) FROM agent_lanes l WHERE running <> (SELECT count(*) FROM runs WHERE agent_id = l.agent_id AND status = 'CLAIMED')`,
		"a workspace's running is not its live runs": `
SELECT count(*) FROM workspace_lanes l WHERE running <> (SELECT count(*) FROM runs WHERE workspace_id = l.workspace_id AND status = 'CLAIMED')`,
		"a live run has no lease, or a lease no live run": `
SELECT count(*) FROM runs r FULL JOIN attempt_leases l ON l.run_id = r.id AND l.attempt = r.attempt AND r.status = 'CLAIMED'
WHERE (r.status = 'CLAIMED' AND l.run_id IS NULL) OR (l.run_id IS NOT NULL AND r.id IS NULL)`,
		"a scope has two runs that are live or due": `
SELECT count(*) FROM (SELECT 1 FROM runs WHERE status = 'CLAIMED' OR status = 'QUEUED' AND parked_reason IS NULL GROUP BY agent_id, scope HAVING count(*) > 1) x`,
		"a run waits for a scope that is free": `
SELECT count(*) FROM runs b WHERE status = 'QUEUED' AND parked_reason = 'SCOPE_BUSY' AND NOT EXISTS (SELECT 1 FROM runs o
  WHERE o.agent_id = b.agent_id AND o.scope = b.scope AND (o.status = 'CLAIMED' OR o.status = 'QUEUED' AND o.parked_reason IS NULL))`,
		"an agent has more live runs than sessions": `SELECT count(*) FROM agent_lanes WHERE running > max_sessions`,
		"a live attempt's run is not live": `
SELECT count(*) FROM run_attempts a JOIN runs r ON r.id = a.run_id WHERE a.finished_at IS NULL AND (r.status <> 'CLAIMED' OR r.attempt <> a.number)`,
		"a request of an ended run has not ended": `
SELECT count(*) FROM wakeup_requests q JOIN runs r ON r.id = q.run_id WHERE r.finished_at IS NOT NULL AND q.finished_at IS NULL`,
		"a hold has outlived its run": `
SELECT count(*) FROM budget_holds h WHERE status = 'HELD' AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = h.run_id AND r.status = 'CLAIMED' AND r.attempt = h.attempt)`,
		"a budget's reserve is not what its holds are": `
SELECT count(*) FROM budget_policies b WHERE reserved_usd <> (SELECT coalesce(sum(amount_usd), 0) FROM budget_holds WHERE policy_id = b.id AND status = 'HELD')`,
		"an ended run's secrets are kept": `
SELECT count(*) FROM run_secrets s WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = s.run_id AND r.finished_at IS NULL)`,
		"an ended session's secrets are kept": `SELECT count(*) FROM task_sessions WHERE state = 'ENDED' AND secrets IS NOT NULL`,
		"a run's events have a gap":           `SELECT count(*) FROM runs r WHERE event_seq <> (SELECT count(*) FROM run_events e WHERE e.run_id = r.id)`,
	} {
		if n := one[int](w, query); n != 0 {
			w.Errorf("%s (%d times)", name, n)
		}
	}
}

func (w *world) background() context.Context { return context.WithoutCancel(w.Context()) }
