package store

import (
	"context"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

var keepAMonth = domain.Retention{History: 30 * 24 * time.Hour}

// olds makes n ended runs of an agent, each with its request and an event, the newest of them this many days old.
func (w *world) olds(agent xid.ID, prefix string, n, days int, more string) {
	w.Helper()
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, event_seq, requested_at, finished_at)
SELECT 'run_' || $1 || i, $2, $3, 'cau', 'task:' || i, 'SELF', 'EVENT', 'FINISHED', 'processed', 1, now() - $5 * interval '1 day' - i * interval '1 minute', now() - $5 * interval '1 day' - i * interval '1 minute'
FROM generate_series(1, $4::int) i`, prefix, w.workspace, agent, n, days)
	w.sql(`INSERT INTO wakeup_requests (id, workspace_id, agent_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, recovered, resends, hops, retry_count, run_id, finished_at)
SELECT 'wkp_' || id, workspace_id, agent_id, 'cau', scope, 'SELF', 'EVENT', false, 'test', '{}', 'FINISHED', false, 0, 0, 0, id, finished_at FROM runs WHERE id LIKE 'run_' || $1 || '%'`, prefix)
	w.sql(`INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data) SELECT workspace_id, id, 1, 'CREATED', 0, '{}' FROM runs WHERE id LIKE 'run_' || $1 || '%'`, prefix)
	if more != "" {
		w.sql(`UPDATE runs SET `+more+` WHERE id LIKE 'run_' || $1 || '%'`, prefix)
	}
}

func (w *world) left(prefix string) (runs, requests, events int) {
	w.Helper()
	for table, n := range map[string]*int{"runs": &runs, "wakeup_requests": &requests, "run_events": &events} {
		column := map[string]string{"runs": "id"}[table]
		if column == "" {
			column = "run_id"
		}
		*n = one[int](w, `SELECT count(*) FROM `+table+` WHERE `+column+` LIKE 'run_' || $1 || '%'`, prefix)
	}
	return runs, requests, events
}

// prune calls Prune until there is no more.
func (w *world) prune(r domain.Retention) (total domain.Removed) {
	w.Helper()
	for more := true; more; {
		removed, again, err := w.Prune(w.Context(), r)
		w.ok(err)
		total, more = total.Plus(removed), again
	}
	return total
}

func TestOldRunsGoWithAllThatHangsOnThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy, quiet, held := w.agent("busy"), w.agent("quiet"), w.agent("held")
	open, done := w.bareTask(busy), w.bareTask(busy)
	w.sql(`UPDATE tasks SET state = 'DONE' WHERE id = $1`, done)
	w.olds(busy, "new", domain.RetentionFloor, 1, "")
	w.olds(busy, "old", 450, 40, "")
	w.olds(busy, "open", 7, 50, "task_id = '"+string(open)+"'")
	w.olds(busy, "done", 7, 50, "task_id = '"+string(done)+"'")
	w.olds(quiet, "few", domain.RetentionFloor, 90, "")
	w.olds(held, "dropped", 3, 40, "outcome = 'agent_inactive'")
	w.olds(held, "recent", domain.RetentionFloor, 35, "")
	w.sql(`UPDATE agent_lanes SET status = 'PAUSED', pause_reason = 'USER', paused_at = now() - interval '45 days' WHERE agent_id = $1`, held)
	w.sql(`INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, input_tokens, output_tokens, cost_usd)
SELECT 'cst_' || id, workspace_id, 'cau', id, 1, agent_id, 1, 1, 0.5 FROM runs WHERE id LIKE 'run_old%'`)
	w.wake(busy)

	would := must(w, first(w.Prunable(t.Context(), keepAMonth)), nil)
	if would.Runs != 457 {
		t.Errorf("a dry run would remove %d runs, want 457", would.Runs)
	}
	if runs, _, _ := w.left("old"); runs != 450 {
		t.Errorf("after the dry run %d old runs are left, want all", runs)
	}
	if removed := w.prune(keepAMonth); removed != would {
		t.Errorf("removed %+v, the dry run said %+v", removed, would)
	}
	for prefix, want := range map[string]int{"new": 50, "old": 0, "open": 7, "done": 0, "few": 50, "dropped": 3, "recent": 50} {
		if runs, requests, events := w.left(prefix); runs != want || requests != want || events != want {
			t.Errorf("of the runs called %s %d runs, %d requests and %d events are left, want %d", prefix, runs, requests, events, want)
		}
	}
	if n := one[int](w, `SELECT count(*) FROM cost_entries`); n != 450 {
		t.Errorf("%d of 450 costs are left: they are accounts, and stay", n)
	}
	w.sound()
	w.claimOne()
}

func TestRetentionKeepsTheLookbackAndWhatIsForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.olds(agent, "new", domain.RetentionFloor, 1, "")
	w.olds(agent, "old", 10, 5, "")
	w.sql(`UPDATE workspaces SET recovery_lookback_hours = 240`)
	if removed := w.prune(domain.Retention{History: 48 * time.Hour}); removed.Runs != 0 {
		t.Errorf("%d runs inside the recovery lookback were removed", removed.Runs)
	}
	w.sql(`UPDATE workspaces SET recovery_lookback_hours = 24`)
	if removed := w.prune(domain.Retention{}); removed.Runs != 0 {
		t.Errorf("%d runs were removed though history is kept for ever", removed.Runs)
	}
	if removed := w.prune(domain.Retention{History: 48 * time.Hour}); removed.Runs != 10 {
		t.Errorf("%d runs were removed, want 10", removed.Runs)
	}
}

func TestTheFeedAndTheLedgerBecomeOldToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.sql(`INSERT INTO activities (id, workspace_id, code, summary, actor_kind, data, occurred_at)
SELECT 'act_' || i, $1, 'TASK_CHANGED', 'old', 'SYSTEM', '{}', now() - interval '40 days' - i * interval '1 minute' FROM generate_series(1, 60) i`, w.workspace)
	w.sql(`INSERT INTO inbox_items (id, workspace_id, kind, title, body, created_at, resolved_at)
SELECT 'inb_' || i, $1, 'AGENT_ERROR', 'old', '', now() - interval '40 days' - i * interval '1 minute', CASE WHEN i % 2 = 0 THEN now() - interval '39 days' END FROM generate_series(1, 70) i`, w.workspace)
	w.sql(`INSERT INTO wakeup_requests (id, workspace_id, agent_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, recovered, resends, hops, retry_count, finished_at)
SELECT 'wkp_' || i, $1, $2, 'cau', 'task:' || i, 'SELF', 'EVENT', false, 'test', '{}', 'SKIPPED', false, 0, 0, 0, now() - interval '40 days' - i * interval '1 minute' FROM generate_series(1, 60) i`, w.workspace, agent)
	w.sql(`INSERT INTO mutation_keys (id, owner, mutation, key, input_digest, created_at) VALUES ('mut_1', 'ada', 'wakeAgent', 'old', 'x', now() - interval '25 hours'), ('mut_2', 'ada', 'wakeAgent', 'new', 'x', now())`)
	would := must(w, first(w.Prunable(t.Context(), keepAMonth)), nil)
	removed := w.prune(keepAMonth)
	if removed != would {
		t.Errorf("removed %+v, the dry run said %+v", removed, would)
	}
	if removed.Requests != 10 || removed.InboxItems != 10 || removed.MutationKeys != 1 || removed.Activities < 10 {
		t.Errorf("removed %+v", removed)
	}
	if n := one[int](w, `SELECT count(*) FROM activities WHERE workspace_id = $1`, w.workspace); n != domain.RetentionFloor {
		t.Errorf("%d activity entries are left, want the newest %d", n, domain.RetentionFloor)
	}
	if n := one[int](w, `SELECT count(*) FROM inbox_items WHERE resolved_at IS NULL`); n != 35 {
		t.Errorf("%d open inbox items are left, want all 35", n)
	}
}

func TestTheFireLedgerIsRemovedOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	routine := one[xid.ID](w, `SELECT routine_id FROM routine_triggers WHERE id = $1`, w.routine(agent, nil))
	w.sql(`INSERT INTO routine_runs (id, workspace_id, routine_id, causation_id, source, status, dispatch_fingerprint, variables, started_at, completed_at)
SELECT 'rrn_' || i, $1, $2, 'cau', 'MANUAL', 'DONE', 'f', '{}', now() - interval '40 days' - i * interval '1 minute', now() - interval '40 days' FROM generate_series(1, 55) i`, w.workspace, routine)
	w.sql(`INSERT INTO routine_runs (id, workspace_id, routine_id, causation_id, source, status, dispatch_fingerprint, variables, started_at) VALUES ('rrn_live', $1, $2, 'cau', 'MANUAL', 'ENQUEUED', 'f', '{}', now() - interval '90 days')`, w.workspace, routine)
	if removed := w.prune(keepAMonth); removed.RoutineRuns != 0 {
		t.Errorf("%d routine runs were removed unasked", removed.RoutineRuns)
	}
	if removed := w.prune(domain.Retention{RoutineRuns: 30 * 24 * time.Hour}); removed.RoutineRuns != 5 {
		t.Errorf("%d routine runs were removed, want 5: the newest 50 and those still at work stay", removed.RoutineRuns)
	}
}

// Two that prune at once, the sweep and `rouse prune` say, share the work: neither waits for the other's rows, nor ends
// because those went without it.
func TestTwoPruneSideBySide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.olds(agent, "new", domain.RetentionFloor, 1, "")
	w.olds(agent, "old", 2*retentionBatch+10, 40, "")
	other, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	defer other.Rollback()
	rows, err := other.ExecContext(t.Context(), `SELECT 1 FROM runs WHERE id IN (SELECT id FROM runs WHERE id LIKE 'run_old%' ORDER BY finished_at LIMIT $1) FOR UPDATE`, retentionBatch)
	w.ok(err)
	if n, err := rows.RowsAffected(); err != nil || n != retentionBatch {
		t.Fatalf("the other one holds %d rows, %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	removed, more, err := w.Prune(ctx, keepAMonth)
	if err != nil || removed.Runs != retentionBatch || !more {
		t.Errorf("beside another it removed %d runs, more: %t, %v; want %d and more", removed.Runs, more, err, retentionBatch)
	}
	w.ok(other.Rollback())
	if total := w.prune(keepAMonth); total.Runs != retentionBatch+10 {
		t.Errorf("the rest is %d runs, want %d", total.Runs, retentionBatch+10)
	}
}
