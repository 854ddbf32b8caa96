package store

import (
	"encoding/json"
	"testing"

	"rouse.dev/rouse/internal/domain"
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
