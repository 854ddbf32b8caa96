package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// pullSpec and echoSpec are executors as a change sets them.
func pullSpec(queue string) domain.Change[domain.ExecutorSpec] {
	return domain.Change[domain.ExecutorSpec]{Set: true, Value: &domain.ExecutorSpec{Pull: &domain.PullSpec{Queue: queue, Lease: time.Minute}}}
}

func echoSpec() domain.Change[domain.ExecutorSpec] {
	return domain.Change[domain.ExecutorSpec]{Set: true, Value: &domain.ExecutorSpec{Echo: &domain.EchoSpec{}}}
}

// executorChange is a way to give the executor of a run its place, and then to change it to one that rouse executes itself.
type executorChange struct {
	name        string
	pull, leave func(w *world, agent, task, project xid.ID) error
}

func executorChanges() []executorChange {
	ofProject := func(spec domain.Change[domain.ExecutorSpec]) func(*world, xid.ID, xid.ID, xid.ID) error {
		return func(w *world, _, _, project xid.ID) error {
			_, err := w.UpdateProject(w.Context(), UpdateProject{WorkspaceID: w.workspace, ProjectID: project, Executor: spec})
			return err
		}
	}
	ofTask := func(spec domain.Change[domain.ExecutorSpec]) func(*world, xid.ID, xid.ID, xid.ID) error {
		return func(w *world, _, task, _ xid.ID) error {
			_, _, err := w.UpdateTask(w.Context(), UpdateTask{WorkspaceID: w.workspace, TaskID: task, Executor: spec})
			return err
		}
	}
	ofAgent := func(spec domain.Change[domain.ExecutorSpec]) func(*world, xid.ID, xid.ID, xid.ID) error {
		return func(w *world, agent, _, _ xid.ID) error {
			_, err := w.UpdateAgent(w.Context(), UpdateAgent{WorkspaceID: w.workspace, AgentID: agent, Executor: spec})
			return err
		}
	}
	ofWorkspace := func(spec domain.Change[domain.ExecutorSpec]) func(*world, xid.ID, xid.ID, xid.ID) error {
		return func(w *world, _, _, _ xid.ID) error {
			_, _, err := w.UpdateSettings(w.Context(), UpdateSettings{WorkspaceID: w.workspace, DefaultExecutor: spec})
			return err
		}
	}
	return []executorChange{
		{"of its task", ofTask(pullSpec("gpu")), ofTask(echoSpec())},
		{"of its agent", ofAgent(pullSpec("gpu")), ofAgent(echoSpec())},
		{"of its project", ofProject(pullSpec("gpu")), ofProject(echoSpec())},
		{"of its workspace", ofWorkspace(pullSpec("gpu")), ofWorkspace(echoSpec())},
		{"by another project of its task", ofProject(pullSpec("gpu")), func(w *world, _, task, _ xid.ID) error {
			other := xid.New("prj")
			_, err := w.CreateProject(w.Context(), CreateProject{WorkspaceID: w.workspace, ID: other, Name: "Elsewhere", Executor: echoSpec().Value})
			w.ok(err)
			_, _, err = w.UpdateTask(w.Context(), UpdateTask{WorkspaceID: w.workspace, TaskID: task, ProjectID: domain.Change[string]{Set: true, Value: (*string)(&other)}})
			return err
		}},
	}
}

// waitingForWorkers is a world with a run about a task that is offered to the workers of a queue, or with parked waits for
// one that never came.
func waitingForWorkers(t *testing.T, c executorChange, parked bool) (w *world, run xid.ID, leave func() error) {
	t.Helper()
	w = newWorld(t)
	agent := w.agent("bare", func(in *CreateAgent) { in.Executor = nil })
	project := w.project("Core")
	task := w.projectTask(project, "")
	w.ok(c.pull(w, agent, task, project))
	sent, _ := w.assign(task, agent)
	run = w.offered(sent[0])
	if parked {
		w.expire(run)
		done, err := w.Withdraw(t.Context(), Attempt{RunID: run, Number: 1})
		if w.ok(err); !done {
			t.Fatal("the offer was not taken back")
		}
		w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonNoWorker)
	}
	return w, run, func() error { return c.leave(w, agent, task, project) }
}

func TestAChangedExecutorFreesWhatWaitsForAWorker(t *testing.T) {
	t.Parallel()
	for _, c := range executorChanges() {
		for _, parked := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s parked %v", c.name, parked), func(t *testing.T) {
				w, run, leave := waitingForWorkers(t, c, parked)
				w.ok(leave())
				w.sound()
				if got := w.claimOne(); got.RunID != run || got.Number != 2 {
					t.Errorf("claimed %+v", got)
				}
				if row := w.run(run); row.abandonments != 0 || row.retryCount != 0 {
					t.Errorf("it counts as %d abandonments, %d failures", row.abandonments, row.retryCount)
				}
				w.sound()
			})
		}
	}
}

// Whoever changes an executor hears which runs are due by that, and the feed tells of them, each agent's in an entry of its own.
func TestWhoChangesAnExecutorHearsWhatIsDue(t *testing.T) {
	t.Parallel()
	for _, parked := range []bool{true, false} {
		w, run, _ := waitingForWorkers(t, executorChanges()[1], parked)
		agent := w.run(run).agentID
		_, moved, err := w.Store.UpdateAgent(t.Context(), UpdateAgent{WorkspaceID: w.workspace, AgentID: agent, Executor: echoSpec()})
		w.ok(err)
		if moved.Count != 1 || len(moved.Runs) != 1 || moved.Runs[0] != run {
			t.Errorf("parked %v: %+v, want %s", parked, moved, run)
		}
		const told = `SELECT string_agg(code || ' ' || actor_kind || ' ' || (data->>'agent') || ' ' || (data->>'runsDue') || ' ' || (data->>'dueRunIds'), ',') FROM activities WHERE data ? 'runsDue'`
		if got, want := one[string](w, told), fmt.Sprintf("AGENT_CHANGED SYSTEM %s 1 [%q]", agent, run); got != want {
			t.Errorf("parked %v: the feed says %s, want %s", parked, got, want)
		}
		_, moved, err = w.Store.UpdateAgent(t.Context(), UpdateAgent{WorkspaceID: w.workspace, AgentID: agent, Executor: domain.To(keyed("v1"))})
		w.ok(err)
		if moved.Count != 0 || len(moved.Runs) != 0 {
			t.Errorf("parked %v: what waits for nobody: %+v", parked, moved)
		}
	}
}

func TestAnotherExecutorOfTheSameQueueLeavesOffersAlone(t *testing.T) {
	t.Parallel()
	c := executorChanges()[1]
	w, run, _ := waitingForWorkers(t, c, true)
	w.ok(c.pull(w, w.run(run).agentID, "", ""))
	w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonNoWorker)
	if done := must(w, first(w.Repair(t.Context())), nil); done != (Repairs{}) {
		t.Errorf("repaired %+v", done)
	}
	w.wantRun(run, domain.RunStatusQueued, domain.ParkedReasonNoWorker)
}

func TestTheSweepFreesWhatWaitsForAQueueThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for name, executor := range map[string]string{
		"rouse executes it":    `{"echo": {}}`,
		"another queue does":   `{"pull": {"queue": "cpu", "lease": 60000000000}}`,
		"nobody has said who":  `null`,
		"nobody, not stored":   ``,
		"the queue is as ever": `{"pull": {"queue": "gpu", "lease": 60000000000}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w, run, _ := waitingForWorkers(t, executorChanges()[1], true)
			w.sql(`UPDATE agents SET executor = NULLIF($2, '')::jsonb WHERE id = $1`, w.run(run).agentID, executor)
			want, reason := Repairs{Offers: 1}, domain.ParkedReason("")
			if name == "the queue is as ever" {
				want, reason = Repairs{}, domain.ParkedReasonNoWorker
			}
			if done := must(w, first(w.Repair(t.Context())), nil); done != want {
				t.Errorf("repaired %+v, want %+v", done, want)
			}
			w.wantRun(run, domain.RunStatusQueued, reason)
			w.sound()
		})
	}
}

func TestAnOfferWhoseExecutorWasChangedIsDueInTime(t *testing.T) {
	t.Parallel()
	w, run, _ := waitingForWorkers(t, executorChanges()[1], false)
	w.sql(`UPDATE agents SET executor = '{"echo": {}}'`) // a change that did not come as far as the offer
	w.expire(run)
	done, err := w.Withdraw(context.Background(), Attempt{RunID: run, Number: 1})
	if w.ok(err); !done {
		t.Fatal("the offer was not taken back")
	}
	w.wantRun(run, domain.RunStatusQueued, "")
	w.sound()
}
