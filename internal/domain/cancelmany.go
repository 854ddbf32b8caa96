package domain

// CancelOutcome is what a cancel makes of a run.
//
//rouse:enum
type CancelOutcome string

const (
	CancelEnded   CancelOutcome = "CANCELLED"    // it was queued, or waited for a worker, and has ended
	CancelAsked   CancelOutcome = "ASKED_TO_END" // it is live, and its owner was asked to end it
	CancelTooLate CancelOutcome = "TOO_LATE"     // it had ended
)

// CancelRun says what a cancel makes of a run. offered: it waits for a worker, so that nobody is there to be asked.
func CancelRun(status RunStatus, offered bool) CancelOutcome {
	switch {
	case status == RunStatusQueued, status == RunStatusClaimed && offered:
		return CancelEnded
	case status == RunStatusClaimed:
		return CancelAsked
	}
	return CancelTooLate
}
