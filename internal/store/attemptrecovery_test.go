package store

import (
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// unstarted makes an office task of the agent that nobody was woken for.
func (w *world) unstarted(agent xid.ID) xid.ID {
	w.Helper()
	id := w.bareTask(agent)
	w.sql(`UPDATE tasks t SET workflow_id = w.office_workflow_id FROM workspaces w WHERE w.id = t.workspace_id AND t.id = $1`, id)
	return id
}

// recoverAll runs the sweep and returns the tasks that it dispatched.
func (w *world) recoverAll() []xid.ID {
	w.Helper()
	done, err := w.Recover(w.Context())
	w.ok(err)
	var tasks []xid.ID
	for _, d := range done {
		tasks = append(tasks, d.TaskID)
	}
	return tasks
}

func (w *world) wantRecovered(why string, want ...xid.ID) {
	w.Helper()
	got := map[xid.ID]bool{}
	for _, id := range w.recoverAll() {
		got[id] = true
	}
	if len(got) != len(want) {
		w.Errorf("%s: %d tasks were recovered, want %d", why, len(got), len(want))
	}
	for _, id := range want {
		if !got[id] {
			w.Errorf("%s: task %s was not recovered", why, id)
		}
	}
}

func TestAnUnstartedOfficeTaskIsDispatchedOncePerAssignment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	task := w.unstarted(agent)
	w.wantRecovered("the first sweep", task)
	request := one[xid.ID](w, `SELECT id FROM wakeup_requests WHERE task_id = $1 AND recovered AND source = 'TASK_ASSIGNED' AND basis = 'ASSIGNEE' AND hops = 0`, task)
	for code, n := range map[string]int{"RECOVERY_DISPATCH": 1, "RECOVERY_SWEEP_COMPLETE": 1} {
		if got := one[int](w, `SELECT count(*) FROM activities WHERE code = $1`, code); got != n {
			t.Errorf("%d entries %s, want %d", got, code, n)
		}
	}
	w.wantRecovered("while the wake is on its way")
	w.route(agent)
	c := w.claimOne()
	if w.runOf(request) != c.RunID {
		t.Error("the recovered wake has another run")
	}
	w.start(c)
	w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeLaunch, Message: "no", Permanent: true}))
	w.wantRecovered("C315 after its run failed for good: one try per assignment")
	w.sql(`UPDATE tasks SET assignment_version = assignment_version + 1`)
	w.wantRecovered("after another assignment", task)
	if got := one[int](w, `SELECT count(*) FROM activities WHERE code = 'RECOVERY_SWEEP_COMPLETE'`); got != 2 {
		t.Errorf("%d sweeps told of what they did, want the 2 that did something", got)
	}
	w.sound()
}

func TestRecoveryLooksAtOfficeTasksOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	project := w.project("p")
	kanban := xid.New("wfl")
	w.sql(`INSERT INTO workflows (id, workspace_id, name, kind) VALUES ($1, $2, 'Board', 'KANBAN')`, kanban, w.workspace)
	board, inProject, office, routine := w.unstarted(agent), w.unstarted(agent), w.unstarted(agent), w.unstarted(agent)
	w.sql(`UPDATE tasks SET workflow_id = $2, project_id = $3 WHERE id = $1`, inProject, kanban, project)
	w.sql(`UPDATE tasks SET workflow_id = $2 WHERE id = $1`, board, kanban)
	w.sql(`UPDATE tasks SET workflow_id = (SELECT id FROM workflows WHERE kind = 'ROUTINE') WHERE id = $1`, routine)
	for change, task := range map[string]xid.ID{
		`archived_at = now()`: w.unstarted(agent), `deleted_at = now()`: w.unstarted(agent), `state = 'IN_PROGRESS'`: w.unstarted(agent),
		`assignee_id = NULL`: w.unstarted(agent), `created_at = now() - interval '25 hours'`: w.unstarted(agent),
	} {
		w.sql(`UPDATE tasks SET `+change+` WHERE id = $1`, task)
	}
	w.wantRecovered("office tasks in TODO inside the lookback", inProject, office, routine)
	old := w.unstarted(agent)
	w.sql(`UPDATE tasks SET created_at = now() - interval '40 hours' WHERE id = $1`, old)
	w.sql(`UPDATE workspaces SET recovery_lookback_hours = 48`)
	w.sql(`UPDATE tasks SET archived_at = now() WHERE created_at < now() - interval '1 hour' AND id <> $1`, old)
	w.wantRecovered("a longer lookback", old)
}

func TestRecoveryKeepsOffWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world, agent, task xid.ID){
		"C219 a paused agent": func(w *world, agent, _ xid.ID) { w.pause(agent) },
		"a stopped agent": func(w *world, agent, _ xid.ID) {
			w.ok(w.StopAgent(w.Context(), HoldAgent{WorkspaceID: w.workspace, AgentID: agent}))
		},
		"a deleted agent":      func(w *world, agent, _ xid.ID) { w.ok(w.DeleteAgent(w.Context(), w.workspace, agent)) },
		"a run that is queued": func(w *world, agent, task xid.ID) { w.assigned(agent, task) },
		"a run that is live":   func(w *world, agent, task xid.ID) { w.assigned(agent, task); w.claimOne() },
		"a run that finished": func(w *world, agent, task xid.ID) {
			w.assigned(agent, task)
			c := w.claimOne()
			w.start(c)
			w.finish(c)
		},
		"a wake that waits to be routed": func(w *world, agent, task xid.ID) {
			w.assigned(agent, task)
			w.sql(`UPDATE wakeup_requests SET run_id = NULL`)
			w.sql(`UPDATE runs SET status = 'CANCELLED', finished_at = now()`)
		},
		"a wake that the checkout skipped": func(w *world, agent, task xid.ID) {
			w.assigned(agent, task)
			w.sql(`UPDATE wakeup_requests SET status = 'SKIPPED', end_reason = 'CHECKOUT_HELD', finished_at = now()`)
			w.sql(`UPDATE runs SET status = 'FINISHED', outcome = 'checkout_held', finished_at = now()`)
		},
		"C315 an open blocker": func(w *world, agent, task xid.ID) {
			blocker := w.bareTask("")
			w.sql(`INSERT INTO task_blockers (id, workspace_id, task_id, blocker_id) VALUES ('blk_' || $2, $3, $1, $2)`, task, blocker, w.workspace)
		},
		"C315 a run that a person cancelled": func(w *world, agent, task xid.ID) {
			run := w.runOf(w.assigned(agent, task))
			w.ok(w.CancelRun(w.Context(), w.workspace, run, ""))
		},
		"a spent budget": func(w *world, agent, _ xid.ID) {
			w.costly(agent, "2")
			w.budget(agent, "1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker")
			prepare(w, agent, w.unstarted(agent))
			w.wantRecovered(name)
		})
	}
}

func TestRecoveryDispatchesWhatOnlyLooksStarted(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world, agent, task xid.ID){
		"C315 a run that a guard settled": func(w *world, agent, task xid.ID) {
			w.pause(agent)
			request := w.assigned(agent, task)
			if got := w.claim(10); len(got) != 0 {
				w.Error("a paused agent claimed")
			}
			w.sql(`UPDATE agent_lanes SET status = 'IDLE', pause_reason = NULL, paused_at = NULL`) // the re-send was lost
			w.wantRequest(request, domain.WakeupStatusFinished)
		},
		"a run that failed": func(w *world, agent, task xid.ID) {
			w.assigned(agent, task)
			c := w.claimOne()
			w.start(c)
			w.ok(w.Fail(w.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeLaunch, Message: "no", Permanent: true}))
		},
		"a person's cancel before the last assignment": func(w *world, agent, task xid.ID) {
			w.ok(w.CancelRun(w.Context(), w.workspace, w.runOf(w.assigned(agent, task)), ""))
			w.ok(w.CancelRun(w.Context(), w.workspace, w.runOf(w.assigned(agent, task)), ""))
			w.sql(`UPDATE runs SET end_reason = 'ASSIGNEE_CHANGED' WHERE requested_at = (SELECT max(requested_at) FROM runs)`)
			w.sql(`UPDATE wakeup_requests SET end_reason = 'ASSIGNEE_CHANGED' WHERE requested_at = (SELECT max(requested_at) FROM wakeup_requests)`)
		},
		"a blocker that is done": func(w *world, agent, task xid.ID) {
			blocker := w.bareTask("")
			w.sql(`UPDATE tasks SET state = 'DONE' WHERE id = $1`, blocker)
			w.sql(`INSERT INTO task_blockers (id, workspace_id, task_id, blocker_id) VALUES ('blk_' || $2, $3, $1, $2)`, task, blocker, w.workspace)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker")
			task := w.unstarted(agent)
			prepare(w, agent, task)
			w.wantRecovered(name, task)
		})
	}
}

func TestManyUnstartedTasksAreGoneThroughPageByPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy, agent := w.agent("busy"), w.agent("worker")
	w.pause(busy)
	w.sql(`INSERT INTO tasks (id, workspace_id, title, workflow_id, step_id, assignee_id, created_at)
SELECT 'tsk_' || i, w.id, 'Task', w.office_workflow_id, (SELECT id FROM workflow_steps LIMIT 1), $2, now() - interval '1 hour'
FROM workspaces w, generate_series(1, $3::int) i WHERE w.id = $1`, w.workspace, busy, 2*recoveryPage+1)
	last := w.unstarted(agent)
	w.wantRecovered("behind two pages that are none of its business", last)
}

func TestTwoSweepsAtOnceDispatchATaskOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.unstarted(agent)
	results := make(chan int, 4)
	for range cap(results) {
		go func() {
			done, err := w.Recover(w.background())
			if err != nil {
				t.Error(err)
			}
			results <- len(done)
		}()
	}
	sum := 0
	for range cap(results) {
		sum += <-results
	}
	if sum != 1 || one[int](w, `SELECT count(*) FROM wakeup_requests`) != 1 {
		t.Errorf("four sweeps dispatched the task %d times", sum)
	}
}

func TestAnIdleDeploymentIsNotSearchedForTasks(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	w.sql(`UPDATE workspaces SET office_workflow_id = NULL`)
	before := statements.Load()
	w.wantRecovered("nothing")
	if n := statements.Load() - before; n != 1 {
		t.Errorf("a sweep without an office workflow or project takes %d statements, want 1", n)
	}
}
