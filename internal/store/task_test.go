package store

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// task makes a task in the office workflow, routes what it causes, and returns it; change adjusts it.
func (w *world) task(title string, change ...func(*CreateTask)) xid.ID {
	w.Helper()
	in := CreateTask{WorkspaceID: w.workspace, Title: title}
	for _, f := range change {
		f(&in)
	}
	made, sent, err := w.CreateTask(w.Context(), in)
	w.ok(err)
	w.routed(sent)
	return made.ID
}

func assignedTo(agent xid.ID) func(*CreateTask) {
	return func(in *CreateTask) { in.AssigneeID = agent }
}
func blockedBy(tasks ...xid.ID) func(*CreateTask) {
	return func(in *CreateTask) { in.BlockedBy = tasks }
}
func childOf(parent xid.ID) func(*CreateTask) { return func(in *CreateTask) { in.ParentID = parent } }

// routed routes requests and returns them.
func (w *world) routed(requests []xid.ID) []xid.ID {
	w.Helper()
	for _, id := range requests {
		w.route(one[xid.ID](w, `SELECT agent_id FROM wakeup_requests WHERE id = $1`, id))
	}
	return requests
}

func (w *world) moveTo(task xid.ID, state domain.TaskState) []xid.ID {
	w.Helper()
	sent, _, err := w.MoveTask(w.Context(), MoveTask{WorkspaceID: w.workspace, TaskID: task, To: state})
	w.ok(err)
	return w.routed(sent)
}

func (w *world) assign(task, agent xid.ID) (sent, cancelled []xid.ID) {
	w.Helper()
	sent, cancelled, err := w.AssignTask(w.Context(), AssignTask{WorkspaceID: w.workspace, TaskID: task, AssigneeID: agent})
	w.ok(err)
	return w.routed(sent), cancelled
}

func (w *world) commentOn(task xid.ID, mentions ...xid.ID) []xid.ID {
	w.Helper()
	_, sent, err := w.CommentOnTask(w.Context(), CommentOnTask{WorkspaceID: w.workspace, TaskID: task, UserID: "ann", Body: "look", Mentions: mentions})
	w.ok(err)
	return w.routed(sent)
}

func (w *world) state(task xid.ID) domain.TaskState {
	w.Helper()
	return one[domain.TaskState](w, `SELECT state FROM tasks WHERE id = $1`, task)
}

func (w *world) wantState(task xid.ID, want domain.TaskState) {
	w.Helper()
	if got := w.state(task); got != want {
		w.Errorf("the task is %s, want %s", got, want)
	}
}

// sources are the kinds of the requests, in their order.
func (w *world) sources(requests []xid.ID) []domain.WakeupSource {
	w.Helper()
	var list []domain.WakeupSource
	for _, id := range requests {
		list = append(list, one[domain.WakeupSource](w, `SELECT source FROM wakeup_requests WHERE id = $1`, id))
	}
	return list
}

func (w *world) wantSources(requests []xid.ID, want ...domain.WakeupSource) {
	w.Helper()
	if got := w.sources(requests); !slices.Equal(got, want) {
		w.Errorf("wakes are %v, want %v", got, want)
	}
}

func (w *world) wantReason(request xid.ID, status domain.WakeupStatus, want domain.EndReason) {
	w.Helper()
	w.wantRequest(request, status)
	if got := one[string](w, `SELECT coalesce(end_reason::text, '') FROM wakeup_requests WHERE id = $1`, request); got != string(want) {
		w.Errorf("request ended %s, want %s", got, want)
	}
}

func (w *world) holder(task xid.ID) xid.ID {
	w.Helper()
	return one[xid.ID](w, `SELECT checkout_run_id FROM tasks WHERE id = $1`, task)
}

// user is the problem of a user error; "" for none.
func userCode(err error) domain.UserErrorCode {
	if user, ok := errors.AsType[*domain.UserError](err); ok {
		return user.Problems[0].Code
	}
	return ""
}

// kanban makes a workflow whose tasks the loop does not act on.
func (w *world) kanban(steps ...domain.StepPlan) xid.ID {
	w.Helper()
	made, err := w.CreateWorkflow(w.Context(), CreateWorkflow{WorkspaceID: w.workspace, Plan: domain.WorkflowPlan{Name: "Board", Kind: domain.WorkflowKindKanban, Steps: steps}})
	return must(w, made, err).ID
}

func TestAssigningWakesOncePerAssignment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent("a"), w.agent("b")
	task := w.task("Build")
	first, _ := w.assign(task, a)
	w.wantSources(first, domain.WakeupSourceTaskAssigned)
	second, cancelled := w.assign(task, b)
	w.wantSources(second, domain.WakeupSourceTaskAssigned)
	if !slices.Equal(cancelled, first) {
		t.Errorf("S5.5: cancelled %v, want %v", cancelled, first)
	}
	w.wantReason(first[0], domain.WakeupStatusCancelled, domain.EndReasonAssigneeChanged)
	w.wantRun(w.runOf(first[0]), domain.RunStatusCancelled, "")
	third, _ := w.assign(task, a)
	w.wantSources(third, domain.WakeupSourceTaskAssigned)
	if third[0] == first[0] {
		t.Error("C38: the third assignment was taken for the first")
	}
	w.wantRequest(third[0], domain.WakeupStatusQueued)
	w.sound()
	claimed := w.claimOne()
	if claimed.AgentID != a || w.holder(task) != claimed.RunID {
		t.Errorf("claimed for %s with the task held by %s", claimed.AgentID, w.holder(task))
	}
	launch := w.start(claimed)
	if launch.TaskID != task || launch.WakeReason != domain.WakeupSourceTaskAssigned {
		t.Errorf("launched with %+v", launch)
	}
	w.finish(claimed)
	if h := w.holder(task); h != "" {
		t.Errorf("C218: the task is still held by %s", h)
	}
	w.sound()
}

func TestStaleRequestsAreJudgedOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		name   string
		change func(task, other xid.ID)
		want   domain.EndReason
	}{
		{"C82 reassigned", func(task, other xid.ID) { w.assign(task, other) }, domain.EndReasonAssigneeChanged},
		{"C82 done", func(task, _ xid.ID) { w.moveTo(task, domain.TaskStateDone) }, domain.EndReasonTaskDone},
		{"C82 cancelled", func(task, _ xid.ID) { w.moveTo(task, domain.TaskStateCancelled) }, domain.EndReasonTaskCancelled},
		{"C82 archived", func(task, _ xid.ID) { _, _, err := w.ArchiveTask(t.Context(), w.workspace, task); w.ok(err) }, domain.EndReasonTaskCancelled},
		{"C82 gone", func(task, _ xid.ID) { w.sql(`UPDATE tasks SET deleted_at = now() WHERE id = $1`, task) }, domain.EndReasonTaskNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := w.agent(c.name), w.agent(c.name+" other")
			task := w.task(c.name, assignedTo(a))
			comment := w.commentOn(task)[0]
			c.change(task, b)
			for _, x := range w.claim(10) {
				if x.AgentID == a {
					t.Error("the former assignee was launched")
				}
				w.start(x)
				w.finish(x)
			}
			w.wantReason(comment, domain.WakeupStatusCancelled, c.want)
			w.sound()
		})
	}
}

func TestAReviewerIsLaunchedOnSomebodyElsesTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, reviewer := w.agent("a"), w.agent("reviewer")
	task := w.task("Build", assignedTo(a))
	w.finishAll()
	set := SetTaskParticipants{WorkspaceID: w.workspace, TaskID: task, Reviewers: domain.To([]xid.ID{reviewer})}
	if _, _, err := w.SetTaskParticipants(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	wakes := w.moveTo(task, domain.TaskStateInReview)
	w.wantSources(wakes, domain.WakeupSourceTaskAssigned)
	claimed := w.claimOne()
	if claimed.AgentID != reviewer {
		t.Error("C319: the reviewer was not launched")
	}
	w.start(claimed)
	w.finish(claimed)
	w.moveTo(task, domain.TaskStateInProgress)
	w.finishAll()
	again := w.moveTo(task, domain.TaskStateInReview)
	_, cancelled, err := w.SetTaskParticipants(t.Context(), SetTaskParticipants{WorkspaceID: w.workspace, TaskID: task, Reviewers: domain.Change[[]xid.ID]{Set: true}})
	w.ok(err)
	if !slices.Equal(cancelled, again) {
		t.Errorf("cancelled %v, want %v", cancelled, again)
	}
	w.wantReason(again[0], domain.WakeupStatusCancelled, domain.EndReasonReviewParticipantChanged)
	w.sound()
}

// finishAll serves everything that is due.
func (w *world) finishAll() {
	w.Helper()
	for claimed := w.claim(10); len(claimed) > 0; claimed = w.claim(10) {
		for _, c := range claimed {
			w.start(c)
			w.finish(c)
		}
	}
}

func TestBlockers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("a")
	first, second := w.task("Spec"), w.task("Design")
	build := w.task("Build", assignedTo(a), blockedBy(first, second))
	request := one[xid.ID](w, `SELECT id FROM wakeup_requests WHERE task_id = $1`, build)
	w.wantRun(w.runOf(request), domain.RunStatusQueued, domain.ParkedReasonTaskBlocked)
	waiting, err := w.Waiting(t.Context(), []xid.ID{w.runOf(request)}, nil)
	w.ok(err)
	if got := waiting[w.runOf(request)]; got.Hold != domain.QueueHoldTaskBlocked || !slices.Equal(got.BlockedBy, []string{string(first), string(second)}) {
		t.Errorf("waits for %+v", got)
	}
	if len(w.claim(10)) != 0 {
		t.Error("a blocked task was launched")
	}
	w.wantSources(w.moveTo(first, domain.TaskStateDone))
	w.wantSources(w.moveTo(second, domain.TaskStateCancelled), domain.WakeupSourceTaskBlockersResolved)
	w.wantRun(w.runOf(request), domain.RunStatusQueued, "")
	w.sound()
	w.finishAll()

	t.Run("C303 they are resolved each time", func(t *testing.T) {
		w.wantSources(w.moveTo(second, domain.TaskStateTodo))
		w.wantSources(w.moveTo(second, domain.TaskStateDone), domain.WakeupSourceTaskBlockersResolved)
		w.finishAll()
		w.moveTo(second, domain.TaskStateTodo)
		sent, err := w.SetTaskBlockers(t.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: build, BlockedBy: []xid.ID{first}})
		w.ok(err)
		w.wantSources(w.routed(sent), domain.WakeupSourceTaskBlockersResolved)
		w.finishAll()
		third := w.task("Third")
		sent, err = w.SetTaskBlockers(t.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: build, BlockedBy: []xid.ID{third}})
		w.ok(err)
		w.wantSources(sent)
		sent, _, err = w.ArchiveTask(t.Context(), w.workspace, third)
		w.ok(err)
		w.wantSources(w.routed(sent), domain.WakeupSourceTaskBlockersResolved)
		w.finishAll()
	})
	t.Run("the last end reaches a run that is held beside the one that takes the message", func(t *testing.T) {
		blocker := w.task("beside")
		task := w.task("two runs", assignedTo(a))
		assigned := w.claim(10)[0]
		w.start(assigned)
		w.commentOn(task)
		w.ok(w.HandBack(t.Context(), assigned.Attempt, Unfinished{}))
		_, err := w.SetTaskBlockers(t.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: task, BlockedBy: []xid.ID{blocker}})
		w.ok(err)
		commented := w.claim(10)[0]
		w.wantRun(assigned.RunID, domain.RunStatusQueued, domain.ParkedReasonTaskBlocked)
		w.ok(w.HandBack(t.Context(), commented.Attempt, Unfinished{}))
		w.moveTo(blocker, domain.TaskStateDone)
		w.wantRun(commented.RunID, domain.RunStatusQueued, "")
		w.wantRun(assigned.RunID, domain.RunStatusQueued, domain.ParkedReasonScopeBusy)
		w.finishAll()
		w.wantRun(assigned.RunID, domain.RunStatusFinished, "")
	})
	t.Run("a circle is refused", func(t *testing.T) {
		x := w.task("x")
		y := w.task("y", blockedBy(x))
		_, err := w.SetTaskBlockers(t.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: x, BlockedBy: []xid.ID{y}})
		if userCode(err) != domain.UserErrorCodeBlockerCycle {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a run that is due when a blocker is added is parked at its claim", func(t *testing.T) {
		blocker := w.task("late")
		task := w.task("due", assignedTo(a))
		_, err := w.SetTaskBlockers(t.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: task, BlockedBy: []xid.ID{blocker}})
		w.ok(err)
		if len(w.claim(10)) != 0 {
			t.Error("a blocked task was launched")
		}
		run := one[xid.ID](w, `SELECT run_id FROM wakeup_requests WHERE task_id = $1`, task)
		w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonTaskBlocked)
		w.commentOn(task)
		w.wantRun(run, domain.RunStatusQueued, "") // another event unparks
		w.finishAll()
	})
	w.sound()
}

func TestTheLastTwoBlockersEndAtTheSameMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("a")
	for range 10 {
		x, y := w.task("x"), w.task("y")
		task := w.task("z", assignedTo(a), blockedBy(x, y))
		var wg sync.WaitGroup
		for _, blocker := range []xid.ID{x, y} {
			wg.Go(func() {
				if _, _, err := w.MoveTask(w.background(), MoveTask{WorkspaceID: w.workspace, TaskID: blocker, To: domain.TaskStateDone}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE task_id = $1 AND source = 'TASK_BLOCKERS_RESOLVED'`, task); n != 1 {
			t.Fatalf("C302: %d wakes, want 1", n)
		}
	}
}

func TestChildrenCompletedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lead, a := w.agent("lead"), w.agent("a")
	parent := w.task("Parent", assignedTo(lead))
	w.finishAll()
	x, y, z := w.task("x", childOf(parent), assignedTo(a)), w.task("y", childOf(parent)), w.task("z", childOf(parent))
	w.finishAll()
	w.wantSources(w.moveTo(x, domain.TaskStateDone))
	w.wantSources(w.moveTo(y, domain.TaskStateCancelled))
	w.wantSources(w.moveTo(z, domain.TaskStateDone), domain.WakeupSourceTaskChildrenCompleted)
	w.sound()
}

func TestKanbanTasksAreNotWoken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("a")
	board := w.kanban(domain.StepPlan{Name: "To do", State: domain.TaskStateTodo}, domain.StepPlan{Name: "Go", State: domain.TaskStateInProgress, OnEnter: []domain.StepAction{domain.StepActionQueueRun}},
		domain.StepPlan{Name: "Doing", State: domain.TaskStateInProgress})
	task := w.task("Card", assignedTo(a), func(in *CreateTask) { in.WorkflowID = board })
	w.commentOn(task)
	w.moveTo(task, domain.TaskStateInReview)
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests`); n != 0 {
		t.Errorf("%d wakes on a Kanban task", n)
	}
	t.Run("a step's queue_run does", func(t *testing.T) {
		w.wantSources(w.moveTo(task, domain.TaskStateInProgress), domain.WakeupSourceTaskAssigned)
		if got := one[string](w, `SELECT basis FROM wakeup_requests WHERE task_id = $1`, task); got != "EXPLICIT" {
			t.Errorf("basis %s", got)
		}
		w.finishAll()
	})
	t.Run("queueRun does", func(t *testing.T) {
		made, err := w.QueueRun(t.Context(), QueueRun{WorkspaceID: w.workspace, TaskID: task, Idempotency: Idempotency{Key: "k"}})
		w.ok(err)
		w.route(a)
		again, err := w.QueueRun(t.Context(), QueueRun{WorkspaceID: w.workspace, TaskID: task, Idempotency: Idempotency{Key: "k"}})
		w.ok(err)
		if again.ID != made.ID || !again.Replayed {
			t.Errorf("got %+v, want %+v replayed", again, made)
		}
		w.claimOne()
	})
	t.Run("a project makes it an office task", func(t *testing.T) {
		made, err := w.CreateProject(t.Context(), CreateProject{WorkspaceID: w.workspace, ID: xid.New("prj"), Name: "P"})
		w.ok(err)
		card := w.task("Other", assignedTo(a), func(in *CreateTask) { in.WorkflowID = board })
		sent, _, err := w.UpdateTask(t.Context(), UpdateTask{WorkspaceID: w.workspace, TaskID: card, ProjectID: domain.To(string(made.ID))})
		w.ok(err)
		w.wantSources(w.routed(sent), domain.WakeupSourceTaskAssigned)
	})
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent("a"), w.agent("b")
	task := w.task("Shared", assignedTo(a))
	held := w.claimOne()
	w.start(held)
	made, err := w.QueueRun(t.Context(), QueueRun{WorkspaceID: w.workspace, TaskID: task, AgentID: b})
	w.ok(err)
	w.route(b)
	if len(w.claim(10)) != 0 {
		t.Fatal("C86: two runs hold one task")
	}
	w.wantReason(made.ID, domain.WakeupStatusSkipped, domain.EndReasonCheckoutHeld)
	if got := one[string](w, `SELECT outcome FROM runs WHERE id = $1`, w.runOf(made.ID)); got != domain.OutcomeCheckoutHeld {
		t.Errorf("outcome %s", got)
	}
	waiting, err := w.Waiting(t.Context(), nil, []xid.ID{made.ID})
	w.ok(err)
	if got := waiting[made.ID]; got.Hold != domain.QueueHoldTaskCheckedOut || !slices.Equal(got.BlockedBy, []string{string(held.RunID)}) {
		t.Errorf("waits for %+v", got)
	}
	w.sound()
	w.finish(held)
	w.wantRequest(made.ID, domain.WakeupStatusQueued)
	if n := one[int](w, `SELECT resends FROM wakeup_requests WHERE id = $1`, made.ID); n != 1 {
		t.Errorf("S5.6: %d resends", n)
	}
	w.route(b)
	next := w.claimOne()
	if next.AgentID != b || w.holder(task) != next.RunID {
		t.Error("C301: the task was not taken by who waited")
	}
	t.Run("C87 a lock whose holder is not live is reaped", func(t *testing.T) {
		w.start(next)
		w.finish(next)
		w.sql(`UPDATE tasks SET checkout_agent_id = $2, checkout_run_id = $3, checkout_at = now() WHERE id = $1`, task, a, held.RunID)
		made, err := w.QueueRun(t.Context(), QueueRun{WorkspaceID: w.workspace, TaskID: task, AgentID: b})
		w.ok(err)
		w.route(b)
		if len(w.claim(10)) != 0 {
			t.Fatal("an orphan lock was passed over")
		}
		done, err := w.Repair(t.Context())
		w.ok(err)
		if done.Checkouts != 1 || w.holder(task) != "" {
			t.Errorf("repaired %+v", done)
		}
		w.wantRequest(made.ID, domain.WakeupStatusQueued)
		w.route(b)
		w.claimOne()
	})
	w.sound()
}

func TestCheckoutIsFreedAtEveryEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		name string
		end  func(Claimed)
	}{
		{"failed", func(x Claimed) {
			w.ok(w.Fail(t.Context(), x.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "x"}))
		}},
		{"failed for good", func(x Claimed) {
			w.ok(w.Fail(t.Context(), x.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "x", Permanent: true}))
		}},
		{"cancelled", func(x Claimed) { w.ok(w.Cancelled(t.Context(), x.Attempt, Unfinished{})) }},
		{"handed back", func(x Claimed) { w.ok(w.HandBack(t.Context(), x.Attempt, Unfinished{})) }},
		{"rescued", func(x Claimed) {
			w.sql(`UPDATE attempt_leases SET lease_until = now() - interval '1 minute' WHERE run_id = $1`, x.RunID)
			if _, err := w.Abandon(t.Context(), x.Attempt, false); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run("C218 "+c.name, func(t *testing.T) {
			a := w.agent(c.name)
			task := w.task(c.name, assignedTo(a))
			claimed := w.claimOne()
			w.start(claimed)
			if w.holder(task) != claimed.RunID {
				t.Fatal("the task is not held")
			}
			c.end(claimed)
			if h := w.holder(task); h != "" {
				t.Errorf("still held by %s", h)
			}
			w.sound()
			w.sql(`UPDATE runs SET status = 'CANCELLED', finished_at = now(), parked_reason = NULL, parked_until = NULL WHERE status = 'QUEUED'`)
			w.sql(`UPDATE wakeup_requests SET status = 'CANCELLED', finished_at = now() WHERE finished_at IS NULL`)
			w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL`)
		})
	}
}

func TestAReassignedTaskIsKeptByItsLiveRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent("a"), w.agent("b")
	task := w.task("Build", assignedTo(a))
	held := w.claimOne()
	w.start(held)
	sent, _ := w.assign(task, b)
	if len(w.claim(10)) != 0 || w.holder(task) != held.RunID {
		t.Error("C218: the successor took the lock of a live run")
	}
	w.wantReason(sent[0], domain.WakeupStatusSkipped, domain.EndReasonCheckoutHeld)
	w.finish(held)
	w.route(b)
	if next := w.claimOne(); next.AgentID != b {
		t.Error("the successor was not launched once the task was free")
	}
	w.sound()
}

func TestAStaleRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent("a"), w.agent("b")
	fail := func(title string) (task, request xid.ID) {
		task = w.task(title, assignedTo(a))
		claimed := w.claimOne()
		w.start(claimed)
		w.ok(w.Fail(t.Context(), claimed.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "x"}))
		return task, one[xid.ID](w, `SELECT id FROM wakeup_requests WHERE task_id = $1`, task)
	}
	task, request := fail("reassigned")
	_, cancelled := w.assign(task, b)
	if !slices.Equal(cancelled, []xid.ID{request}) {
		t.Errorf("cancelled %v", cancelled)
	}
	w.wantReason(request, domain.WakeupStatusCancelled, domain.EndReasonRetryStaleAssignee)
	w.finishAll()
	task, request = fail("cancelled")
	w.moveTo(task, domain.TaskStateCancelled)
	w.sql(`UPDATE runs SET parked_until = now() - interval '1 second' WHERE parked_reason = 'BACKOFF'`)
	if len(w.claim(10)) != 0 {
		t.Error("the retry of a cancelled task was launched")
	}
	w.wantReason(request, domain.WakeupStatusCancelled, domain.EndReasonRetryTaskCancelled)
	if n := one[int](w, `SELECT count(*) FROM activities WHERE code = 'WAKEUP_RETRY_CANCELLED'`); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
	w.sound()
}

func TestCompletionAsksForAnApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, approver := w.agent("a"), w.agent("approver")
	task := w.task("Spec", assignedTo(a), func(in *CreateTask) { in.RequiresApproval = true })
	w.finishAll()
	_, _, err := w.SetTaskParticipants(t.Context(), SetTaskParticipants{WorkspaceID: w.workspace, TaskID: task, Approvers: domain.To([]xid.ID{approver})})
	w.ok(err)
	asked := w.moveTo(task, domain.TaskStateDone)
	w.wantState(task, domain.TaskStateInReview)
	w.wantSources(asked, domain.WakeupSourceTaskAssigned)
	for _, of := range []struct {
		approvers []xid.ID
		calls     int
	}{{nil, 0}, {[]xid.ID{approver}, 1}} { // who left and is back is called again
		sent, _, err := w.SetTaskParticipants(t.Context(), SetTaskParticipants{WorkspaceID: w.workspace, TaskID: task, Approvers: domain.To(of.approvers)})
		w.ok(err)
		if len(sent) != of.calls {
			t.Errorf("with the approvers %v %d wakeups were sent, want %d", of.approvers, len(sent), of.calls)
		}
		w.routed(sent)
	}
	approval := one[xid.ID](w, `SELECT id FROM approvals WHERE status = 'PENDING'`)
	told := w.claimOf(approver)
	if launch := w.launch(told); launch == nil || !strings.Contains(launch.Prompt, "Approval "+string(approval)+" asks:") {
		t.Errorf("the approver is not told what to decide: %+v", launch)
	}
	if n := one[int](w, `SELECT count(*) FROM inbox_items WHERE subject_id = $1 AND resolved_at IS NULL`, approval); n != 1 {
		t.Errorf("%d inbox items", n)
	}
	w.finishAll()
	if _, _, err := w.Decide(t.Context(), Decide{WorkspaceID: w.workspace, ApprovalID: approval, AgentID: a, Status: domain.ApprovalStatusApproved}); userCode(err) != domain.UserErrorCodeInvalid {
		t.Errorf("an agent that is no approver decided: %v", err)
	}
	sent, _, err := w.Decide(t.Context(), Decide{WorkspaceID: w.workspace, ApprovalID: approval, AgentID: approver, Status: domain.ApprovalStatusRejected, Note: "not yet"})
	w.ok(err)
	w.wantState(task, domain.TaskStateInProgress)
	w.wantSources(w.routed(sent), domain.WakeupSourceComment)
	if got := one[string](w, `SELECT body FROM comments WHERE task_id = $1`, task); got != "not yet" {
		t.Errorf("the note is %q", got)
	}
	w.finishAll()
	w.moveTo(task, domain.TaskStateDone)
	approval = one[xid.ID](w, `SELECT id FROM approvals WHERE status = 'PENDING'`)
	_, _, err = w.Decide(t.Context(), Decide{WorkspaceID: w.workspace, ApprovalID: approval, UserID: "ann", Status: domain.ApprovalStatusApproved})
	w.ok(err)
	w.wantState(task, domain.TaskStateDone)
	if n := one[int](w, `SELECT count(*) FROM inbox_items WHERE kind = 'APPROVAL_REQUEST' AND resolved_at IS NULL`); n != 0 {
		t.Errorf("%d inbox items are open", n)
	}
	if _, _, err := w.Decide(t.Context(), Decide{WorkspaceID: w.workspace, ApprovalID: approval, Status: domain.ApprovalStatusRejected}); userCode(err) != domain.UserErrorCodeInvalidState {
		t.Errorf("decided twice: %v", err)
	}
}

func TestResultActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent("a"), w.agent("b")
	task := w.task("Plan", assignedTo(a))
	claimed := w.claimOne()
	w.start(claimed)
	list := []any{
		map[string]any{"type": "comment", "body": "done so far"},
		map[string]any{"type": "create_subtask", "title": "Build", "assignee": string(b)},
		map[string]any{"type": "request_approval", "question": "May I?"},
		map[string]any{"type": "self_wake", "reason": "look again"},
		map[string]any{"type": "dance"},
		map[string]any{"type": "decide_approval", "approval_id": "apr_x", "approved": true},
		map[string]any{"type": "move_task", "state": "IN_PROGRESS"},
	}
	w.ok(w.Finish(t.Context(), claimed.Attempt, Success{Result: map[string]any{"summary": "ok", "actions": list}}))
	w.wantState(task, domain.TaskStateInProgress)
	if n := one[int](w, `SELECT count(*) FROM comments WHERE author_agent_id = $1`, a); n != 1 {
		t.Errorf("%d comments", n)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE agent_id = $1 AND source IN ('COMMENT', 'TASK_ASSIGNED') AND run_id IS NULL`, a); n != 0 {
		t.Errorf("C223: its own change woke the agent %d times", n)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE agent_id = $1 AND source = 'SELF' AND hops = 1`, a); n != 1 {
		t.Errorf("%d self wakes", n)
	}
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE agent_id = $1 AND source = 'TASK_ASSIGNED'`, b); n != 1 {
		t.Errorf("%d assignments of the subtask", n)
	}
	if got := one[string](w, `SELECT string_agg(x->>'done', ',') FROM run_events e, jsonb_array_elements(e.data->'actions') x WHERE e.run_id = $1 AND e.kind = 'FINISHED'`, claimed.RunID); got != "true,true,true,true,false,false,true" {
		t.Errorf("done: %s", got)
	}
	w.sound()
}

// What an agent writes by its actions is held to the bounds of what it may write by the API.
func TestTheTextsOfActionsHaveTheBoundsOfTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, approver := w.agent("a"), w.agent("approver")
	task := w.task("Plan", assignedTo(a))
	asked, _, err := w.RequestApproval(t.Context(), RequestApproval{WorkspaceID: w.workspace, TaskID: task, AgentID: approver, Question: "May it?"})
	w.ok(err)
	w.sql(`INSERT INTO task_approvers (task_id, agent_id) VALUES ($1, $2)`, task, a)
	long := strings.Repeat("x", 64<<10+1)
	many := make([]any, 101)
	for i := range many {
		many[i] = string(xid.New("tsk"))
	}
	list := []any{
		map[string]any{"type": "comment", "body": long},
		map[string]any{"type": "move_task", "state": "IN_REVIEW", "note": long},
		map[string]any{"type": "request_approval", "question": long},
		map[string]any{"type": "request_approval", "question": " "},
		map[string]any{"type": "decide_approval", "approval_id": string(asked.ID), "approved": true, "note": long},
		map[string]any{"type": "create_subtask", "title": strings.Repeat("é", 201)},
		map[string]any{"type": "create_subtask", "title": "t", "description": long},
		map[string]any{"type": "create_subtask", "title": "t", "blocked_by": many},
		map[string]any{"type": "create_subtask", "title": "t", "assignee": long},
		map[string]any{"type": "self_wake", "reason": long},
		map[string]any{"type": "self_wake", "reason": "x", "payload": map[string]any{"x": long}},
		map[string]any{"type": "decide_approval", "approval_id": long, "approved": true},
		map[string]any{"type": long},
	}
	claimed := w.claimOne()
	w.start(claimed)
	before := one[string](w, written)
	w.ok(w.Finish(t.Context(), claimed.Attempt, Success{Result: map[string]any{"summary": "ok", "actions": list}}))
	if after := one[string](w, written); after != before {
		t.Errorf("the actions wrote: %s, before: %s", after, before)
	}
	const problems = `SELECT count(*) FROM run_events e, jsonb_array_elements(e.data->'actions') x
WHERE e.run_id = $1 AND e.kind = 'FINISHED' AND NOT (x->>'done')::boolean AND x->>'problem' NOT LIKE 'rouse could not%' AND length(x->>'problem') < 600 AND length(x::text) < 1000`
	if n := one[int](w, problems, claimed.RunID); n != len(list) {
		t.Errorf("%d of %d actions are refused with a short reason: %s", n, len(list), one[string](w, `SELECT left(data::text, 5000) FROM run_events WHERE run_id = $1 AND kind = 'FINISHED'`, claimed.RunID))
	}
	w.sound()
}

// written counts what actions write.
const written = `SELECT concat_ws(' ', (SELECT count(*) FROM comments), (SELECT count(*) FROM tasks), (SELECT count(*) FROM tasks WHERE state = 'IN_REVIEW'),
  (SELECT count(*) FROM approvals WHERE status = 'PENDING'), (SELECT count(*) FROM wakeup_requests WHERE source = 'SELF'))`

func TestARoutineTaskCompletesWithItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("a")
	routine, err := w.CreateRoutine(t.Context(), CreateRoutine{WorkspaceID: w.workspace, Name: "Daily", AssigneeID: a,
		ConcurrencyPolicy: domain.ConcurrencyPolicySkipIfActive, CatchUpPolicy: domain.CatchUpPolicySkipMissed, CatchUpMax: 1})
	w.ok(err)
	fire := xid.New("rrn")
	w.sql(`INSERT INTO routine_runs (id, workspace_id, causation_id, routine_id, source, dispatch_fingerprint, started_at, status, variables, missed_ticks, missed_truncated)
VALUES ($1, $2, 'cau_1', $3, 'CRON', 'f', now(), 'RECEIVED', '{}', 0, false)`, fire, w.workspace, routine.ID)
	task := xid.New("tsk")
	w.ok(w.inTx(t.Context(), func(x *tx) error {
		if _, err := x.lockLane(t.Context(), a); err != nil {
			return err
		}
		return x.createRoutineTasks(t.Context(), []routineTask{{by: system("cron"), id: task, workspaceID: w.workspace, routineRunID: fire, assigneeID: a, causationID: "cau_1", title: "Daily"}})
	}))
	request := one[xid.ID](w, `SELECT id FROM wakeup_requests WHERE routine_run_id = $1`, fire)
	w.route(a)
	w.wantRequest(request, domain.WakeupStatusQueued)
	claimed := w.claimOne()
	w.start(claimed)
	w.finish(claimed)
	w.wantState(task, domain.TaskStateDone)
	if got := one[string](w, `SELECT status FROM routine_runs WHERE id = $1`, fire); got != "DONE" {
		t.Errorf("the fire is %s", got)
	}
	w.sound()
}

func TestFiveCommentsDuringARunGiveOneMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.window(time.Minute)
	a := w.agent("a")
	task := w.task("Build", assignedTo(a))
	w.sql(`UPDATE runs SET parked_until = now() - interval '1 second' WHERE parked_reason = 'WINDOW'`)
	claimed := w.claimOne()
	w.start(claimed)
	for range 5 {
		w.commentOn(task)
	}
	w.finish(claimed)
	if n := one[int](w, `SELECT coalesced_count FROM runs WHERE status = 'QUEUED'`); n != 5 {
		t.Errorf("C57: coalesced_count %d, want 5", n)
	}
	w.sound()
}

// TestATaskThatLeavesTheLoopWhileItWaitsIsStillTold: its assignment was queued while the loop was to act on it, and goes on
// when the last blocker ends, without a repair.
func TestATaskThatLeavesTheLoopWhileItWaitsIsStillTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("a")
	board := must(w, first(w.CreateWorkflow(t.Context(), CreateWorkflow{WorkspaceID: w.workspace, Plan: domain.WorkflowPlan{Name: "Board", Kind: domain.WorkflowKindKanban,
		Steps: []domain.StepPlan{{Name: "Any", State: domain.TaskStateTodo}}}})), nil).ID
	project, blocker := w.project("p"), w.task("First")
	task := w.task("Second", assignedTo(a), func(in *CreateTask) {
		in.WorkflowID, in.ProjectID, in.BlockedBy = board, project, []xid.ID{blocker}
	})
	if got := one[string](w, `SELECT parked_reason FROM runs`); got != "TASK_BLOCKED" {
		t.Fatalf("the run waits for %s", got)
	}
	_, _, err := w.UpdateTask(t.Context(), UpdateTask{WorkspaceID: w.workspace, TaskID: task, ProjectID: domain.Change[string]{Set: true}})
	w.ok(err)
	w.wantSources(w.moveTo(blocker, domain.TaskStateDone), domain.WakeupSourceTaskBlockersResolved)
	w.finishAll()
	if got := one[int](w, `SELECT count(*) FROM runs WHERE outcome = 'processed'`); got != 1 {
		t.Errorf("%d runs were launched, want the one that waited", got)
	}
	w.moveTo(blocker, domain.TaskStateTodo)
	_, err = w.SetTaskBlockers(t.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: task, BlockedBy: []xid.ID{blocker}})
	w.ok(err)
	w.wantSources(w.moveTo(blocker, domain.TaskStateDone)) // nothing waits any more, and the loop is to leave it alone
	w.sound()
}

func TestParticipantsThatAreNotNamedStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent("a"), w.agent("b")
	task := w.task("Build")
	lists := func() string {
		return one[string](w, `SELECT (SELECT count(*) FROM task_reviewers) || ' ' || (SELECT count(*) FROM task_approvers)`)
	}
	set := func(in SetTaskParticipants) {
		in.WorkspaceID, in.TaskID = w.workspace, task
		_, _, err := w.SetTaskParticipants(t.Context(), in)
		w.ok(err)
	}
	for _, c := range []struct {
		name string
		in   SetTaskParticipants
		want string
	}{
		{"both are set", SetTaskParticipants{Reviewers: domain.To([]xid.ID{a, b}), Approvers: domain.To([]xid.ID{a})}, "2 1"},
		{"none is named", SetTaskParticipants{}, "2 1"},
		{"approvers alone", SetTaskParticipants{Approvers: domain.To([]xid.ID{a, b})}, "2 2"},
		{"reviewers are cleared", SetTaskParticipants{Reviewers: domain.Change[[]xid.ID]{Set: true}}, "0 2"},
		{"an empty list", SetTaskParticipants{Approvers: domain.To([]xid.ID{})}, "0 0"},
	} {
		if set(c.in); lists() != c.want {
			t.Errorf("%s: %s reviewers and approvers, want %s", c.name, lists(), c.want)
		}
	}
}

func TestNobodyApprovesItsOwnWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent("a"), w.agent("b")
	task := w.task("Spec", assignedTo(a), func(in *CreateTask) { in.RequiresApproval = true })
	w.finishAll()
	_, _, err := w.SetTaskParticipants(t.Context(), SetTaskParticipants{WorkspaceID: w.workspace, TaskID: task, Approvers: domain.To([]xid.ID{a, b})})
	w.ok(err)
	w.moveTo(task, domain.TaskStateDone)
	if got := one[string](w, `SELECT string_agg(agent_id, ' ') FROM wakeup_requests WHERE basis = 'APPROVER'`); got != string(b) {
		t.Errorf("called to decide: %s, want %s alone", got, b)
	}
	d := Decide{WorkspaceID: w.workspace, ApprovalID: one[xid.ID](w, `SELECT id FROM approvals`), AgentID: a, Status: domain.ApprovalStatusApproved}
	if _, _, err := w.Decide(t.Context(), d); userCode(err) != domain.UserErrorCodeInvalid {
		t.Errorf("S5.4 the assignee approved its own work: %v", err)
	}
	d.AgentID = b
	_, _, err = w.Decide(t.Context(), d)
	w.ok(err)
	w.wantState(task, domain.TaskStateDone)
	w.sound()
}

// A prompt names by its id alone what the run's agent named as a blocker by itself.
func TestAPromptDoesNotTellWhatItsAgentNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	foreign := w.task("Foreign plans")
	w.wakeOnly(agent, w.task("Work", assignedTo(agent)))
	c := w.claimOne()
	w.start(c)
	w.finishAsking(c, map[string]any{"type": "create_subtask", "title": "First"},
		map[string]any{"type": "create_subtask", "title": "Child", "blocked_by": []any{"#1", string(foreign)}})
	child := one[xid.ID](w, `SELECT id FROM tasks WHERE title = 'Child'`)
	w.wakeOnly(agent, child)
	prompt := w.start(w.claimOne()).Prompt
	if !strings.Contains(prompt, "First (") || !strings.Contains(prompt, string(foreign)) || strings.Contains(prompt, "Foreign plans") {
		t.Errorf("the prompt says\n%s", prompt)
	}
}
