package domain

import "time"

// AdmitFacts are what the guards look at when a due run is about to be claimed (SPEC S6.2). ActionableTasks counts the
// agent's tasks in TODO or IN_PROGRESS; it is read only when CountsIdle says that it matters.
type AdmitFacts struct {
	AgentStatus     AgentStatus
	AgentDeleted    bool
	WakeClass       WakeClass
	SkipIdleWakeups bool
	ActionableTasks int
	CancelRequested bool
}

// CountsIdle says whether the idle guard needs the count of actionable tasks.
func (f AdmitFacts) CountsIdle() bool { return f.WakeClass == WakeClassPeriodic && f.SkipIdleWakeups }

// Outcomes of runs as run.outcome spells them (SPEC S10.2).
const (
	OutcomeProcessed     = "processed"
	OutcomeAgentInactive = "agent_inactive"
	OutcomeIdleSkipped   = "idle_skipped"
	OutcomeCheckoutHeld  = "checkout_held"
	OutcomeBudgetBlocked = "budget_blocked"
)

// Admission is what the guards decide about a run. The zero value launches it.
type Admission struct {
	Settle *Settlement
}

// Settlement ends a run without launching it; all its requests end alike (SPEC S3.8).
type Settlement struct {
	Run      RunStatus
	Outcome  string // "" unless the run is FINISHED
	Request  WakeupStatus
	Reason   EndReason
	Activity ActivityCode
}

// Admit runs the guards in their order: first match decides.
func Admit(f AdmitFacts) Admission {
	switch {
	case f.AgentDeleted:
		return Admission{&Settlement{Run: RunStatusCancelled, Request: WakeupStatusCancelled, Reason: EndReasonAgentDeleted, Activity: ActivityCodeWakeupStaleCancelled}}
	case f.CancelRequested:
		return Admission{&Settlement{Run: RunStatusCancelled, Request: WakeupStatusCancelled, Reason: EndReasonCancelledByUser, Activity: ActivityCodeRunCancelled}}
	case f.AgentStatus == AgentStatusPaused, f.AgentStatus == AgentStatusStopped:
		return Admission{&Settlement{Run: RunStatusFinished, Outcome: OutcomeAgentInactive, Request: WakeupStatusFinished, Reason: EndReasonAgentInactive, Activity: ActivityCodeWakeupAgentInactive}}
	case f.CountsIdle() && f.ActionableTasks == 0:
		return Admission{&Settlement{Run: RunStatusFinished, Outcome: OutcomeIdleSkipped, Request: WakeupStatusFinished, Reason: EndReasonIdleSkipped, Activity: ActivityCodeWakeupIdleSkipped}}
	}
	return Admission{}
}

// AdmitStart repeats the guards that may have changed between claim and start: agent, cancel (SPEC S6.2). The idle guard
// is not repeated: it decided at the claim.
func AdmitStart(f AdmitFacts) Admission {
	f.SkipIdleWakeups = false
	return Admit(f)
}

// GuardBackoff is how long a run is parked GUARD_ERROR after its errors-th guard that could not be evaluated, from 1:
// 5 s, doubling, at most 10 minutes.
func GuardBackoff(errors int) time.Duration {
	const first, most = 5 * time.Second, 10 * time.Minute
	if errors < 1 {
		errors = 1
	}
	if errors > 8 {
		return most
	}
	return min(first<<(errors-1), most)
}

// GuardErrorsForInbox is the number of guard errors of one run at which a person is told.
const GuardErrorsForInbox = 5
