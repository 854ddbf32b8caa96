package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

func (w *world) pause(agentID xid.ID) {
	w.Helper()
	w.ok(w.PauseAgent(w.Context(), HoldAgent{WorkspaceID: w.workspace, AgentID: agentID, Note: "lunch"}))
}

func (w *world) resume(agentID xid.ID) []xid.ID {
	w.Helper()
	resumed, err := w.ResumeAgent(w.Context(), w.workspace, agentID)
	return must(w, resumed, err).Requests
}

// refused checks that an error is one problem of this code.
func (w *world) refused(err error, want domain.UserErrorCode) {
	w.Helper()
	var ue *domain.UserError
	if !errors.As(err, &ue) || len(ue.Problems) != 1 || ue.Problems[0].Code != want {
		w.Errorf("got %v, want %s", err, want)
	}
}

// bareTask makes a task of the assignee; "" for nobody's.
func (w *world) bareTask(assignee xid.ID) xid.ID {
	w.Helper()
	id := xid.New("tsk")
	w.sql(`INSERT INTO tasks (id, workspace_id, title, workflow_id, step_id, assignee_id)
SELECT $1, s.workspace_id, 'Task', s.workflow_id, s.id, $3 FROM workflow_steps s JOIN workflows f ON f.id = s.workflow_id
WHERE s.workspace_id = $2 AND f.kind = 'OFFICE' ORDER BY s.position LIMIT 1`, id, w.workspace, assignee)
	return id
}

func about(task xid.ID, source domain.WakeupSource, basis *domain.WakeBasis) func(*newRequest) {
	return func(r *newRequest) {
		r.taskID, r.scope, r.source, r.basis = task, domain.TaskScope(string(task)), source, basis
		r.payload = &domain.CommentPayload{TaskID: string(task)}
	}
}

func TestAPausedAgentLaunchesNothingAndGetsItAllAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	commented, reviewed, lost := w.bareTask(agent), w.bareTask(""), w.bareTask(agent)
	w.sql(`INSERT INTO task_reviewers (task_id, agent_id) VALUES ($1, $2)`, reviewed, agent)
	w.pause(agent)
	before := w.wake(agent)
	comment := w.request(agent, about(commented, domain.WakeupSourceComment, nil))
	review := w.request(agent, about(reviewed, domain.WakeupSourceTaskAssigned, pgtx.Ptr(domain.WakeBasisReviewer)))
	gone := w.request(agent, about(lost, domain.WakeupSourceComment, nil))
	periodic := w.request(agent, func(r *newRequest) { r.scope, r.class = "routine:r", domain.WakeClassPeriodic })
	w.sql(`UPDATE agents SET skip_idle_wakeups = false`)
	if got := w.claim(10); len(got) != 0 {
		t.Fatalf("C219 a paused agent claimed %d runs", len(got))
	}
	all := []xid.ID{before, comment, review, gone, periodic}
	for _, id := range all {
		w.wantRequest(id, domain.WakeupStatusFinished)
	}
	w.sound()
	w.sql(`UPDATE tasks SET assignee_id = NULL WHERE id = $1`, lost)
	place := one[time.Time](w, `SELECT requested_at FROM wakeup_requests WHERE id = $1`, before)
	if got := w.resume(agent); !slices.Equal(got, []xid.ID{before, comment, review}) {
		t.Errorf("C313 sent again %v, want %v", got, all[:3])
	}
	for _, id := range all[:3] {
		w.wantRequest(id, domain.WakeupStatusQueued)
		if n := one[int](w, `SELECT resends FROM wakeup_requests WHERE id = $1 AND run_id IS NULL AND end_reason IS NULL AND finished_at IS NULL`, id); n != 1 {
			t.Errorf("C304 request %s has %d resends, want 1", id, n)
		}
	}
	w.wantRequest(gone, domain.WakeupStatusFinished)
	w.wantRequest(periodic, domain.WakeupStatusFinished)
	w.route(agent)
	if at := w.run(w.runOf(before)).requestedAt; !at.Equal(place) {
		t.Errorf("C304 the run's place is %s, want the request's %s", at, place)
	}
	if first := w.claimOne(); first.RunID != w.runOf(before) {
		t.Error("C304 the oldest wake is not the first again")
	}
	w.sound()
	if got := w.resume(agent); len(got) != 0 {
		t.Errorf("to resume an agent that is not held sends %v", got)
	}
}

func TestWhatWasDroppedBeforeThePauseIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	w.pause(agent)
	first := w.wake(agent)
	w.claim(10)
	w.sql(`UPDATE wakeup_requests SET finished_at = finished_at - interval '1 hour' WHERE id = $1`, first)
	second := w.wake(agent)
	w.claim(10)
	w.ok(w.StopAgent(t.Context(), HoldAgent{WorkspaceID: w.workspace, AgentID: agent}))
	third := w.wake(agent)
	w.claim(10)
	if got := w.resume(agent); !slices.Equal(got, []xid.ID{second, third}) {
		t.Errorf("sent again %v, want %v: all since the pause, whether paused or stopped", got, []xid.ID{second, third})
	}
	w.sound()
}

func TestAPauseMeetsRunsInEveryState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	started, claimed := w.agent("started"), w.agent("claimed")
	w.wake(started)
	a := w.claimOne()
	w.start(a)
	request := w.wake(claimed)
	b := w.unstartedOne()
	w.pause(started)
	w.pause(claimed)
	launch := w.launch(b)
	if launch != nil {
		t.Error("C219 a claimed run of a paused agent was launched")
	}
	w.wantRun(a.RunID, domain.RunStatusClaimed, "")
	w.finish(a)
	w.sound()
	if got := w.resume(claimed); !slices.Equal(got, []xid.ID{request}) {
		t.Errorf("sent again %v, want %s", got, request)
	}
	w.route(claimed)
	w.start(w.claimOne())
	w.sound()
}

func TestAFireThatAPauseSkippedIsOpenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	made, err := w.CreateRoutine(t.Context(), CreateRoutine{WorkspaceID: w.workspace, Name: "r", AssigneeID: agent,
		ConcurrencyPolicy: domain.ConcurrencyPolicySkipIfActive, CatchUpPolicy: domain.CatchUpPolicySkipMissed, CatchUpMax: 1})
	w.ok(err)
	w.pause(agent)
	fire, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: made.ID})
	w.ok(err)
	w.route(agent)
	w.claim(10)
	status := func() string { return one[string](w, `SELECT status FROM routine_runs WHERE id = $1`, fire.ID) }
	if status() != "SKIPPED" {
		t.Fatalf("the fire is %s, want SKIPPED", status())
	}
	gone, err := w.CreateRoutine(t.Context(), CreateRoutine{WorkspaceID: w.workspace, Name: "gone", AssigneeID: agent,
		ConcurrencyPolicy: domain.ConcurrencyPolicyAlwaysEnqueue, CatchUpPolicy: domain.CatchUpPolicySkipMissed, CatchUpMax: 1})
	w.ok(err)
	_, _, err = w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: gone.ID})
	w.ok(err)
	w.route(agent)
	w.claim(10)
	w.ok(w.DeleteRoutine(t.Context(), w.workspace, gone.ID))
	w.resume(agent)
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE routine_id = $1 AND resends > 0`, gone.ID); n != 0 {
		t.Error("a fire of a routine that was deleted meanwhile was sent again")
	}
	if status() != "ENQUEUED" {
		t.Errorf("the fire is %s after the resume, want ENQUEUED", status())
	}
	w.route(agent)
	c := w.claimOne()
	w.start(c)
	w.finish(c)
	if status() != "DONE" {
		t.Errorf("the fire is %s in the end, want DONE", status())
	}
	w.sound()
}

func TestHoldsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	w.refused(w.PauseAgent(t.Context(), HoldAgent{WorkspaceID: xid.New("wsp"), AgentID: agent}), domain.UserErrorCodeNotFound)
	w.refused(w.PauseAgent(t.Context(), HoldAgent{WorkspaceID: w.workspace, AgentID: agent, Note: string(make([]rune, 1001))}), domain.UserErrorCodeTooLong)
	w.ok(w.StopAgent(t.Context(), HoldAgent{WorkspaceID: w.workspace, AgentID: agent}))
	w.refused(w.PauseAgent(t.Context(), HoldAgent{WorkspaceID: w.workspace, AgentID: agent}), domain.UserErrorCodeInvalidState)
	if n := one[int](w, `SELECT count(*) FROM activities WHERE subject_id = $1 AND code IN ('AGENT_PAUSED', 'AGENT_CHANGED')`, agent); n != 2 {
		t.Errorf("%d entries about the agent, want 2: made, stopped", n)
	}
}
