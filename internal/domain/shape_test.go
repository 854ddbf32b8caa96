package domain

import (
	"testing"
	"time"
)

func TestShapeOf(t *testing.T) {
	activated := time.Date(2026, 4, 25, 9, 0, 0, 0, time.UTC)
	after, before := activated.Add(time.Hour), activated.Add(-time.Minute)
	for _, c := range []struct {
		name  string
		facts ShapeFacts
		want  TerminalShape
	}{
		{"C91 processed with a session", ShapeFacts{Status: RunStatusFinished, Outcome: "processed", SessionID: "s"}, TerminalShapeLaunchedCompleted},
		{"C91 processed without a session", ShapeFacts{Status: RunStatusFinished, Outcome: "processed"}, TerminalShapeSilentSuccess},
		{"C92 idle-skipped without a session", ShapeFacts{Status: RunStatusFinished, Outcome: "idle_skipped"}, TerminalShapeUnlaunchedSkipped},
		{"C92 idle-skipped with a session", ShapeFacts{Status: RunStatusFinished, Outcome: "idle_skipped", SessionID: "s"}, TerminalShapeUnclassified},
		{"C93 failed with a session", ShapeFacts{Status: RunStatusFailed, SessionID: "s"}, TerminalShapeLaunchedFailed},
		{"C93 failed without one", ShapeFacts{Status: RunStatusFailed}, TerminalShapeUnlaunchedFailed},
		{"C93 cancelled with a reason and a session", ShapeFacts{Status: RunStatusCancelled, EndReason: EndReasonTaskDone, SessionID: "s"}, TerminalShapeLaunchedFailed},
		{"C93 cancelled with a reason, no session", ShapeFacts{Status: RunStatusCancelled, EndReason: EndReasonTaskDone}, TerminalShapeUnlaunchedSkipped},
		{"cancelled without a reason or a session", ShapeFacts{Status: RunStatusCancelled}, TerminalShapeUnclassified},
		{"C94 finished without an outcome", ShapeFacts{Status: RunStatusFinished}, TerminalShapeUnclassified},
		{"C94 finished with an unknown outcome", ShapeFacts{Status: RunStatusFinished, Outcome: "no_agent_launched"}, TerminalShapeUnclassified},
		{"C94 an unknown status", ShapeFacts{Status: "EXPLODED", Outcome: "processed", SessionID: "s"}, TerminalShapeUnclassified},
		{"a run that has not ended has no shape", ShapeFacts{Status: RunStatusClaimed, SessionID: "s"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.RequestedAt, c.facts.ActivatedAt = after, &activated
			if got := ShapeOf(c.facts); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for name, f := range map[string]ShapeFacts{
		"C95 requested before the activation":     {Status: RunStatusFinished, Outcome: "processed", RequestedAt: before, ActivatedAt: &activated},
		"C95 while the activation is not written": {Status: RunStatusFinished, Outcome: "processed", RequestedAt: after},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ShapeOf(f); got != TerminalShapePreActivation {
				t.Errorf("got %q, want %q", got, TerminalShapePreActivation)
			}
		})
	}
}
