package domain

import "testing"

func TestCancelRun(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  RunStatus
		offered bool
		want    CancelOutcome
	}{
		{"a queued run ends at once", RunStatusQueued, false, CancelEnded},
		{"one that waits for a worker has no owner that could be asked", RunStatusClaimed, true, CancelEnded},
		{"the owner of a live run is asked", RunStatusClaimed, false, CancelAsked},
		{"what has finished stays so", RunStatusFinished, false, CancelTooLate},
		{"what has failed stays so", RunStatusFailed, false, CancelTooLate},
		{"what was cancelled stays so", RunStatusCancelled, false, CancelTooLate},
	} {
		if got := CancelRun(c.status, c.offered); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
