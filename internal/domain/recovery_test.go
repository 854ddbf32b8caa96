package domain

import "testing"

func TestRecovery(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts RecoveryFacts
		want  bool
	}{
		{"C315 nothing stands against it: settled by a guard, failed and cancelled runs do not", RecoveryFacts{}, true},
		{"an agent that is held gets nothing (C219)", RecoveryFacts{AgentHeld: true}, false},
		{"a task that was started is not unstarted", RecoveryFacts{Started: true}, false},
		{"a wake that is on its way is not doubled", RecoveryFacts{Waiting: true}, false},
		{"C315 a blocked task waits for its blockers", RecoveryFacts{Blocked: true}, false},
		{"C315 what a person cancelled stays so", RecoveryFacts{CancelledByPerson: true}, false},
		{"C315 one try per assignment", RecoveryFacts{Tried: true}, false},
		{"an exhausted budget", RecoveryFacts{OverBudget: true}, false},
	} {
		if got := Recover(c.facts); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
