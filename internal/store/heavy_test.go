package store

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// A heavy fire is active as long as its task, whatever becomes of its run (SPEC S4.6, C211).
func TestAHeavyFireEndsWithItsTaskAndNotWithItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.routine(agent, func(r *CreateRoutine) {
		r.TaskTemplate = &domain.TaskTemplate{Title: "Review {{datetime}}", RequiresApproval: true}
	})
	routine := one[xid.ID](w, `SELECT id FROM routines`)
	fire := func() domain.RoutineRunStatus {
		t.Helper()
		made, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: routine})
		w.ok(err)
		w.route(agent)
		return one[domain.RoutineRunStatus](w, `SELECT status FROM routine_runs WHERE id = $1`, made.ID)
	}
	if got := fire(); got != domain.RoutineRunStatusTaskCreated {
		t.Fatalf("the first fire is %s", got)
	}
	claimed := w.claimOne()
	w.start(claimed)
	w.finish(claimed)
	if got := one[string](w, `SELECT state FROM tasks`); got != "IN_REVIEW" {
		t.Fatalf("the task is %s", got)
	}
	if got := fire(); got != domain.RoutineRunStatusCoalesced {
		t.Errorf("C211 beside a task that waits for its approval a fire is %s", got)
	}
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE status = 'TASK_CREATED' AND completed_at IS NULL`); n != 1 {
		t.Error("the first fire ended with its run")
	}
	heavy := one[xid.ID](w, `SELECT id FROM tasks`)
	w.moveTo(heavy, domain.TaskStateCancelled)
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE status = 'CANCELLED' AND completed_at IS NOT NULL AND task_id = $1`, heavy); n != 1 {
		t.Error("the first fire did not end with its task")
	}
	w.moveTo(heavy, domain.TaskStateInProgress)
	if got := fire(); got != domain.RoutineRunStatusCoalesced {
		t.Errorf("beside a task that is worked on again a fire is %s", got)
	}
	w.moveTo(heavy, domain.TaskStateCancelled)
	if got := fire(); got != domain.RoutineRunStatusTaskCreated {
		t.Errorf("C53 beside a task that was cancelled a fire is %s", got)
	}
}

// heavyWorld is a heavy routine with its agent.
type heavyWorld struct {
	*world
	agent, routine xid.ID
}

func newHeavyWorld(t *testing.T, change ...func(*CreateRoutine)) *heavyWorld {
	w := newWorld(t)
	agent := w.agent("worker")
	return &heavyWorld{w, agent, w.heavyRoutine(agent, func(r *CreateRoutine) {
		for _, f := range change {
			f(r)
		}
	})}
}

// fires fires the routine and checks the disposition.
func (w *heavyWorld) fires(want domain.RoutineRunStatus) xid.ID {
	w.Helper()
	id, got := w.fireOf(w.routine, w.agent)
	if got != want {
		w.Errorf("the fire is %s, want %s", got, want)
	}
	return id
}

// wantFire checks how a fire ended, as "STATUS reason ended".
func (w *heavyWorld) wantFire(when string, id xid.ID, want string) {
	w.Helper()
	if got := one[string](w.world, `SELECT status || coalesce(' ' || skip_reason, '') || CASE WHEN completed_at IS NULL THEN '' ELSE ' ended' END FROM routine_runs WHERE id = $1`, id); got != want {
		w.Errorf("%s the fire is %q, want %q", when, got, want)
	}
}

func (w *heavyWorld) failForGood(c Claimed) {
	w.Helper()
	w.ok(w.Fail(w.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "no way", Permanent: true}))
}

// S4.6: however the last run of a heavy fire's task ends badly, the fire ends so, too, its task stays open, and the next fire
// makes a new one.
func TestAHeavyFireWhoseRunGaveUpSilencesNoLaterOne(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end  func(w *heavyWorld)
		want string
	}{
		"its run gave up":                        {func(w *heavyWorld) { c := w.claimOne(); w.start(c); w.failForGood(c) }, "FAILED ended"},
		"nobody said how to execute it":          {func(w *heavyWorld) { w.sql(`UPDATE agents SET executor = NULL`); w.startsNothing(w.claimOne()) }, "FAILED ended"},
		"a person cancelled it before its claim": {func(w *heavyWorld) { w.ok(w.CancelRun(w.Context(), w.workspace, w.onlyRun(), "")) }, "CANCELLED CANCELLED_BY_USER ended"},
		"a person cancelled it before its launch": {func(w *heavyWorld) {
			c := w.claimOne()
			w.ok(w.CancelRun(w.Context(), w.workspace, c.RunID, ""))
			w.startsNothing(c)
		}, "CANCELLED CANCELLED_BY_USER ended"},
		"a person cancelled it while it worked": {func(w *heavyWorld) {
			c := w.claimOne()
			w.start(c)
			w.ok(w.CancelRun(w.Context(), w.workspace, c.RunID, ""))
			w.ok(w.Cancelled(w.Context(), c.Attempt, Unfinished{}))
		}, "CANCELLED CANCELLED_BY_USER ended"},
		"its task was taken from everybody": {func(w *heavyWorld) { w.assign(w.onlyTask(), "") }, "CANCELLED ASSIGNEE_CHANGED ended"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHeavyWorld(t)
			first := w.fires(domain.RoutineRunStatusTaskCreated)
			w.fires(domain.RoutineRunStatusCoalesced)
			row.end(w)
			w.wantFire("after its end", first, row.want)
			w.wantState(w.onlyTask(), domain.TaskStateInProgress)
			w.fires(domain.RoutineRunStatusTaskCreated)
			w.sound()
		})
	}
}

// startsNothing starts a claimed run that is settled instead.
func (w *heavyWorld) startsNothing(c Claimed) {
	w.Helper()
	if launch, err := w.Start(w.Context(), c.Attempt); err != nil || launch != nil {
		w.Fatalf("started %v: %v", launch, err)
	}
}

func (w *heavyWorld) onlyRun() xid.ID { return one[xid.ID](w.world, `SELECT id FROM runs`) }
func (w *heavyWorld) onlyTask() xid.ID {
	return one[xid.ID](w.world, `SELECT id FROM tasks ORDER BY id LIMIT 1`)
}

// An agent that is deleted ends its fires with what was queued, unrouted requests, too.
func TestADeletedAgentsHeavyFiresEnd(t *testing.T) {
	t.Parallel()
	for name, routed := range map[string]bool{"queued": true, "unrouted": false} {
		t.Run(name, func(t *testing.T) {
			w := newHeavyWorld(t)
			made, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: w.routine})
			w.ok(err)
			if routed {
				w.route(w.agent)
			}
			w.ok(w.DeleteAgent(t.Context(), w.workspace, w.agent))
			w.wantFire("after the deletion", made.ID, "CANCELLED AGENT_DELETED ended")
		})
	}
}

// S4.6: while something explains that the task waits, the fire is active, and the inbox says so once.
func TestFiresThatWaitForAHeavyTaskAreToldOnce(t *testing.T) {
	t.Parallel()
	for name, explain := range map[string]func(w *heavyWorld, c Claimed){
		"BLOCKED":   func(w *heavyWorld, c Claimed) { w.finishAsking(c, moveAction("BLOCKED")) },
		"IN_REVIEW": func(w *heavyWorld, c Claimed) { w.finishAsking(c, moveAction("IN_REVIEW")) },
		"an approval": func(w *heavyWorld, c Claimed) {
			w.finishAsking(c, map[string]any{"type": "request_approval", "question": "May I?"})
		},
		"a blocker, and its run gave up": func(w *heavyWorld, c Claimed) {
			_, err := w.SetTaskBlockers(w.Context(), SetTaskBlockers{WorkspaceID: w.workspace, TaskID: w.onlyTask(), BlockedBy: []xid.ID{w.task("first")}})
			w.ok(err)
			w.failForGood(c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHeavyWorld(t)
			first := w.fires(domain.RoutineRunStatusTaskCreated)
			c := w.claimOne()
			w.start(c)
			w.fires(domain.RoutineRunStatusCoalesced)
			if n := one[int](w.world, `SELECT count(*) FROM inbox_items WHERE kind = 'FIRES_WAIT'`); n != 0 {
				t.Errorf("a fire that is worked on is called waiting")
			}
			explain(w, c)
			w.wantFire("while it waits", first, "TASK_CREATED")
			for range 3 {
				held := w.fires(domain.RoutineRunStatusCoalesced)
				if got := one[xid.ID](w.world, `SELECT held_by_id FROM routine_runs WHERE id = $1`, held); got != first {
					t.Errorf("it is held by %q, want %q", got, first)
				}
				w.sql(`UPDATE inbox_items SET resolved_at = clock_timestamp() WHERE kind = 'FIRES_WAIT'`)
			}
			if got := one[string](w.world, `SELECT string_agg(subject_id || ' ' || title, ';') FROM inbox_items WHERE kind = 'FIRES_WAIT'`); !strings.HasPrefix(got, string(w.routine)+" Fires of routine heartbeat") || strings.Contains(got, ";") {
				t.Errorf("the inbox says %q", got)
			}
			w.moveTo(w.onlyTask(), domain.TaskStateDone)
			w.fires(domain.RoutineRunStatusTaskCreated)
		})
	}
}

// S4.6, S6.3: what a hold drops waits for the resume, with its fire: later fires make no pile of tasks that a resume would
// start at once. A retry makes a fire open again that had ended.
func TestAHeavyFireOfAHeldAgentWaitsForTheResume(t *testing.T) {
	t.Parallel()
	w := newHeavyWorld(t)
	first := w.fires(domain.RoutineRunStatusTaskCreated)
	w.pause(w.agent)
	w.claim(1)
	w.wantFire("while the agent is held", first, "SKIPPED AGENT_INACTIVE")
	w.fires(domain.RoutineRunStatusCoalesced)
	w.resume(w.agent)
	w.wantFire("after the resume", first, "TASK_CREATED")
	w.route(w.agent)
	c := w.claimOne()
	w.start(c)
	w.failForGood(c)
	w.wantFire("after the failure", first, "FAILED ended")
	w.commentOn(w.onlyTask())
	w.wantFire("when a comment is to be answered", first, "TASK_CREATED")
	w.fires(domain.RoutineRunStatusCoalesced)
	w.sql(`UPDATE agent_lanes SET eligible_at = clock_timestamp()`)
	c = w.claimOne()
	w.start(c)
	w.finish(c)
	w.wantFire("after the work", first, "DONE ended")
}

// A fire that a version before left open, with a task whose run ended long ago, ends by the repair; the next fire need not wait
// for that.
func TestHeavyFiresOfEarlierVersionsHeal(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{
		`status = 'FAILED', end_reason = 'RETRIES_EXHAUSTED', error_message = 'no way'`:  "FAILED ended",
		`status = 'CANCELLED', end_reason = 'CANCELLED_BY_USER'`:                         "CANCELLED CANCELLED_BY_USER ended",
		`status = 'FINISHED', outcome = 'agent_inactive', end_reason = 'AGENT_INACTIVE'`: "SKIPPED AGENT_INACTIVE ended",
		`status = 'FINISHED', outcome = 'processed'`:                                     "TASK_CREATED",
	} {
		t.Run(want, func(t *testing.T) {
			w := newHeavyWorld(t)
			first := w.fires(domain.RoutineRunStatusTaskCreated)
			w.sql(`UPDATE runs SET parked_reason = NULL, finished_at = clock_timestamp() - interval '9 days', ` + how)
			w.sql(`UPDATE wakeup_requests SET status = 'FINISHED', finished_at = clock_timestamp() - interval '9 days', end_reason = (SELECT end_reason FROM runs)`)
			w.sql(`UPDATE agent_lanes SET head_id = NULL, head_at = NULL`)
			w.fires(domain.RoutineRunStatusTaskCreated)
			done, err := w.Repair(t.Context())
			w.ok(err)
			w.wantFire("after the repair", first, want)
			if healed := want != "TASK_CREATED"; done.Fires == 1 != healed {
				t.Errorf("%d fires were repaired", done.Fires)
			}
			again, err := w.Repair(t.Context())
			w.ok(err)
			if again != (Repairs{}) {
				t.Errorf("there is something left to repair: %+v", again)
			}
		})
	}
}
