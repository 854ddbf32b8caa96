package store

import (
	"context"
	"encoding/json"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// refusedOf are the actions of the run's newest event, as it tells them.
func (w *world) refusedOf(c Claimed, kind domain.RunEventKind) []outcome {
	w.Helper()
	var told struct{ Actions []outcome }
	data := one[[]byte](w, `SELECT data FROM run_events WHERE run_id = $1 AND kind = $2 ORDER BY seq DESC LIMIT 1`, c.RunID, kind)
	w.ok(json.Unmarshal(data, &told))
	return told.Actions
}

// withActions is a result that asks for a comment, a wake, and something that nobody knows.
func withActions() map[string]any {
	return map[string]any{"error": "the build is red", "actions": []any{
		map[string]any{"type": "comment", "body": "I give up."}, map[string]any{"type": "self_wake", "reason": "later"}, map[string]any{"type": "fly"}}}
}

func (w *world) wantRefused(c Claimed, kind domain.RunEventKind, why string) {
	w.Helper()
	got := w.refusedOf(c, kind)
	want := []outcome{{Type: domain.ActionComment, Problem: why}, {Type: domain.ActionSelfWake, Problem: why}, {Type: "fly", Problem: `there is no action "fly"`}}
	if len(got) != len(want) {
		w.Fatalf("the event %s tells %+v", kind, got)
	}
	for i := range want {
		if got[i] != want[i] {
			w.Errorf("action %d: %+v, want %+v", i+1, got[i], want[i])
		}
	}
	if n := one[int](w, `SELECT (SELECT count(*) FROM comments) + (SELECT count(*) FROM wakeup_requests WHERE source = 'SELF')`); n != 0 {
		w.Errorf("%d actions were carried out", n)
	}
}

// TestTheActionsOfAnAttemptThatFailedAreToldOf is SPEC S7.5: refused actions are recorded, never silently dropped.
func TestTheActionsOfAnAttemptThatFailedAreToldOf(t *testing.T) {
	t.Parallel()
	const why = "not carried out: the attempt failed"
	for name, c := range map[string]struct {
		failure Failure
		cancel  bool
		event   domain.RunEventKind
	}{
		"and is tried again":  {Failure{Code: domain.RunErrorCodeOther, Message: "the build is red"}, false, domain.RunEventKindRetryScheduled},
		"for good":            {Failure{Code: domain.RunErrorCodeOther, Message: "the build is red", Permanent: true}, false, domain.RunEventKindFailed},
		"as it was cancelled": {Failure{Code: domain.RunErrorCodeOther, Message: "the build is red"}, true, domain.RunEventKindCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agentID := w.agent("worker")
			live, _ := w.wakeOn(agentID, w.task("Task"))
			if c.cancel {
				w.ok(w.CancelRun(t.Context(), w.workspace, live.RunID, ""))
			}
			c.failure.Result = withActions()
			w.ok(w.Fail(t.Context(), live.Attempt, c.failure))
			w.wantRefused(live, c.event, why)
			if stored := one[string](w, `SELECT result->>'error' FROM run_contents WHERE run_id = $1`, live.RunID); stored != "the build is red" {
				t.Errorf("the run's result is %q", stored)
			}
			w.sound()
		})
	}
}

func TestTheResultOfARunIsThatOfItsLastAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.agent("worker")
	live, _ := w.wakeOn(agentID, w.task("Task"))
	w.ok(w.Fail(t.Context(), live.Attempt, Failure{Code: domain.RunErrorCodeOther, Message: "red", Result: withActions()}))
	w.sql(`UPDATE runs SET parked_until = clock_timestamp() WHERE id = $1`, live.RunID)
	again := w.claimOne()
	w.start(again)
	w.finish(again)
	if left := one[int](w, `SELECT count(*) FROM run_contents WHERE result IS NOT NULL`); left != 0 {
		t.Error("the run that succeeded without a result shows that of the attempt that failed")
	}
	w.sound()
}

// unfinishedEnds are the ways that an attempt ends which neither succeeded nor failed, by what its owner reports.
var unfinishedEnds = map[string]struct {
	end   func(*world, context.Context, Attempt, Unfinished) error
	event domain.RunEventKind
	why   string
}{
	"cancelled":   {func(w *world, ctx context.Context, a Attempt, u Unfinished) error { return w.Cancelled(ctx, a, u) }, domain.RunEventKindCancelled, "not carried out: the run was cancelled"},
	"handed back": {func(w *world, ctx context.Context, a Attempt, u Unfinished) error { return w.HandBack(ctx, a, u) }, domain.RunEventKindRecovered, "not carried out: the attempt was handed back"},
}

// TestWhatAnAttemptUsedCountsWhateverBecameOfIt is SPEC S6.5: the ledger has it, and the run shows it.
func TestWhatAnAttemptUsedCountsWhateverBecameOfIt(t *testing.T) {
	t.Parallel()
	for name, c := range unfinishedEnds {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agentID := w.agent("worker")
			live, _ := w.wakeOn(agentID, w.task("Task"))
			w.ok(c.end(w, t.Context(), live.Attempt, Unfinished{Usage: &Usage{InputTokens: 7, OutputTokens: 5, CostUSD: "0.25"}, Result: withActions()}))
			const ledger = `SELECT count(*) FROM cost_entries e JOIN runs r ON r.id = e.run_id
WHERE e.attempt = 1 AND e.cost_usd = 0.25 AND e.input_tokens = 7 AND e.output_tokens = 5 AND r.cost_usd = 0.25 AND r.input_tokens = 7`
			if n := one[int](w, ledger); n != 1 {
				t.Errorf("the ledger has %d entries of it", n)
			}
			w.wantRefused(live, c.event, c.why)
			w.sound()
		})
	}
}

func TestTheNextAttemptResumesTheSessionOfOneThatWasEnded(t *testing.T) {
	t.Parallel()
	lost := func(w *world, ctx context.Context, a Attempt, _ Unfinished) error {
		_, err := w.Abandon(ctx, a, true)
		w.waited(a.RunID)
		return err
	}
	for name, c := range map[string]struct {
		end      func(*world, context.Context, Attempt, Unfinished) error
		recorded string
		brought  Unfinished
		resumes  string
	}{
		"handed back": {unfinishedEnds["handed back"].end, "s-1", Unfinished{SessionID: "s-1", Resumable: true}, "s-1"},
		"handed back, and its agent cannot resume": {unfinishedEnds["handed back"].end, "ses_x", Unfinished{SessionID: "ses_x"}, ""},
		"lost with its process":                    {lost, "s-1", Unfinished{}, "s-1"},
		"lost, and its agent had named none":       {lost, string(xid.New("ses")), Unfinished{}, ""},
		"lost before it had one":                   {lost, "", Unfinished{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agentID := w.agent("worker")
			live, _ := w.wakeOn(agentID, w.task("Task"))
			if c.recorded != "" {
				w.ok(w.RecordSession(t.Context(), live.Attempt, c.recorded))
			}
			w.ok(c.end(w, t.Context(), live.Attempt, c.brought))
			again := w.claimOne()
			launch := w.launch(again)
			if launch.ResumeSessionID != c.resumes || (launch.FullPrompt == "") != (c.resumes == "") {
				t.Errorf("the next attempt resumes %q, want %q", launch.ResumeSessionID, c.resumes)
			}
			w.sound()
		})
	}
}

func TestACancelledRunsSessionIsThatOfTheTasksNextRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID, task := w.agent("worker"), w.task("Task")
	live, _ := w.wakeOn(agentID, task)
	w.ok(w.Cancelled(t.Context(), live.Attempt, Unfinished{SessionID: "s-1", Resumable: true}))
	w.wantSessions(task, "s-1 IDLE 1")
	if _, launch := w.wakeOn(agentID, task); launch.ResumeSessionID != "s-1" {
		t.Errorf("the next run resumes %q", launch.ResumeSessionID)
	}
}
