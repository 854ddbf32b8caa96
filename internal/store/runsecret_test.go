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
