package store

import (
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// wakeOn asks an agent to work on a task, and starts the run.
func (w *world) wakeOn(agentID, task xid.ID) (Claimed, *Launch) {
	w.Helper()
	w.wakeOnly(agentID, task)
	claimed := w.claimOne()
	launch := w.launch(claimed)
	if launch == nil {
		w.Fatal("the run was settled at its start")
	}
	return claimed, launch
}

// wakeOnly asks an agent to work on a task.
func (w *world) wakeOnly(agentID, task xid.ID) {
	w.Helper()
	w.request(agentID, func(r *newRequest) {
		r.taskID, r.scope, r.source, r.basis = task, domain.TaskScope(string(task)), domain.WakeupSourceTaskAssigned, pgtx.Ptr(domain.WakeBasisExplicit)
		r.payload = &domain.TaskPayload{TaskID: string(task), Basis: domain.WakeBasisExplicit}
	})
}

// sessions are the sessions of a task, oldest first, as "external id state runs".
func (w *world) sessions(task xid.ID) string {
	w.Helper()
	return one[string](w, `SELECT coalesce(string_agg(external_id || ' ' || state || ' ' || run_count, ', ' ORDER BY created_at, id), '') FROM task_sessions WHERE task_id = $1`, task)
}

func (w *world) wantSessions(task xid.ID, want string) {
	w.Helper()
	if got := w.sessions(task); got != want {
		w.Errorf("sessions are %q, want %q", got, want)
	}
}

func TestTheRunsOfAnAgentOnATaskResumeOneSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("worker")
	task, other := w.task("Task"), w.task("Task")

	first, launch := w.wakeOn(agentID, task)
	if launch.ResumeSessionID != "" || launch.FullPrompt != "" || !strings.Contains(launch.Prompt, "# Who you are") {
		t.Errorf("the first run: resumes %q", launch.ResumeSessionID)
	}
	w.ok(w.Finish(t.Context(), first.Attempt, Success{SessionID: "s-1", Resumable: true}))
	w.wantSessions(task, "s-1 IDLE 1")

	second, launch := w.wakeOn(agentID, task)
	if launch.ResumeSessionID != "s-1" || strings.Contains(launch.Prompt, "# Who you are") || !strings.Contains(launch.FullPrompt, "# Who you are") {
		t.Errorf("the second run resumes %q with %q", launch.ResumeSessionID, launch.Prompt)
	}
	w.wantSessions(task, "s-1 RUNNING 1")
	if stored := one[string](w, `SELECT assembled_prompt FROM run_contents WHERE run_id = $1`, second.RunID); stored != launch.Prompt {
		t.Errorf("the stored prompt is not the one sent: %q", stored)
	}
	w.ok(w.Finish(t.Context(), second.Attempt, Success{SessionID: "s-1", Resumable: true}))
	w.wantSessions(task, "s-1 IDLE 2")

	foreign, launch := w.wakeOn(agentID, other)
	if launch.ResumeSessionID != "" {
		t.Errorf("another task resumes %q", launch.ResumeSessionID)
	}
	w.finish(foreign)

	third, launch := w.wakeOn(agentID, task)
	w.ok(w.Finish(t.Context(), third.Attempt, Success{SessionID: "s-2", Resumable: true, Fresh: true}))
	w.wantSessions(task, "s-1 ENDED 2, s-2 IDLE 1")
	if stored := one[string](w, `SELECT assembled_prompt FROM run_contents WHERE run_id = $1`, third.RunID); stored != launch.FullPrompt {
		t.Errorf("the fallback's prompt is not stored: %q", stored)
	}
	w.sound()
}

func TestATasklessRunAlwaysOpensAFreshSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("worker")
	for range 2 {
		w.wake(agentID)
		claimed := w.claimOne()
		if launch := w.start(claimed); launch.ResumeSessionID != "" || !strings.Contains(launch.Prompt, "# Who you are") {
			t.Errorf("it resumes %q", launch.ResumeSessionID)
		}
		w.ok(w.Finish(t.Context(), claimed.Attempt, Success{SessionID: "s-1", Resumable: true}))
	}
	if n := one[int](w, `SELECT count(*) FROM task_sessions`); n != 0 {
		t.Errorf("%d sessions were kept", n)
	}
}

func TestASessionIsRenewedAfterItsRunsOrItsAge(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*CreateAgent){
		"runs": func(in *CreateAgent) { in.SessionMaxRuns = pgtx.Ptr(1) },
		"age":  func(in *CreateAgent) { in.SessionMaxAge = pgtx.Ptr(time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agentID := w.agent("worker", change)
			task := w.task("Task")
			first, _ := w.wakeOn(agentID, task)
			w.ok(w.Finish(t.Context(), first.Attempt, Success{SessionID: "s-1", Resumable: true}))
			w.sql(`UPDATE task_sessions SET created_at = created_at - interval '1 second'`)
			second, launch := w.wakeOn(agentID, task)
			if launch.ResumeSessionID != "" || !strings.Contains(launch.Prompt, "# Who you are") {
				t.Errorf("it resumes %q", launch.ResumeSessionID)
			}
			w.ok(w.Finish(t.Context(), second.Attempt, Success{SessionID: "s-2", Resumable: true}))
			w.wantSessions(task, "s-1 ENDED 1, s-2 IDLE 1")
		})
	}
}

func TestASessionThatCannotBeResumedIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure Failure
		resumes string
	}{
		"a crash of the attempt that resumed it": {Failure{Code: domain.RunErrorCodeCrash, Message: "no such session"}, ""},
		"a rate limit is not its fault":          {Failure{Code: domain.RunErrorCodeOther, Message: "rate limit exceeded", Words: "rate limit exceeded"}, "s-1"},
		"an overload is not its fault, either":   {Failure{Code: domain.RunErrorCodeOther, Message: "the agent reported an error: API Error: 529 Overloaded"}, "s-1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agentID := w.agent("worker")
			task := w.task("Task")
			first, _ := w.wakeOn(agentID, task)
			w.ok(w.Finish(t.Context(), first.Attempt, Success{SessionID: "s-1", Resumable: true}))
			second, _ := w.wakeOn(agentID, task)
			w.ok(w.Fail(t.Context(), second.Attempt, c.failure))
			w.wantSessions(task, "s-1 IDLE 1")
			w.sql(`UPDATE runs SET parked_until = clock_timestamp() WHERE id = $1`, second.RunID)
			again := w.claimOne()
			launch := w.launch(again)
			if launch.ResumeSessionID != c.resumes || (launch.FullPrompt == "") != (c.resumes == "") {
				t.Errorf("the next attempt resumes %q, want %q", launch.ResumeSessionID, c.resumes)
			}
			w.sound()
		})
	}
}

func TestASessionIsAtWorkOnlyWhileItsAttemptLives(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world, Claimed){
		"handed back": func(w *world, c Claimed) { w.ok(w.HandBack(w.Context(), c.Attempt, Unfinished{})) },
		"abandoned": func(w *world, c Claimed) {
			must(w, true, func() error { _, err := w.Abandon(w.Context(), c.Attempt, true); return err }())
		},
		"cancelled":           func(w *world, c Claimed) { w.ok(w.Cancelled(w.Context(), c.Attempt, Unfinished{})) },
		"ended in no session": func(w *world, c Claimed) { w.finish(c) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agentID := w.agent("worker")
			task := w.task("Task")
			first, _ := w.wakeOn(agentID, task)
			w.ok(w.Finish(t.Context(), first.Attempt, Success{SessionID: "s-1", Resumable: true}))
			second, _ := w.wakeOn(agentID, task)
			end(w, second)
			w.wantSessions(task, "s-1 IDLE 1")
		})
	}
}

// used is what a run used: tokens in and out, and its cost.
func (w *world) used(run xid.ID) string {
	w.Helper()
	return one[string](w, `SELECT concat_ws(' ', input_tokens, output_tokens, cost_usd) FROM runs WHERE id = $1`, run)
}

// Programs that tell of their whole session, such as codex and agents of the protocol, are charged once for each run (SPEC S6.5).
func TestWhatASessionToldOfItsUseCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("worker")
	task := w.task("Task")
	total := func(input, output int64, cost string) *Usage {
		return &Usage{InputTokens: input, OutputTokens: output, CostUSD: cost, SessionTokens: true, SessionCost: true}
	}
	finish := func(name, session string, u *Usage, want string) {
		t.Helper()
		c, _ := w.wakeOn(agentID, task)
		w.ok(w.Finish(t.Context(), c.Attempt, Success{SessionID: session, Resumable: true, Usage: u}))
		if got := w.used(c.RunID); got != want {
			t.Errorf("%s: the run used %s, want %s", name, got, want)
		}
	}
	finish("the first run", "s-1", total(100, 11, "0.5"), "100 11 0.500000")
	finish("the second run", "s-1", total(200, 22, "0.75"), "100 11 0.250000")
	c, _ := w.wakeOn(agentID, task)
	w.ok(w.HandBack(t.Context(), c.Attempt, Unfinished{SessionID: "s-1", Resumable: true, Usage: total(300, 33, "1")}))
	again := w.claimOne()
	w.start(again)
	w.ok(w.Finish(t.Context(), again.Attempt, Success{SessionID: "s-1", Resumable: true, Usage: total(320, 35, "1.05")}))
	if got := w.used(c.RunID); got != "120 13 0.300000" {
		t.Errorf("two attempts used %s", got)
	}
	finish("a new process, which counts from nothing", "s-1", total(50, 5, "0.1"), "50 5 0.100000")
	finish("the run after it", "s-1", total(60, 6, "0.15"), "10 1 0.050000")
	finish("an agent that tells of each run", "s-1", &Usage{InputTokens: 7, OutputTokens: 1, CostUSD: "0.01"}, "7 1 0.010000")
	finish("another session", "s-2", total(70, 7, "0.2"), "70 7 0.200000")
	finish("and its next run", "s-2", total(90, 9, "0.3"), "20 2 0.100000")
}

// SPEC S8.8: a run whose account is refused fails at once, whatever the words say of quotas, and its agent goes on.
func TestARunWhoseAccountIsRefusedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("worker")
	for code, words := range map[domain.RunErrorCode]string{domain.RunErrorCodeAuth: "invalid api key", domain.RunErrorCodeBilling: "Quota exceeded. Check your plan and billing details."} {
		w.wake(agentID)
		c := w.claimOne()
		w.start(c)
		w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: code, Message: "refused: " + words, Words: words}))
		if got := one[string](w, `SELECT concat_ws(' ', status, error_code, end_reason, parked_reason) FROM runs WHERE id = $1`, c.RunID); got != "FAILED "+string(code)+" RETRIES_EXHAUSTED" {
			t.Errorf("%s: the run is %s", code, got)
		}
		if n := one[int](w, `SELECT count(*) FROM inbox_items WHERE dedupe_key = $1`, "agent_error:"+string(c.RunID)); n != 1 {
			t.Errorf("%s: %d inbox items", code, n)
		}
	}
	if got := one[string](w, `SELECT status FROM agent_lanes WHERE agent_id = $1`, agentID); got != "IDLE" {
		t.Errorf("the agent is %s", got)
	}
}
