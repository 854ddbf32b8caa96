package domain

import (
	"testing"
	"time"
)

func TestShapeOf(t *testing.T) {
	activated := time.Date(2026, 4, 25, 9, 0, 0, 0, time.UTC)
	after, before := activated.Add(time.Minute), activated.Add(-time.Minute)
	for _, c := range []struct {
		name string
		in   ShapeFacts
		want TerminalShape
	}{
		{"C91 finished and processed with a session", ShapeFacts{RunStatusFinished, "processed", true, false, after, activated}, TerminalShapeLaunchedCompleted},
		{"C91 finished and processed without a session", ShapeFacts{RunStatusFinished, "processed", false, false, after, activated}, TerminalShapeSilentSuccess},
		{"C92 idle skipped without a session", ShapeFacts{RunStatusFinished, "idle_skipped", false, true, after, activated}, TerminalShapeUnlaunchedSkipped},
		{"C92 idle skipped with a session", ShapeFacts{RunStatusFinished, "idle_skipped", true, true, after, activated}, TerminalShapeUnclassified},
		{"every skip outcome counts", ShapeFacts{RunStatusFinished, "budget_blocked", false, true, after, activated}, TerminalShapeUnlaunchedSkipped},
		{"C93 failed with a session", ShapeFacts{RunStatusFailed, "", true, true, after, activated}, TerminalShapeLaunchedFailed},
		{"C93 failed without a session", ShapeFacts{RunStatusFailed, "", false, true, after, activated}, TerminalShapeUnlaunchedFailed},
		{"C93 cancelled with a reason and a session", ShapeFacts{RunStatusCancelled, "", true, true, after, activated}, TerminalShapeLaunchedFailed},
		{"C93 cancelled with a reason and no session", ShapeFacts{RunStatusCancelled, "", false, true, after, activated}, TerminalShapeUnlaunchedSkipped},
		{"cancelled without a reason or a session", ShapeFacts{RunStatusCancelled, "", false, false, after, activated}, TerminalShapeUnclassified},
		{"C94 finished without an outcome", ShapeFacts{RunStatusFinished, "", true, false, after, activated}, TerminalShapeUnclassified},
		{"C94 finished with an unknown outcome", ShapeFacts{RunStatusFinished, "no_agent_launched", false, false, after, activated}, TerminalShapeUnclassified},
		{"C94 an unknown status", ShapeFacts{"ENDED", "processed", true, false, after, activated}, TerminalShapeUnclassified},
		{"C94 an unknown status with a skip outcome", ShapeFacts{"ENDED", "idle_skipped", false, true, after, activated}, TerminalShapeUnclassified},
		{"C95 asked a minute before activation", ShapeFacts{RunStatusFinished, "processed", false, false, before, activated}, TerminalShapePreActivation},
		{"C95 activation not published", ShapeFacts{RunStatusFinished, "processed", true, false, after, time.Time{}}, TerminalShapePreActivation},
		{"asked at the instant of activation", ShapeFacts{RunStatusFinished, "processed", true, false, activated, activated}, TerminalShapeLaunchedCompleted},
	} {
		if got := ShapeOf(c.in); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
