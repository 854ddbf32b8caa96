package store

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

func (w *world) retry(run xid.ID) Retried {
	w.Helper()
	done, err := w.RetryRun(w.Context(), RetryRun{WorkspaceID: w.workspace, RunID: run, Note: "now, please"})
	return must(w, done, err)
}

// S8.7: whatever a run is parked for but open blockers, a person's retry makes it due, and its counts begin anew.
func TestARetryMakesAParkedRunDue(t *testing.T) {
	t.Parallel()
	for _, reason := range []domain.ParkedReason{domain.ParkedReasonWindow, domain.ParkedReasonBackoff, domain.ParkedReasonRateLimit, domain.ParkedReasonBudgetReserved,
		domain.ParkedReasonGuardError, domain.ParkedReasonNoWorker, domain.ParkedReasonTaskBlocked, ""} {
		t.Run(string(reason), func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker")
			request := w.wake(agent)
			run := w.runOf(request)
			w.sql(`UPDATE runs SET parked_reason = NULLIF($2, ''), parked_until = CASE WHEN $2 NOT IN ('NO_WORKER', 'TASK_BLOCKED', '') THEN now() + interval '1 day' END,
  due_at = NULL, retry_count = 3, abandonments = 4, guard_errors = 2 WHERE id = $1`, run, string(reason))
			w.sql(`UPDATE wakeup_requests SET retry_count = 3, scheduled_retry_at = now() + interval '1 day'`)
			w.sql(`UPDATE agent_lanes SET (head_at, head_id) = (SELECT requested_at, id FROM runs WHERE parked_reason IS NULL)`)
			if done := w.retry(run); done.RunID != run || len(done.Requests) > 0 {
				t.Errorf("it answers %+v", done)
			}
			w.wantRun(run, domain.RunStatusQueued, "")
			if n := one[int](w, `SELECT r.retry_count + r.abandonments + r.guard_errors + q.retry_count FROM runs r JOIN wakeup_requests q ON q.run_id = r.id
WHERE q.scheduled_retry_at IS NULL`); n != 0 {
				t.Errorf("the counts sum to %d, want 0", n)
			}
			if n := one[int](w, `SELECT count(*) FROM activities WHERE subject_id = $1 AND code = 'WAKEUP_RETRY_SCHEDULED' AND data->>'note' = 'now, please'`, run); n != 1 {
				t.Errorf("the feed tells of it %d times", n)
			}
			w.sound()
			if c := w.claimOne(); c.RunID != run {
				t.Errorf("claimed %s", c.RunID)
			}
		})
	}
}

// S3.4: beside another run of its scope a retried one waits for that.
func TestARetryKeepsOneRunOfAScopeDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	parked := w.runOf(w.request(agent, scoped("task:1")))
	w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = now() + interval '1 day'`)
	w.sql(`UPDATE runs SET scope = 'task:2'`)
	other := w.runOf(w.request(agent, scoped("task:1")))
	w.sql(`UPDATE runs SET scope = 'task:1'`)
	w.retry(parked)
	w.wantRun(parked, domain.RunStatusQueued, domain.ParkedReasonScopeBusy)
	w.sound()
	c := w.claimOne()
	if w.start(c); c.RunID != other {
		t.Errorf("claimed %s, want the older due one", c.RunID)
	}
	_, err := w.RetryRun(t.Context(), RetryRun{WorkspaceID: w.workspace, RunID: parked})
	w.refused(err, domain.UserErrorCodeInvalidState)
	w.finish(c)
	w.wantRun(parked, domain.RunStatusQueued, "")
	w.sound()
}

// S8.7: of a run that failed or was cancelled the same requests go into a new run, with their causation, fires and place.
func TestARetrySendsAnEndedRunsWakeupsAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, c Claimed){
		"failed": func(w *world, c Claimed) {
			w.start(c)
			w.ok(w.Fail(w.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "broken", Permanent: true}))
		},
		"failed before its launch": func(w *world, c Claimed) {
			w.ok(w.HandBack(w.Context(), c.Attempt, Unfinished{}))
			w.sql(`UPDATE agents SET executor = NULL`)
			if launch := w.launch(w.claimOne()); launch != nil {
				w.Error("it was launched without an executor")
			}
		},
		"cancelled while queued": func(w *world, c Claimed) {
			w.ok(w.HandBack(w.Context(), c.Attempt, Unfinished{}))
			w.ok(w.CancelRun(w.Context(), w.workspace, c.RunID, "no"))
		},
		"cancelled while live": func(w *world, c Claimed) {
			w.start(c)
			w.ok(w.CancelRun(w.Context(), w.workspace, c.RunID, "no"))
			w.ok(w.Cancelled(w.Context(), c.Attempt, Unfinished{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker", func(a *CreateAgent) { a.Cooldown = 0 })
			made, err := w.CreateRoutine(t.Context(), CreateRoutine{WorkspaceID: w.workspace, Name: "r", AssigneeID: agent,
				ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicySkipMissed, CatchUpMax: 1})
			w.ok(err)
			fire, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: made.ID})
			w.ok(err)
			w.route(agent)
			_, _, err = w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: made.ID})
			w.ok(err)
			w.route(agent)
			c := w.claimOne()
			requests := w.texts(`SELECT id FROM wakeup_requests WHERE run_id = $1`, c.RunID)
			causation := one[string](w, `SELECT causation_id FROM runs WHERE id = $1`, c.RunID)
			_, err = w.RetryRun(t.Context(), RetryRun{WorkspaceID: w.workspace, RunID: c.RunID})
			w.refused(err, domain.UserErrorCodeInvalidState) // live
			end(w, c)
			w.sound()
			in := RetryRun{WorkspaceID: w.workspace, RunID: c.RunID, Note: "again", Idempotency: Idempotency{Key: "k", InputDigest: "d"}}
			done, err := w.RetryRun(t.Context(), in)
			w.ok(err)
			w.route(agent)
			again, err := w.RetryRun(t.Context(), in)
			if w.ok(err); !again.Replayed || !slices.Equal(again.Requests, done.Requests) {
				t.Errorf("the same call says %+v, before %+v", again, done)
			}
			var sent []string
			for _, id := range done.Requests {
				sent = append(sent, string(id))
			}
			if slices.Sort(sent); !slices.Equal(sent, requests) || len(requests) != 2 {
				t.Errorf("sent %v again, want %v", sent, requests)
			}
			run := w.runOf(done.Requests[0])
			if got := one[string](w, `SELECT causation_id FROM runs WHERE id = $1`, run); run == c.RunID || got != causation {
				t.Errorf("they are in run %s of cause %s, want a new one of %s", run, got, causation)
			}
			if got := one[string](w, `SELECT status FROM routine_runs WHERE id = $1`, fire.ID); got != "ENQUEUED" {
				t.Errorf("the fire is %s, want ENQUEUED", got)
			}
			w.sql(`UPDATE agents SET executor = $1 WHERE executor IS NULL`, `{"echo": {}}`)
			_, err = w.RetryRun(t.Context(), RetryRun{WorkspaceID: w.workspace, RunID: c.RunID})
			w.refused(err, domain.UserErrorCodeInvalidState) // nothing is left
			next := w.claimOne()
			w.start(next)
			w.finish(next)
			if got := one[string](w, `SELECT status FROM routine_runs WHERE id = $1`, fire.ID); next.RunID != run || got != "DONE" {
				t.Errorf("run %s ended the fire %s, want %s DONE", next.RunID, got, run)
			}
			_, err = w.RetryRun(t.Context(), RetryRun{WorkspaceID: w.workspace, RunID: run})
			w.refused(err, domain.UserErrorCodeAlreadyTerminal)
			w.sound()
		})
	}
}

// S8.7: what has lost its reason is not sent again, and the answer says so.
func TestARetryOfWhatLostItsReasonIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	task := w.bareTask(agent)
	run := w.runOf(w.request(agent, about(task, domain.WakeupSourceTaskAssigned, pgtx.Ptr(domain.WakeBasisAssignee))))
	w.ok(w.CancelRun(t.Context(), w.workspace, run, ""))
	w.sql(`UPDATE tasks SET assignee_id = NULL`)
	_, err := w.RetryRun(t.Context(), RetryRun{WorkspaceID: w.workspace, RunID: run})
	w.refused(err, domain.UserErrorCodeInvalidState)
	if err == nil || !strings.Contains(errText(err), "lost their reason") {
		t.Errorf("it says %v", err)
	}
	w.sql(`UPDATE tasks SET assignee_id = $1`, agent)
	if done := w.retry(run); len(done.Requests) != 1 {
		t.Errorf("it sent %v", done.Requests)
	}
	w.route(agent)
	w.ok(w.DeleteAgent(t.Context(), w.workspace, agent))
	_, err = w.RetryRun(t.Context(), RetryRun{WorkspaceID: w.workspace, RunID: run})
	w.refused(err, domain.UserErrorCodeInvalidState)
	_, err = w.RetryRun(t.Context(), RetryRun{WorkspaceID: "wsp_other", RunID: run})
	w.refused(err, domain.UserErrorCodeNotFound)
	w.sound()
}

func errText(err error) string {
	if ue, ok := errors.AsType[*domain.UserError](err); ok && len(ue.Problems) > 0 {
		return ue.Problems[0].Message
	}
	return err.Error()
}
