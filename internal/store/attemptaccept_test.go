package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// accepted is a run that an agent service has accepted, with an hour of time and a minute of grace.
func (w *world) accepted(agent xid.ID) Claimed {
	w.Helper()
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.sql(`UPDATE run_attempts SET executor = 'http' WHERE run_id = $1`, c.RunID)
	w.ok(w.Accept(w.Context(), c.Attempt, Acceptance{Left: 50 * time.Minute, Timeout: time.Hour, Grace: time.Minute}))
	return c
}

// timeUp lets the time of a lease be up.
func (w *world) timeUp(run xid.ID) {
	w.Helper()
	w.sql(`UPDATE attempt_leases SET lease_until = clock_timestamp() - interval '1 second' WHERE run_id = $1`, run)
}

func (w *world) endAccepted(a Attempt) bool {
	w.Helper()
	ended, err := w.EndAccepted(w.Context(), a)
	return must(w, ended, err)
}

// reportable says what a service that reports about an attempt would find: whether its lease stands, and whether to end.
func (w *world) reportable(a Attempt) string {
	w.Helper()
	st, err := w.Renew(w.Context(), a)
	switch {
	case errors.Is(err, ErrFenced):
		return "stale"
	case err != nil:
		w.Fatal(err)
	case st.CancelRequested:
		return "asked to end"
	}
	return "live"
}

// SPEC S7.1: no process has what a service has accepted, so that neither the death of one nor its renewals concern it.
func TestWhatAServiceHasAcceptedOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.accepted(w.agent("service"))
	left := one[time.Time](w, `SELECT lease_until FROM attempt_leases WHERE run_id = $1`, c.RunID).Sub(one[time.Time](w, `SELECT clock_timestamp()`))
	if left < 49*time.Minute || left > 50*time.Minute {
		t.Errorf("its lease ends in %s", left)
	}
	if found := must(w, first(w.Leases(t.Context(), "prc_next", w.owner.Host)), nil); len(found) != 0 {
		t.Errorf("the next process would rescue %+v", found)
	}
	states, err := w.Heartbeat(t.Context(), []Attempt{c.Attempt}, time.Second)
	if w.ok(err); len(states) != 1 || states[0].Lost || !states[0].Busy {
		t.Errorf("a late renewal of the process that called finds %+v", states)
	}
	if w.reportable(c.Attempt) != "live" {
		t.Error("its service cannot report")
	}
	if again := must(w, first(w.LeasedAttempt(t.Context(), c.RunID, 1, one[string](w, `SELECT token_digest FROM run_attempts WHERE run_id = $1`, c.RunID))), nil); again.Owner != c.Owner {
		t.Errorf("its run token stands for %+v", again)
	}
	if got := w.claim(10); len(got) != 0 {
		t.Errorf("it was claimed again: %+v", got)
	}
	w.sound()
	w.ok(w.Finish(t.Context(), c.Attempt, Success{Summary: "done"}))
	w.wantRun(c.RunID, domain.RunStatusFinished, "")
	if err := w.Accept(t.Context(), c.Attempt, Acceptance{Left: time.Hour}); !errors.Is(err, ErrFenced) {
		t.Errorf("an acceptance after the end: %v", err)
	}
	w.sound()
}

// A service that does not end in time is asked to, and ended when its grace is over, too; what it reports in the grace is taken.
func TestTheTimeOfAnAcceptedRunIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("service")
	t.Run("silent", func(t *testing.T) {
		w := w.on(t)
		c := w.accepted(agent)
		if w.endAccepted(c.Attempt) {
			t.Error("it was ended before its time")
		}
		w.timeUp(c.RunID)
		if found := must(w, first(w.Leases(t.Context(), "prc_next", "elsewhere")), nil); len(found) != 1 || !found[0].Accepted || !found[0].Expired {
			t.Errorf("the sweep finds %+v", found)
		}
		if !w.endAccepted(c.Attempt) || w.reportable(c.Attempt) != "asked to end" {
			t.Error("it was not asked to end")
		}
		if w.endAccepted(c.Attempt) {
			t.Error("its grace was not waited for")
		}
		w.timeUp(c.RunID)
		w.endAccepted(c.Attempt)
		w.wantRun(c.RunID, domain.RunStatusQueued, domain.ParkedReasonBackoff)
		if got := one[string](w, `SELECT error_code || ': ' || error_message FROM runs WHERE id = $1`, c.RunID); got != "TIMEOUT: "+domain.ServiceTimeout(time.Hour) {
			t.Errorf("it failed with %s", got)
		}
		if w.reportable(c.Attempt) != "stale" {
			t.Error("a report after the grace is taken")
		}
		w.sound()
	})
	t.Run("done late", func(t *testing.T) {
		w := w.on(t)
		c := w.accepted(w.agent("late"))
		w.timeUp(c.RunID)
		w.endAccepted(c.Attempt)
		w.ok(w.Finish(t.Context(), c.Attempt, Success{Summary: "just in time", Usage: &Usage{CostUSD: "2"}}))
		w.wantRun(c.RunID, domain.RunStatusFinished, "")
	})
	t.Run("obedient", func(t *testing.T) {
		w := w.on(t)
		c := w.accepted(w.agent("obedient"))
		w.timeUp(c.RunID)
		w.endAccepted(c.Attempt)
		w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeOther, Message: "ended as asked", Usage: &Usage{CostUSD: "2"}}))
		got := one[string](w, `SELECT error_code || ' ' || cost_usd || ' ' || error_message FROM runs WHERE id = $1`, c.RunID)
		if !strings.HasPrefix(got, "TIMEOUT 2.000000 ") || !strings.HasSuffix(got, "it said: ended as asked") {
			t.Errorf("it failed with %s", got)
		}
		w.sound()
	})
	t.Run("without grace", func(t *testing.T) {
		w := w.on(t)
		w.wake(w.agent("graceless"))
		c := w.claimOne()
		w.start(c)
		w.ok(w.Accept(t.Context(), c.Attempt, Acceptance{Left: -time.Second, Timeout: time.Second}))
		w.timeUp(c.RunID)
		w.endAccepted(c.Attempt)
		w.wantRun(c.RunID, domain.RunStatusQueued, domain.ParkedReasonBackoff)
	})
}

// A cancel gives the service its grace: heartbeats tell it to end, and what it has used is charged.
func TestACancelledServiceHasAGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("service")
	budget := w.budget(agent, "10")
	obeys := w.accepted(agent)
	clock := func() time.Time { return one[time.Time](w, `SELECT clock_timestamp()`) }
	before := clock()
	w.ok(w.CancelRun(t.Context(), w.workspace, obeys.RunID, "enough"))
	after := clock()
	w.wantRun(obeys.RunID, domain.RunStatusClaimed, "")
	if w.reportable(obeys.Attempt) != "asked to end" {
		t.Error("its heartbeat does not say that the run was cancelled")
	}
	ends := one[time.Time](w, `SELECT lease_until FROM attempt_leases WHERE run_id = $1`, obeys.RunID)
	if ends.Before(before.Add(time.Minute)) || ends.After(after.Add(time.Minute)) {
		t.Errorf("its grace ends %s after the cancel", ends.Sub(before))
	}
	w.ok(w.CancelRun(t.Context(), w.workspace, obeys.RunID, "")) // which lengthens nothing
	w.ok(w.Fail(t.Context(), obeys.Attempt, Failure{Code: domain.RunErrorCodeOther, Message: "ended as asked", Usage: &Usage{CostUSD: "3"}}))
	w.wantRun(obeys.RunID, domain.RunStatusCancelled, "")
	w.wantLedger("what it had used", budget, "3 spent, 0 reserved, 0 told")
	w.sound()

	silent := w.accepted(agent)
	w.ok(w.CancelRun(t.Context(), w.workspace, silent.RunID, ""))
	if w.endAccepted(silent.Attempt) {
		t.Error("its grace was not waited for")
	}
	w.timeUp(silent.RunID)
	if !w.endAccepted(silent.Attempt) {
		t.Error("it was not ended")
	}
	w.wantRun(silent.RunID, domain.RunStatusCancelled, "")
	if w.reportable(silent.Attempt) != "stale" {
		t.Error("a report after the grace is taken")
	}
	w.sound()
}

// A cancel that comes before the acceptance is told by the first heartbeat; so is that of a deleted agent.
func TestWhoAsksAServiceToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("service")
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.ok(w.CancelRun(t.Context(), w.workspace, c.RunID, ""))
	w.ok(w.Accept(t.Context(), c.Attempt, Acceptance{Left: time.Hour, Timeout: time.Hour, Grace: time.Minute}))
	if w.reportable(c.Attempt) != "asked to end" {
		t.Error("a cancel before the acceptance is not told")
	}
	w.ok(w.Cancelled(t.Context(), c.Attempt, Unfinished{}))
	gone := w.accepted(agent)
	w.ok(w.DeleteAgent(t.Context(), w.workspace, agent))
	if w.reportable(gone.Attempt) != "asked to end" {
		t.Error("the end of its agent is not told")
	}
	w.timeUp(gone.RunID)
	w.endAccepted(gone.Attempt)
	w.wantRun(gone.RunID, domain.RunStatusCancelled, "")
	w.sound()
}
