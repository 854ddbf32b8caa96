package store

import (
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// What ends a task ends its parked runs at once, however it is ended, and for how long ever they are parked.
func TestTheEndOfATaskEndsItsParkedRuns(t *testing.T) {
	for name, row := range map[string]struct {
		parked domain.ParkedReason
		end    func(w *world, task, helper xid.ID)
		reason domain.EndReason
	}{
		"moved to done": {domain.ParkedReasonRateLimit, func(w *world, task, _ xid.ID) { w.moveTo(task, domain.TaskStateDone) }, domain.EndReasonTaskDone},
		"cancelled":     {domain.ParkedReasonNoWorker, func(w *world, task, _ xid.ID) { w.moveTo(task, domain.TaskStateCancelled) }, domain.EndReasonTaskCancelled},
		"archived": {domain.ParkedReasonBackoff, func(w *world, task, _ xid.ID) {
			_, _, err := w.ArchiveTask(w.Context(), w.workspace, task)
			w.ok(err)
		}, domain.EndReasonTaskCancelled},
		"completed by another agent's run": {domain.ParkedReasonGuardError, func(w *world, task, helper xid.ID) {
			_, err := w.QueueRun(w.Context(), QueueRun{WorkspaceID: w.workspace, TaskID: task, AgentID: helper})
			w.ok(err)
			w.route(helper)
			c := w.claimOf(helper)
			w.start(c)
			w.finishAsking(c, map[string]any{"type": "complete_task"})
		}, domain.EndReasonTaskDone},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent, helper := w.agent("worker"), w.agent("helper")
			task := w.task("Build", assignedTo(agent))
			run := one[xid.ID](w, `SELECT id FROM runs`)
			w.sql(`UPDATE runs SET parked_reason = $1, parked_until = clock_timestamp() + interval '9 days'`, row.parked)
			w.sql(`UPDATE agent_lanes SET head_id = NULL, head_at = NULL`)
			row.end(w, task, helper)
			if got := one[string](w, `SELECT status || ' ' || coalesce(end_reason, '') FROM runs WHERE id = $1`, run); got != "CANCELLED "+string(row.reason) {
				t.Errorf("the parked run is %s", got)
			}
			if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE finished_at IS NULL`); n != 0 {
				t.Errorf("%d requests wait", n)
			}
			w.sound()
		})
	}
}

// A person's comment on a task that is over wakes nobody, and says so.
func TestACommentOnAnEndedTaskWakesNobody(t *testing.T) {
	w := newWorld(t)
	agent, other := w.agent("worker"), w.agent("other")
	task := w.task("Build", assignedTo(agent))
	w.moveTo(task, domain.TaskStateDone)
	comment := func(mentions ...xid.ID) ([]xid.ID, domain.NotWoken) {
		t.Helper()
		_, sent, unheard, err := w.Comment(t.Context(), CommentOnTask{WorkspaceID: w.workspace, TaskID: task, UserID: "ann", Body: "and now?", Mentions: mentions})
		w.ok(err)
		return sent, unheard
	}
	if sent, unheard := comment(); len(sent) != 0 || unheard != domain.NotWokenTaskEnded {
		t.Errorf("sent %v, not woken since %q", sent, unheard)
	}
	if sent, unheard := comment(other); len(sent) != 1 || unheard != domain.NotWokenTaskEnded {
		t.Errorf("with a mention: sent %v, not woken since %q", sent, unheard)
	}
	w.moveTo(task, domain.TaskStateInProgress)
	if sent, unheard := comment(); len(sent) != 1 || unheard != "" {
		t.Errorf("on an open task: sent %v, not woken since %q", sent, unheard)
	}
}

// S3.10: fires beyond the backlog are told of once for each agent and day, also after somebody handled the item.
func TestAFullBacklogIsToldOncePerAgentAndDay(t *testing.T) {
	w := newWorld(t)
	agent := w.agent("worker")
	trigger := w.routine(agent, func(r *CreateRoutine) { r.ConcurrencyPolicy = domain.ConcurrencyPolicyAlwaysEnqueue })
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status)
SELECT 'run_' || n, $1, $2, 'cau', 'taskless', 'USER', 'EVENT', 'QUEUED' FROM generate_series(1, $3) n`, w.workspace, agent, domain.MaxBacklog+1)
	for range 3 {
		w.makeDue(trigger)
		_, err := w.FireDue(t.Context(), trigger)
		w.ok(err)
		w.sql(`UPDATE inbox_items SET resolved_at = clock_timestamp()`)
	}
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE skip_reason = 'BACKLOG_FULL'`); n != 3 {
		t.Fatalf("%d fires were skipped, want 3", n)
	}
	if got := one[string](w, `SELECT string_agg(kind || ' ' || title || ' ' || subject_id, ';') FROM inbox_items`); got != "LOOP_BREAKER The queue of agent worker is full "+string(agent) {
		t.Errorf("the inbox says %q", got)
	}
	if n := w.counters.Workspace(w.workspace).FiresSkipped; len(n) != 1 || n[0].Reason != domain.EndReasonBacklogFull || n[0].Count != 3 {
		t.Errorf("counted %+v", n)
	}
}
