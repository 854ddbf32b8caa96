package store

import (
	"fmt"
	"slices"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// What ends a task ends its parked runs at once, however it is ended, and for how long ever they are parked.
func TestTheEndOfATaskEndsItsParkedRuns(t *testing.T) {
	t.Parallel()
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
			if got := one[string](w, `SELECT status || ' ' || coalesce(end_reason::text, '') FROM runs WHERE id = $1`, run); got != "CANCELLED "+string(row.reason) {
				t.Errorf("the parked run is %s", got)
			}
			if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE finished_at IS NULL`); n != 0 {
				t.Errorf("%d requests wait", n)
			}
			if !one[bool](w, `SELECT r.xmin = k.xmin FROM runs r JOIN tasks k ON k.id = r.task_id WHERE r.id = $1`, run) {
				t.Error("the task and its parked run ended in two transactions")
			}
			w.sound()
		})
	}
}

// What ends with its task is listed for who ended it.
func TestWhoEndsATaskIsToldWhatEndsWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, reviewer := w.agent("worker"), w.agent("reviewer")
	task := w.task("Build", assignedTo(agent))
	_, err := w.QueueRun(w.Context(), QueueRun{WorkspaceID: w.workspace, TaskID: task, AgentID: reviewer})
	w.ok(err)
	waiting := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE task_id = $1`, task)
	_, cancelled, err := w.MoveTask(w.Context(), MoveTask{WorkspaceID: w.workspace, TaskID: task, To: domain.TaskStateCancelled})
	w.ok(err)
	if len(cancelled) != waiting || waiting < 2 {
		t.Errorf("%d of %d requests are listed", len(cancelled), waiting)
	}
	w.sound()
}

// A task about which very much waits ends in a transaction of a bounded size; the rest ends in steps that follow it.
func TestTheEndOfATaskIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	task := w.task("Build", assignedTo(agent))
	w.sql(`UPDATE runs SET parked_reason = 'RATE_LIMIT', parked_until = clock_timestamp() + interval '9 days'`)
	w.sql(`UPDATE agent_lanes SET head_id = NULL, head_at = NULL`)
	const comments, agents = 1500, 130
	w.sql(`INSERT INTO wakeup_requests (id, workspace_id, agent_id, task_id, run_id, causation_id, scope, source, wake_class, reason, payload, status)
SELECT 'wkp_c' || n, $1, $2, $3, r.id, 'cau', r.scope, 'COMMENT', 'EVENT', 'comment', '{}', 'COALESCED' FROM generate_series(1, $4) n, runs r`, w.workspace, agent, task, comments)
	for i := range agents {
		_, err := w.QueueRun(w.Context(), QueueRun{WorkspaceID: w.workspace, TaskID: task, AgentID: w.agent(fmt.Sprint("helper ", i))})
		w.ok(err)
	}
	_, cancelled, err := w.MoveTask(w.Context(), MoveTask{WorkspaceID: w.workspace, TaskID: task, To: domain.TaskStateDone})
	w.ok(err)
	if len(cancelled) != dropMost {
		t.Errorf("the transaction ended %d requests, want %d", len(cancelled), dropMost)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE task_id = $1 AND finished_at IS NULL`, task); n != 0 {
		t.Errorf("%d requests wait", n)
	}
	if n := one[int](w, `SELECT count(*) FROM runs WHERE task_id = $1 AND status = 'QUEUED'`, task); n != 0 {
		t.Errorf("%d runs wait", n)
	}
	w.sound()
}

// Who finds, under the lock, that somebody else waits as well locks that lane before all else and begins again.
func TestTheEndOfATaskFindsWhoJoinsMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, helper := w.agent("worker"), w.agent("helper")
	task := w.task("Build", assignedTo(agent))
	tries := 0
	w.ok(w.inTx(w.Context(), func(t *tx) error {
		tries++
		if err := t.lockAlso(w.Context()); err != nil {
			return err
		}
		if tries == 1 {
			_, err := w.QueueRun(w.Context(), QueueRun{WorkspaceID: w.workspace, TaskID: task, AgentID: helper})
			w.ok(err)
		}
		_, err := t.moveTask(w.Context(), MoveTask{WorkspaceID: w.workspace, TaskID: task, To: domain.TaskStateDone})
		return err
	}))
	if tries != 2 {
		t.Errorf("it took %d tries, want 2", tries)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE finished_at IS NULL`); n != 0 {
		t.Errorf("%d requests wait", n)
	}
	w.sound()
}

// A heavy fire whose request is dropped since its agent is gone ends with it, and does not wait for a sweep.
func TestAFireWhoseAgentWasDeletedBeforeRoutingEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	trigger := w.routine(agent, func(r *CreateRoutine) { r.TaskTemplate = &domain.TaskTemplate{Title: "Review"} })
	w.makeDue(trigger)
	w.refuse("INSERT", "runs", "true") // it is left to the dispatcher
	_, err := w.FireDue(t.Context(), trigger)
	w.ok(err)
	w.sql(`UPDATE agents SET deleted_at = clock_timestamp() WHERE id = $1`, agent)
	w.route(agent)
	if got := one[string](w, `SELECT status || ' ' || coalesce(skip_reason::text, '') FROM routine_runs`); got != "CANCELLED AGENT_DELETED" {
		t.Errorf("the fire is %s", got)
	}
}

// A person's comment on a task that is over wakes nobody, and says so.
func TestACommentOnAnEndedTaskWakesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, other := w.agent("worker"), w.agent("other")
	task := w.task("Build", assignedTo(agent))
	w.moveTo(task, domain.TaskStateDone)
	comment := func(mentions ...xid.ID) ([]xid.ID, domain.NotWoken) {
		t.Helper()
		_, heard, err := w.Comment(t.Context(), CommentOnTask{WorkspaceID: w.workspace, TaskID: task, UserID: "ann", Body: "and now?", Mentions: mentions})
		w.ok(err)
		return heard.Sent, heard.NotWoken
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

// An agent that mentions itself hears that this wakes nobody, also when it asks again, and the feed tells of it.
func TestAnAgentThatMentionsItselfHearsThatItIsNotWoken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, other := w.agent("worker"), w.agent("other")
	task := w.task("Build", assignedTo(other))
	say := CommentOnTask{WorkspaceID: w.workspace, TaskID: task, AuthorAgentID: agent, Body: "a note for me", Mentions: []xid.ID{agent}, Idempotency: Idempotency{Key: "k"}}
	first, heard, err := w.Comment(t.Context(), say)
	w.ok(err)
	again, repeated, err := w.Comment(t.Context(), say)
	w.ok(err)
	want := []domain.UnwokenMention{{AgentID: string(agent), Why: domain.NotWokenSelfMention}}
	if !slices.Equal(heard.InVain, want) || heard.NotWoken != "" || len(heard.Sent) != 1 {
		t.Errorf("heard: %+v", heard)
	}
	if again.ID != first.ID || !again.Replayed || !slices.Equal(repeated.InVain, want) || !slices.Equal(repeated.Sent, heard.Sent) || repeated.NotWoken != "" {
		t.Errorf("asked again: %+v, %+v", again, repeated)
	}
	if got := one[string](w, `SELECT string_agg(data->>'mentionsNotWoken', ' ') FROM activities WHERE code = 'TASK_COMMENTED'`); got != fmt.Sprintf("[%q]", agent) {
		t.Errorf("the feed says %s", got)
	}
	_, heard, err = w.Comment(t.Context(), CommentOnTask{WorkspaceID: w.workspace, TaskID: task, AuthorAgentID: agent, Body: "and you", Mentions: []xid.ID{other}})
	w.ok(err)
	if len(heard.InVain) != 0 {
		t.Errorf("of another one: %+v", heard)
	}
}

// What a process leaves that ends between the steps after a task's end, the sweep ends: the task says that there is something.
func TestTheSweepEndsWhatAProcessLeftOfAnEndedTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	task := w.task("Build", assignedTo(agent))
	w.sql(`UPDATE runs SET parked_reason = 'RATE_LIMIT', parked_until = clock_timestamp() + interval '9 days'`)
	w.sql(`UPDATE agent_lanes SET head_id = NULL, head_at = NULL`)
	w.sql(`CREATE TABLE marks (n serial, unsettled boolean)`)
	w.sql(`CREATE FUNCTION mark() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO marks (unsettled) VALUES (NEW.unsettled); RETURN NULL; END'`)
	w.sql(`CREATE TRIGGER mark AFTER UPDATE OF unsettled ON tasks FOR EACH ROW EXECUTE FUNCTION mark()`)
	w.sql(`INSERT INTO wakeup_requests (id, workspace_id, agent_id, task_id, run_id, causation_id, scope, source, wake_class, reason, payload, status)
SELECT 'wkp_c' || n, $1, $2, $3, r.id, 'cau', r.scope, 'COMMENT', 'EVENT', 'comment', '{}', 'COALESCED' FROM generate_series(1, $4) n, runs r`, w.workspace, agent, task, dropMost+500)
	w.moveTo(task, domain.TaskStateDone)
	if got := one[string](w, `SELECT string_agg(unsettled::text, ' ' ORDER BY n) FROM marks`); got != "true false" {
		t.Errorf("the task was noted as %q, want as unsettled with its end, and settled with the last step", got)
	}
	w.sql(`UPDATE runs SET status = 'QUEUED', finished_at = NULL, end_reason = NULL, parked_reason = 'RATE_LIMIT', parked_until = clock_timestamp() + interval '9 days'`)
	w.sql(`UPDATE wakeup_requests SET status = CASE WHEN id LIKE 'wkp_c%' THEN 'COALESCED' ELSE 'QUEUED' END, finished_at = NULL, end_reason = NULL`)
	w.sql(`UPDATE tasks SET unsettled = true`) // as its end has left it, and the process was killed then
	if done := must(w, first(w.Repair(t.Context())), nil); done != (Repairs{}) {
		t.Errorf("it counts as a repair: %+v", done)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE finished_at IS NULL`); n != 0 {
		t.Errorf("%d requests wait", n)
	}
	if got := one[string](w, `SELECT r.status || ' ' || r.end_reason || ' ' || t.unsettled FROM runs r JOIN tasks t ON t.id = r.task_id`); got != "CANCELLED TASK_DONE false" {
		t.Errorf("the parked run and the task are %s", got)
	}
	w.sound()
}

// S3.10: fires beyond the backlog are told of once for each agent and day, also after somebody handled the item.
func TestAFullBacklogIsToldOncePerAgentAndDay(t *testing.T) {
	t.Parallel()
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
