package domain

import "testing"

func TestRetryRun(t *testing.T) {
	parked := func(reason ParkedReason) RetryFacts { return RetryFacts{Status: RunStatusQueued, ParkedReason: reason} }
	for _, c := range []struct {
		name  string
		facts RetryFacts
		want  RetryAction
		code  UserErrorCode
	}{
		{"S8.7 a run that waits for its window is due", parked(ParkedReasonWindow), RetryMakeDue, ""},
		{"S8.7 one that backs off", parked(ParkedReasonBackoff), RetryMakeDue, ""},
		{"S8.7 one that met a rate limit", parked(ParkedReasonRateLimit), RetryMakeDue, ""},
		{"S8.7 one that waits for money that live runs hold: the claim looks again", parked(ParkedReasonBudgetReserved), RetryMakeDue, ""},
		{"S8.7 one that could not be judged", parked(ParkedReasonGuardError), RetryMakeDue, ""},
		{"S8.7 one that no worker took: it is offered again", parked(ParkedReasonNoWorker), RetryMakeDue, ""},
		{"S8.7 one that is due only begins its counts anew", parked(""), RetryMakeDue, ""},
		{"S8.7 not past open blockers", RetryFacts{Status: RunStatusQueued, ParkedReason: ParkedReasonTaskBlocked, Blocked: true}, "", UserErrorCodeInvalidState},
		{"a blocker that is gone holds nothing up", parked(ParkedReasonTaskBlocked), RetryMakeDue, ""},
		{"a blocker does not matter to a run that waits for something else", RetryFacts{Status: RunStatusQueued, ParkedReason: ParkedReasonBackoff, Blocked: true}, RetryMakeDue, ""},
		{"S3.4 one that follows another of its scope keeps following", parked(ParkedReasonScopeBusy), "", UserErrorCodeInvalidState},
		{"S8.7 the wakeups of a failed run are sent again", RetryFacts{Status: RunStatusFailed}, RetryResend, ""},
		{"S8.7 those of a cancelled one", RetryFacts{Status: RunStatusCancelled}, RetryResend, ""},
		{"a live run", RetryFacts{Status: RunStatusClaimed}, "", UserErrorCodeInvalidState},
		{"one that is offered to workers", RetryFacts{Status: RunStatusClaimed, Offered: true}, "", UserErrorCodeInvalidState},
		{"one that finished", RetryFacts{Status: RunStatusFinished}, "", UserErrorCodeAlreadyTerminal},
		{"a deleted agent's", RetryFacts{Status: RunStatusFailed, AgentDeleted: true}, "", UserErrorCodeInvalidState},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := RetryRun(c.facts)
			var code UserErrorCode
			if len(problems) > 0 {
				code = problems[0].Code
			}
			if got != c.want || code != c.code {
				t.Errorf("got %q %s, want %q %s", got, code, c.want, c.code)
			}
		})
	}
}
