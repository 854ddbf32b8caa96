package domain

// RetryFacts is a run that a person wants to be tried now.
type RetryFacts struct {
	Status       RunStatus
	ParkedReason ParkedReason // of a QUEUED run; "": due
	Blocked      bool         // its task has an open blocker
	Offered      bool         // CLAIMED, and it waits for a worker
	AgentDeleted bool
}

// RetryAction is what a person's retry does to a run.
type RetryAction string

// The actions.
const (
	RetryMakeDue RetryAction = "MAKE_DUE" // its parking ends
	RetryResend  RetryAction = "RESEND"   // its requests are sent again, into a new run
)

// RetryOutcome is what a call about many runs made of one of them.
//
//rouse:enum
type RetryOutcome string

// The outcomes.
const (
	RetryMadeDue   RetryOutcome = "MADE_DUE"   // it was parked, and is due now
	RetrySentAgain RetryOutcome = "SENT_AGAIN" // its requests were sent again, into a new run
	RetryRefused   RetryOutcome = "REFUSED"    // nothing was done
)

// RetryRun decides what a person's retry does (SPEC S8.7), or why it is refused. Of a run that is due already, only the
// counts are reset.
func RetryRun(f RetryFacts) (RetryAction, []FieldError) {
	refuse := func(code UserErrorCode, message string) (RetryAction, []FieldError) {
		return "", []FieldError{{Field: []string{"runId"}, Code: code, Message: message}}
	}
	switch {
	case f.AgentDeleted:
		return refuse(UserErrorCodeInvalidState, "the run's agent was deleted, so that nobody would do it; give the work to another agent")
	case f.Status == RunStatusFinished:
		return refuse(UserErrorCodeAlreadyTerminal, "the run has finished; wake its agent (wakeAgent) or ask for another run of its task (queueRun)")
	case f.Status == RunStatusClaimed && f.Offered:
		return refuse(UserErrorCodeInvalidState, "the run is offered to workers already; start one for its queue (rouse worker)")
	case f.Status == RunStatusClaimed:
		return refuse(UserErrorCodeInvalidState, "the run is live; wait for its end, or cancel it first (cancelRun)")
	case f.Status != RunStatusQueued:
		return RetryResend, nil
	case f.ParkedReason == ParkedReasonTaskBlocked && f.Blocked:
		return refuse(UserErrorCodeInvalidState, "the run waits for open blockers of its task; end them or take them off (setTaskBlockers), then it goes on by itself")
	case f.ParkedReason == ParkedReasonScopeBusy:
		return refuse(UserErrorCodeInvalidState, "the run follows another one of the same agent about the same thing, which is due or live; it goes on by itself when that has ended")
	}
	return RetryMakeDue, nil
}
