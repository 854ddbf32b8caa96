package store

import (
	"context"
	"testing"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// heavyRoutine makes a heavy routine of an agent and returns it.
func (w *world) heavyRoutine(agent xid.ID, change func(*CreateRoutine)) xid.ID {
	w.Helper()
	trigger := w.routine(agent, func(r *CreateRoutine) {
		r.TaskTemplate = &domain.TaskTemplate{Title: "Review"}
		if change != nil {
			change(r)
		}
	})
	return one[xid.ID](w, `SELECT routine_id FROM routine_triggers WHERE id = $1`, trigger)
}

// fireOf fires a routine by hand, routes, and returns the routine run with its disposition.
func (w *world) fireOf(routine, agent xid.ID) (xid.ID, domain.RoutineRunStatus) {
	w.Helper()
	made, _, err := w.FireRoutine(w.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: routine})
	w.ok(err)
	w.route(agent)
	return made.ID, one[domain.RoutineRunStatus](w, `SELECT status FROM routine_runs WHERE id = $1`, made.ID)
}

// asRun is what a run does by its token while it works.
func (w *world) asRun(c Claimed, task xid.ID) context.Context {
	return auth.WithPrincipal(w.Context(), auth.Principal{Kind: auth.KindRun, WorkspaceID: w.workspace, AgentID: c.AgentID, RunID: c.RunID, Attempt: c.Number, TaskID: task})
}

// finishAsking ends a run with a result that asks for some actions.
func (w *world) finishAsking(c Claimed, actions ...map[string]any) {
	w.Helper()
	list := []any{}
	for _, a := range actions {
		list = append(list, a)
	}
	w.ok(w.Finish(w.Context(), c.Attempt, Success{Result: map[string]any{"summary": "ok", "actions": list}}))
}

func moveAction(to string) map[string]any { return map[string]any{"type": "move_task", "state": to} }

// leftOpen is what the run's last event says of why the task was left open.
func (w *world) leftOpen(run xid.ID) domain.LeftOpen {
	w.Helper()
	return one[domain.LeftOpen](w, `SELECT coalesce(data->>'taskLeftOpen', '') FROM run_events WHERE run_id = $1 AND kind = 'FINISHED'`, run)
}

// An explicit word wins over what the step of a heavy routine's task does by default, whoever says it, and how.
func TestAWordAboutAHeavyTaskWinsOverItsDefaultCompletion(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		during func(w *world, c Claimed, task xid.ID)
		want   domain.TaskState
		why    domain.LeftOpen
	}{
		"nobody says anything": {nil, domain.TaskStateDone, ""},
		"the result moves it to BLOCKED": {func(w *world, c Claimed, _ xid.ID) { w.finishAsking(c, moveAction("BLOCKED")) },
			domain.TaskStateBlocked, domain.LeftOpenWord},
		"the result moves it to TODO": {func(w *world, c Claimed, _ xid.ID) { w.finishAsking(c, moveAction("TODO")) },
			domain.TaskStateTodo, domain.LeftOpenWord},
		"the result moves it to the state that it has": {func(w *world, c Claimed, _ xid.ID) { w.finishAsking(c, moveAction("IN_PROGRESS")) },
			domain.TaskStateInProgress, domain.LeftOpenWord},
		"the result moves it to a state that there is not": {func(w *world, c Claimed, _ xid.ID) { w.finishAsking(c, moveAction("WAITING")) },
			domain.TaskStateInProgress, domain.LeftOpenWord},
		"the result moves it there and back": {func(w *world, c Claimed, _ xid.ID) {
			w.finishAsking(c, moveAction("TODO"), moveAction("IN_PROGRESS"))
		}, domain.TaskStateInProgress, domain.LeftOpenWord},
		"the result asks a question": {func(w *world, c Claimed, _ xid.ID) {
			w.finishAsking(c, map[string]any{"type": "request_approval", "question": "May I?"})
		}, domain.TaskStateInProgress, domain.LeftOpenWord},
		"the result makes a subtask": {func(w *world, c Claimed, _ xid.ID) {
			w.finishAsking(c, map[string]any{"type": "create_subtask", "title": "part"})
		}, domain.TaskStateDone, ""},
		"the run moves it to BLOCKED while it works": {func(w *world, c Claimed, task xid.ID) {
			w.mustMove(w.asRun(c, task), task, domain.TaskStateBlocked)
		}, domain.TaskStateBlocked, domain.LeftOpenWord},
		"the run moves it to TODO while it works": {func(w *world, c Claimed, task xid.ID) {
			w.mustMove(w.asRun(c, task), task, domain.TaskStateTodo)
		}, domain.TaskStateTodo, domain.LeftOpenWord},
		"the run asks a question while it works": {func(w *world, c Claimed, task xid.ID) {
			_, _, err := w.RequestApproval(w.asRun(c, task), RequestApproval{WorkspaceID: w.workspace, TaskID: task, AgentID: c.AgentID, Question: "May I?"})
			w.ok(err)
		}, domain.TaskStateInProgress, domain.LeftOpenWord},
		"a person moves it while the agent works": {func(w *world, _ Claimed, task xid.ID) { w.moveTo(task, domain.TaskStateTodo) },
			domain.TaskStateTodo, domain.LeftOpenWord},
		"a person moves it there and back": {func(w *world, _ Claimed, task xid.ID) {
			w.moveTo(task, domain.TaskStateTodo)
			w.moveTo(task, domain.TaskStateInProgress)
		}, domain.TaskStateInProgress, domain.LeftOpenWord},
		"a person comments while the agent works": {func(w *world, _ Claimed, task xid.ID) { w.commentOn(task) },
			domain.TaskStateInProgress, domain.LeftOpenMore},
		"a person gives it a blocker while the agent works": {func(w *world, _ Claimed, task xid.ID) {
			_, err := w.SetTaskBlockers(w.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: task, BlockedBy: []xid.ID{w.task("first")}})
			w.ok(err)
		}, domain.TaskStateInProgress, domain.LeftOpenBlocker},
		"a person gives it to another agent": {func(w *world, _ Claimed, task xid.ID) { w.assign(task, w.agent("other")) },
			domain.TaskStateInProgress, ""},
		"a person gives it to another agent and back": {func(w *world, c Claimed, task xid.ID) {
			w.assign(task, w.agent("other"))
			w.assign(task, c.AgentID)
		}, domain.TaskStateInProgress, domain.LeftOpenMore},
		"the first attempt moves it and fails, the second says nothing": {func(w *world, c Claimed, task xid.ID) {
			w.mustMove(w.asRun(c, task), task, domain.TaskStateTodo)
			w.ok(w.Fail(w.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "crash"}))
			w.again(c)
		}, domain.TaskStateTodo, domain.LeftOpenWord},
		"a person moves it between two attempts, and the second is told": {func(w *world, c Claimed, task xid.ID) {
			w.mustMove(w.asRun(c, task), task, domain.TaskStateTodo)
			w.ok(w.Fail(w.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "crash"}))
			w.moveTo(task, domain.TaskStateInProgress)
			w.again(c)
		}, domain.TaskStateDone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker")
			w.fireOf(w.heavyRoutine(agent, nil), agent)
			task := one[xid.ID](w, `SELECT id FROM tasks`)
			waits := w.task("waits for it", blockedBy(task), assignedTo(w.agent("waiting")))
			c := w.claimOf(agent)
			w.start(c)
			if row.during != nil {
				row.during(w, c, task)
			}
			if one[bool](w, `SELECT status = 'CLAIMED' FROM runs WHERE id = $1`, c.RunID) {
				w.finish(w.live(c))
			}
			w.wantState(task, row.want)
			if got := w.leftOpen(c.RunID); got != row.why {
				t.Errorf("the run's last event says %q, want %q", got, row.why)
			}
			released := one[bool](w, `SELECT EXISTS (SELECT 1 FROM wakeup_requests WHERE task_id = $1 AND source = 'TASK_BLOCKERS_RESOLVED')`, waits)
			if released != (row.want == domain.TaskStateDone) {
				t.Errorf("who waits for it is released: %v", released)
			}
			w.sound()
		})
	}
}

func (w *world) mustMove(ctx context.Context, task xid.ID, to domain.TaskState) {
	w.Helper()
	sent, _, err := w.MoveTask(ctx, MoveTask{WorkspaceID: w.workspace, TaskID: task, To: to})
	w.ok(err)
	w.routed(sent)
}

// again claims and starts a run's next attempt, whatever it waits for.
func (w *world) again(c Claimed) {
	w.Helper()
	w.sql(`UPDATE runs SET parked_until = clock_timestamp() WHERE id = $1 AND parked_until IS NOT NULL`, c.RunID)
	w.sql(`UPDATE agent_lanes SET eligible_at = clock_timestamp() WHERE agent_id = $1`, c.AgentID)
	w.start(w.claimOf(c.AgentID))
}

// live is the run's live attempt.
func (w *world) live(c Claimed) Claimed {
	w.Helper()
	c.Attempt.Number = one[int](w, `SELECT attempt FROM runs WHERE id = $1`, c.RunID)
	return c
}

// The same in a workflow of a person's own, for any state.
func TestAWordWinsInEveryWorkflow(t *testing.T) {
	t.Parallel()
	for _, to := range domain.TaskState("").Values() {
		t.Run(to, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker")
			board := w.kanban(domain.StepPlan{Name: "Doing", State: domain.TaskStateInProgress, OnEnter: []domain.StepAction{domain.StepActionAutoStartAgent, domain.StepActionAutoComplete}},
				domain.StepPlan{Name: "Later", State: domain.TaskStateTodo, OnEnter: []domain.StepAction{domain.StepActionAutoComplete}})
			task := w.task("Build", assignedTo(agent), func(in *CreateTask) { in.WorkflowID = board })
			c := w.claimOf(agent)
			w.start(c)
			w.mustMove(w.asRun(c, task), task, domain.TaskState(to))
			w.finish(c)
			w.wantState(task, domain.TaskState(to))
		})
	}
}
