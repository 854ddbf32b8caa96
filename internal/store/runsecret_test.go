package store

import (
	"fmt"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// keyed is a command of this process that is given a sealed value.
func keyed(sealed string) domain.ExecutorSpec {
	return domain.ExecutorSpec{Command: &domain.CommandSpec{Argv: []string{"x"}, Environment: []domain.SealedValue{{Name: "KEY", Sealed: sealed}}}}
}

// leaseOf is the live attempt of a run.
func (w *world) leaseOf(run xid.ID) Attempt {
	w.Helper()
	a := Attempt{RunID: run}
	w.ok(w.db.QueryRowContext(w.Context(), `SELECT attempt, owner FROM attempt_leases WHERE run_id = $1`, run).Scan(&a.Number, &a.Owner))
	return a
}

// unpark lets a run that waits for its retry be due.
func (w *world) unpark(run xid.ID) {
	w.Helper()
	w.ok(errOf(w.RetryRun(w.Context(), RetryRun{WorkspaceID: w.workspace, RunID: run})))
}

// rotate gives an agent of this process another value.
func (w *world) rotate(agent xid.ID, sealed string) {
	w.Helper()
	w.ok(errOf(w.UpdateAgent(w.Context(), UpdateAgent{WorkspaceID: w.workspace, AgentID: agent, Executor: domain.To(keyed(sealed))})))
}

// formerOf are the values of earlier attempts that a launch masks, in their order.
func formerOf(l *Launch) (values string) {
	for _, set := range l.Former {
		for _, v := range set.Values {
			values += v.Sealed + " "
		}
	}
	return values
}

// SPEC S7.6: a later attempt is launched with the values of the earlier ones to be masked; they are gone with the run, however it ends.
func TestValuesOfEarlierAttemptsAreKeptUntilTheRunEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, c Claimed){
		"well": func(w *world, c Claimed) { w.ok(w.Finish(w.Context(), c.Attempt, Success{})) },
		"badly": func(w *world, c Claimed) {
			w.ok(w.Fail(w.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "no", Permanent: true}))
		},
		"cancelled while live": func(w *world, c Claimed) {
			w.ok(w.CancelRun(w.Context(), w.workspace, c.RunID, ""))
			w.ok(w.Cancelled(w.Context(), c.Attempt, Unfinished{}))
		},
		"cancelled while it waits": func(w *world, c Claimed) {
			w.ok(w.HandBack(w.Context(), c.Attempt, Unfinished{}))
			w.ok(w.CancelRun(w.Context(), w.workspace, c.RunID, ""))
		},
		"with its agent": func(w *world, c Claimed) {
			w.ok(w.HandBack(w.Context(), c.Attempt, Unfinished{}))
			w.ok(w.DeleteAgent(w.Context(), w.workspace, w.run(c.RunID).agentID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker", func(in *CreateAgent) { in.Executor = new(keyed("v1")) })
			w.wake(agent)
			c := w.claimOne()
			if l := w.start(c); len(l.Former) != 0 {
				t.Errorf("the first attempt masks %+v", l.Former)
			}
			for _, sealed := range []string{"v2", "v2", "v3"} {
				w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "no"}))
				w.rotate(agent, sealed)
				w.unpark(c.RunID)
				c = w.claimOne()
				w.start(c)
			}
			w.ok(w.HandBack(t.Context(), c.Attempt, Unfinished{}))
			c = w.claimOne()
			if got := formerOf(w.start(c)); got != "v1 v2 v3 " {
				t.Errorf("the fifth attempt masks %q", got)
			}
			if n := one[int](w, `SELECT count(*) FROM run_secrets`); n != 1 {
				t.Errorf("%d runs have values, want 1", n)
			}
			end(w, c)
			if n := one[int](w, `SELECT count(*) FROM run_secrets`); n != 0 || w.run(c.RunID).status == domain.RunStatusQueued {
				t.Errorf("it is %s, and %d runs have values", w.run(c.RunID).status, n)
			}
			w.sound()
		})
	}
}

func TestOfManyFormerValuesTheNewestAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker", func(in *CreateAgent) { in.Executor = new(keyed("v0")) })
	w.wake(agent)
	for i := range 25 {
		c := w.claimOne()
		w.start(c)
		w.rotate(agent, fmt.Sprint("v", i+1))
		w.ok(w.HandBack(t.Context(), c.Attempt, Unfinished{}))
	}
	if got := one[string](w, `SELECT jsonb_array_length(sets) || (sets->0->'values'->0->>'sealed') || (sets->-1->'values'->0->>'sealed') FROM run_secrets`); got != "20v5v24" {
		t.Errorf("kept are %s, want 20 from v5 to v24", got)
	}
}

// SPEC S7.6: a run that resumes a session is launched with the values of all that the session was told, to be masked, whatever
// replaced them meanwhile; they are gone when the session is resumed no more.
func TestWhatASessionWasToldIsMaskedInItsLaterRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker", func(in *CreateAgent) { in.Executor = new(keyed("v1")) })
	task := w.task("Task")
	run := func() (Claimed, string) {
		t.Helper()
		w.wakeOnly(agent, task)
		c := w.claimOne()
		return c, formerOf(w.start(c))
	}
	masks := func(c Claimed, want string) {
		t.Helper()
		if got := w.secretsOf(c.RunID, agent); got != want {
			t.Errorf("of run %s %q is masked, want %q", c.RunID, got, want)
		}
	}
	first, former := run()
	if former != "" {
		t.Errorf("the first run of a task masks %q", former)
	}
	w.ok(w.Finish(t.Context(), first.Attempt, Success{SessionID: "s-1", Resumable: true}))
	w.rotate(agent, "v2")
	second, former := run()
	if former != "v1 " {
		t.Errorf("the second run masks %q", former)
	}
	masks(second, "v1 v2")
	w.ok(w.Fail(t.Context(), second.Attempt, Failure{Code: domain.RunErrorCodeTimeout, Message: "no", Permanent: true})) // it names no session
	w.rotate(agent, "v3")
	third, former := run()
	if former != "v1 v2 " {
		t.Errorf("the third run masks %q", former)
	}
	w.ok(w.Finish(t.Context(), third.Attempt, Success{SessionID: "s-2", Resumable: true})) // the agent's program goes on under another name
	w.rotate(agent, "v4")
	fourth, former := run()
	if former != "v1 v2 v3 " {
		t.Errorf("the run after a fork of the session masks %q", former)
	}
	masks(fourth, "v1 v2 v3 v4")
	w.ok(w.Finish(t.Context(), fourth.Attempt, Success{SessionID: "s-2", Resumable: true}))
	w.sound()
	w.sql(`UPDATE agents SET session_max_runs = 1`)
	fifth, former := run()
	if former != "" {
		t.Errorf("a run in a session of its own masks %q", former)
	}
	masks(fifth, "v4")
	if n := one[int](w, `SELECT count(*) FROM task_sessions WHERE secrets IS NOT NULL`); n != 0 {
		t.Errorf("%d sessions that are over have values", n)
	}
	w.sound()
}
