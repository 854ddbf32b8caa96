package domain

// RecoveryFacts is what the recovery sweep knows of an unstarted task: an office task in TODO with an assignee, made inside
// the lookback (SPEC S8.5). A run that a guard settled does not count as started.
type RecoveryFacts struct {
	AgentHeld         bool // the assignee is PAUSED, STOPPED or deleted
	Started           bool // a run of the task is queued, live, or finished its work
	Waiting           bool // a request of the task is unrouted or queued, or waits to be sent again
	Blocked           bool // a blocker is open
	CancelledByPerson bool // a person cancelled a run of it since the last assignment
	Tried             bool // the sweep has dispatched this assignment before
	OverBudget        bool // a budget that pauses agents and applies to it is exceeded
}

// Recover says whether the sweep sends the assignee a TASK_ASSIGNED again.
func Recover(f RecoveryFacts) bool {
	return !f.AgentHeld && !f.Started && !f.Waiting && !f.Blocked && !f.CancelledByPerson && !f.Tried && !f.OverBudget
}
