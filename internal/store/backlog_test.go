package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// queued gives an agent n due runs of scopes of their own with a request each, older than whatever else a test makes.
func (w *world) queued(agentID xid.ID, n int) {
	w.Helper()
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, requested_at)
SELECT 'run_' || $1 || lpad(i::text, 8, '0'), $2, $1, 'cau', 'task:' || i, 'SELF', 'EVENT', 'QUEUED', '2026-01-01Z'::timestamptz + i * interval '1 second'
FROM generate_series(1, $3::int) i`, agentID, w.workspace, n)
	w.sql(`INSERT INTO wakeup_requests (id, workspace_id, agent_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, recovered, resends,
  hops, retry_count, run_id, requested_at)
SELECT 'wkp_' || $1 || lpad(i::text, 8, '0'), $2, $1, 'cau', 'task:' || i, 'SELF', 'EVENT', false, 'test', '{}', 'QUEUED', false, 0, 0, 0,
  'run_' || $1 || lpad(i::text, 8, '0'), '2026-01-01Z'::timestamptz + i * interval '1 second'
FROM generate_series(1, $3::int) i`, agentID, w.workspace, n)
	w.sql(`UPDATE agent_lanes SET (head_at, head_id) = (SELECT requested_at, id FROM runs WHERE agent_id = $1 AND status = 'QUEUED' AND parked_reason IS NULL
  ORDER BY requested_at, id LIMIT 1) WHERE agent_id = $1`, agentID)
}

// queuedOf is how many queued runs an agent has.
func (w *world) queuedOf(agentID xid.ID) int {
	w.Helper()
	return one[int](w, `SELECT count(*) FROM runs WHERE agent_id = $1 AND status = 'QUEUED'`, agentID)
}

// settleQueue ends what a held agent has queued, in steps.
func (w *world) settleQueue(agentID xid.ID) {
	w.Helper()
	for steps := w.queuedOf(agentID)/backlogRuns + 3; w.queuedOf(agentID) > 0; steps-- {
		if steps == 0 {
			w.Fatalf("%d runs are queued after all steps, the first of them %v", w.queuedOf(agentID),
				w.texts(`SELECT concat_ws(' ', id, scope, parked_reason, parked_until) FROM runs WHERE agent_id = $1 AND status = 'QUEUED' LIMIT 3`, agentID))
		}
		w.ok(w.SettleBacklog(w.background()))
	}
}

// S6.1: an agent that is held never stands in front of others, however much it has queued; what it has queued ends in
// bounded steps, and none of it is launched.
func TestAHeldAgentsBacklogDelaysNobody(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	const each = 1000
	held := []xid.ID{w.agent("one"), w.agent("two"), w.agent("three")}
	for _, agent := range held {
		w.queued(agent, each)
	}
	w.pause(held[0])
	w.ok(w.StopAgent(t.Context(), HoldAgent{WorkspaceID: w.workspace, AgentID: held[1]}))
	w.pause(held[2])
	want := w.runOf(w.wake(w.agent("busy")))
	before := statements.Load()
	claimed := w.claim(1)
	if n := statements.Load() - before; len(claimed) != 1 || claimed[0].RunID != want || n > 20 {
		t.Fatalf("the first pass claimed %v in %d statements, want %s in 20", claimed, n, want)
	}
	all := func() int { return w.queuedOf(held[0]) + w.queuedOf(held[1]) + w.queuedOf(held[2]) }
	for passes, rest := 1, all(); rest > 0; passes++ {
		before := statements.Load()
		if got := w.claim(10); len(got) > 0 {
			t.Fatalf("runs of held agents were claimed: %v", got)
		}
		now, n := all(), statements.Load()-before
		if rest-now > backlogLanes*backlogRuns || n > 60 || now == rest || passes > 2*3*each/backlogRuns {
			t.Fatalf("pass %d ended %d of %d runs in %d statements", passes, rest-now, rest, n)
		}
		rest = now
		if w.Failed() {
			return
		}
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE status = 'FINISHED' AND end_reason = 'AGENT_INACTIVE'`); n != 3*each {
		t.Errorf("%d requests ended AGENT_INACTIVE, want %d", n, 3*each)
	}
	w.sound()
}

// S6.1: heads that guards refuse keep nobody either: a pass settles its share of them one by one and goes past the others.
func TestHeadsThatGuardsRefuseDelayNobody(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	const lanes = 40 // more than a pass settles
	for i := range lanes {
		idle := w.agent(fmt.Sprint("idle ", i), func(a *CreateAgent) { a.SkipIdleWakeups = pgtx.Ptr(true) })
		for _, scope := range []string{"routine:a", "routine:b"} {
			w.request(idle, func(r *newRequest) { r.scope, r.class = scope, domain.WakeClassPeriodic })
		}
	}
	want := w.runOf(w.wake(w.agent("busy")))
	before := statements.Load()
	claimed := w.claim(16)
	settled := one[int](w, `SELECT count(*) FROM runs WHERE outcome = 'idle_skipped'`)
	if n := statements.Load() - before; len(claimed) != 1 || claimed[0].RunID != want || settled > settlesPerPass || n > 15*settlesPerPass+lanes {
		t.Errorf("the first call claimed %v and settled %d heartbeats in %d statements, want %s and at most %d", claimed, settled, n, want, settlesPerPass)
	}
	settledAll := func() int { return one[int](w, `SELECT count(*) FROM runs WHERE outcome = 'idle_skipped'`) }
	for passes := 0; settledAll() < 2*lanes && passes < 2*lanes; passes++ {
		w.claim(16)
	}
	if n := settledAll(); n != 2*lanes {
		t.Errorf("%d of %d heartbeats were settled in the end", n, 2*lanes)
	}
	w.sound()
}

// S3.8: what a step ends together has the rows that it would have one by one.
func TestEndingABacklogTogetherWritesTheRowsOfOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agents := []xid.ID{w.agent("together"), w.agent("one by one")}
	for _, agent := range agents {
		w.mixedQueue(agent)
	}
	w.pause(agents[0])
	w.settleQueue(agents[0])
	w.pause(agents[1])
	for range w.queuedOf(agents[1]) {
		w.ok(w.inTx(t.Context(), func(x *tx) error {
			l, err := x.lockLane(t.Context(), agents[1])
			if err != nil {
				return err
			}
			run, err := x.lockRun(t.Context(), xid.ID(*l.headID))
			if err != nil {
				return err
			}
			a := domain.Admit(domain.AdmitFacts{AgentStatus: l.status, WakeClass: run.class, CancelRequested: run.cancelRequestedAt != nil})
			if err := x.settle(t.Context(), run, *a.Settle); err != nil {
				return err
			}
			return x.fixHead(t.Context(), l)
		}))
	}
	for name, query := range map[string]string{
		"runs":     `SELECT concat_ws(' ', r.scope, r.status, r.outcome, r.end_reason, r.parked_reason, r.revision, r.event_seq, r.finished_at IS NOT NULL, r.due_at IS NOT NULL) FROM runs r WHERE agent_id = $1`,
		"requests": `SELECT concat_ws(' ', q.scope, q.source, q.status, q.end_reason, q.resends, q.finished_at = r.finished_at) FROM wakeup_requests q JOIN runs r ON r.id = q.run_id WHERE q.agent_id = $1`,
		"events":   `SELECT concat_ws(' ', r.scope, e.seq, e.kind, e.attempt, e.data->>'reason') FROM run_events e JOIN runs r ON r.id = e.run_id WHERE r.agent_id = $1`,
		"feed": `SELECT concat_ws(' ', r.scope, a.code, a.summary, a.actor_kind, a.actor, a.data - 'agent' - 'task_id', a.data->>'agent' = r.agent_id, a.data->>'task_id' IS NOT DISTINCT FROM r.task_id, a.causation_id = r.causation_id, a.occurred_at = r.finished_at)
FROM activities a JOIN runs r ON r.id = a.subject_id WHERE a.agent_id = $1`,
		"fires": `SELECT concat_ws(' ', f.status, f.skip_reason, f.completed_at IS NOT NULL) FROM routine_runs f JOIN wakeup_requests q ON q.routine_run_id = f.id WHERE q.agent_id = $1`,
	} {
		got, want := w.texts(query, agents[0]), w.texts(query, agents[1])
		if !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	w.sound()
}

// mixedQueue gives an agent wakes that merge, follow each other, are about a task, were fired, and one to be cancelled.
func (w *world) mixedQueue(agent xid.ID) {
	w.Helper()
	made, err := w.CreateRoutine(w.Context(), CreateRoutine{WorkspaceID: w.workspace, Name: "r of " + string(agent), AssigneeID: agent,
		ConcurrencyPolicy: domain.ConcurrencyPolicyAlwaysEnqueue, CatchUpPolicy: domain.CatchUpPolicySkipMissed, CatchUpMax: 1})
	w.ok(err)
	for range 3 {
		_, _, err := w.FireRoutine(w.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: made.ID})
		w.ok(err)
	}
	w.sql(`UPDATE wakeup_requests SET scope = 'fire:' || row_number FROM (SELECT id AS x, row_number() OVER (ORDER BY id) FROM wakeup_requests WHERE agent_id = $1) n WHERE id = x`, agent)
	w.sql(`UPDATE runs r SET scope = q.scope FROM wakeup_requests q WHERE q.run_id = r.id AND r.agent_id = $1`, agent)
	for i := range 4 {
		w.request(agent, scoped("task:"+fmt.Sprint(i/2)))
	}
	cancelled := w.request(agent, scoped("task:cancelled"))
	w.sql(`UPDATE runs SET cancel_requested_at = clock_timestamp() WHERE id = $1`, w.runOf(cancelled))
	behind := w.request(agent, scoped("task:behind"))
	w.sql(`UPDATE runs SET scope = 'task:0', parked_reason = 'SCOPE_BUSY', due_at = NULL WHERE id = $1`, w.runOf(behind))
	w.sql(`UPDATE wakeup_requests SET scope = 'task:0' WHERE id = $1`, behind)
	w.sound()
}

func (w *world) texts(query string, args ...any) []string {
	w.Helper()
	list, err := pgtx.Collect(w.background(), w.Store.db, pgtx.ScanOne[string], query, args...)
	w.ok(err)
	slices.Sort(list)
	return list
}

// restarted is another process on the same database.
func (w *world) restarted() *Store {
	return New(w.db, Options{Events: w.events, Counters: metrics.New(), Log: slog.New(slog.NewTextHandler(w.Output(), nil)), Jitter: func() float64 { return 0 }})
}

// S6.3: a resume of more than one transaction should hold loses and repeats nothing, also when it begins before the pause has
// ended all, is interrupted by another pause, and goes on in another process.
func TestAResumeOfALongQueueGoesOnInSteps(t *testing.T) {
	t.Parallel()
	const n = 3 * backlogRuns
	for name, c := range map[string]struct {
		settle     int // steps before the resume
		interrupt  bool
		want       Resumed // its count
		resent     int     // at the end
		secondTime int     // of them, sent twice
	}{
		"all was dropped before":                      {settle: 4, want: Resumed{Count: n}, resent: n},
		"some was not dropped yet":                    {settle: 1, want: Resumed{Count: backlogRuns}, resent: backlogRuns},
		"another pause comes in between":              {settle: 4, interrupt: true, want: Resumed{Count: n}, resent: n, secondTime: backlogRuns},
		"nothing was dropped yet":                     {settle: 0, want: Resumed{Count: 0}, resent: 0},
		"some was not dropped, and another one comes": {settle: 2, interrupt: true, want: Resumed{Count: 2 * backlogRuns}, resent: n, secondTime: backlogRuns},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker")
			w.queued(agent, n)
			w.pause(agent)
			for range c.settle {
				w.ok(w.SettleBacklog(t.Context()))
			}
			resumed, err := w.ResumeAgent(t.Context(), w.workspace, agent)
			w.ok(err)
			if resumed.Count != c.want.Count || len(resumed.Requests) != min(backlogRuns, c.want.Count) {
				t.Errorf("it sends %d and counts %d, want %d", len(resumed.Requests), resumed.Count, c.want.Count)
			}
			w.route(agent)
			if c.interrupt {
				w.pause(agent)
				w.settleQueue(agent)
				w.resume(agent)
			}
			process := w.restarted()
			for range 3*n/backlogRuns + 3 {
				w.ok(process.SettleBacklog(t.Context()))
				w.route(agent)
			}
			for what, got := range map[string]int{
				"are queued once, due, of " + fmt.Sprint(n): one[int](w, `SELECT n FROM (SELECT count(*) AS n, count(DISTINCT q.id) AS requests FROM runs r JOIN wakeup_requests q ON q.run_id = r.id
  WHERE r.agent_id = $1 AND r.status = 'QUEUED' AND r.parked_reason IS NULL AND q.status = 'QUEUED') x WHERE n = requests`, agent) - n,
				"were sent again":       one[int](w, `SELECT count(*) FROM wakeup_requests WHERE agent_id = $1 AND resends > 0`, agent) - c.resent,
				"were sent again twice": one[int](w, `SELECT count(*) FROM wakeup_requests WHERE agent_id = $1 AND resends > 1`, agent) - c.secondTime,
				"lanes are not through": one[int](w, `SELECT count(*) FROM agent_lanes WHERE resend_from IS NOT NULL OR resend_after <> ''`),
			} {
				if got != 0 {
					t.Errorf("too many or few requests %s: by %d", what, got)
				}
			}
			w.sound()
			if first := w.claimOne(); !strings.HasSuffix(string(one[xid.ID](w, `SELECT id FROM wakeup_requests WHERE run_id = $1`, first.RunID)), "00000001") {
				t.Errorf("the oldest is not the first again")
			}
		})
	}
}

// S2: a deleted agent's queue ends step by step, in any process; nothing of it is launched meanwhile.
func TestADeletedAgentsLongQueueEndsInSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	const n = 2*backlogRuns + 10
	w.queued(agent, n)
	w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = now() + interval '1 hour' WHERE agent_id = $1 AND id > 'run_' || $1 || '00000100'`, agent)
	w.sql(`INSERT INTO wakeup_requests (id, workspace_id, agent_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, recovered, resends, hops, retry_count)
SELECT 'wkp_new' || lpad(i::text, 8, '0'), $2, $1, 'cau', 'task:' || i, 'SELF', 'EVENT', false, 'test', '{}', 'QUEUED', false, 0, 0, 0
FROM generate_series(1, $3::int) i`, agent, w.workspace, backlogRequests+10)
	w.ok(w.DeleteAgent(t.Context(), w.workspace, agent))
	if got := w.queuedOf(agent); got != n-backlogRuns {
		t.Errorf("%d runs are queued after the deletion, want %d", got, n-backlogRuns)
	}
	process := w.restarted()
	for range 4 {
		if got, err := process.Claim(t.Context(), w.owner, 10, lease); err != nil || len(got) > 0 {
			t.Fatalf("claimed %v of a deleted agent, %v", got, err)
		}
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE status <> 'CANCELLED' OR end_reason <> 'AGENT_DELETED'`) + w.queuedOf(agent); n != 0 {
		t.Errorf("%d requests or runs of the deleted agent are left", n)
	}
	if n := one[int](w, `SELECT count(*) FROM agent_lanes WHERE clearing`); n != 0 {
		t.Error("the lane still has something to be ended")
	}
	w.sound()
}

// pauseAgent, resumeAgent and deleteAgent take as many statements, and change as many rows, for a long queue as for a short one.
func TestHoldsOfALongQueueAreShort(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	agent := w.agent("worker")
	const n = 5000
	w.queued(agent, n)
	counted := func(what string, most int64, f func()) {
		t.Helper()
		before := statements.Load()
		f()
		if got := statements.Load() - before; got > most {
			t.Errorf("%s took %d statements, want at most %d", what, got, most)
		}
	}
	counted("the pause", 8, func() { w.pause(agent) })
	if got := w.queuedOf(agent); got != n {
		t.Errorf("the pause ended %d runs", n-got)
	}
	w.settleQueue(agent)
	counted("the resume", 16, func() { w.resume(agent) })
	if got := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE status = 'QUEUED'`); got != backlogRuns || got > n/10 {
		t.Errorf("the resume sent %d requests again, want %d at first, and few of %d", got, backlogRuns, n)
	}
	w.route(agent)
	counted("the deletion", 20, func() { w.ok(w.DeleteAgent(context.WithoutCancel(t.Context()), w.workspace, agent)) })
}

// Parked runs that fall due together are made due together, one of each scope.
func TestParkedRunsBecomeDueTogether(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	agent := w.agent("worker")
	w.queued(agent, 300)
	w.sql(`UPDATE runs SET parked_reason = 'WINDOW', parked_until = now() - interval '1 second', scope = 'task:' || (right(id, 8)::int / 2) WHERE agent_id = $1`, agent)
	w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL`)
	before := statements.Load()
	w.ok(w.promoteDue(t.Context()))
	if n := statements.Load() - before; n > 6 {
		t.Errorf("it took %d statements", n)
	}
	if due := one[int](w, `SELECT count(*) FROM runs WHERE parked_reason IS NULL AND due_at IS NOT NULL`); due != 151 {
		t.Errorf("%d runs are due, want one of each of 151 scopes", due)
	}
	w.sound()
}
