package domain

import "time"

// AdmitFacts are what the guards look at when a due run is about to be claimed (SPEC S6.2). ActionableTasks is 0
// where the agent has no task in TODO or IN_PROGRESS; it counts only when CountsIdle says so. The rest is of a run about a
// task: its open requests and the task.
type AdmitFacts struct {
	AgentStatus     AgentStatus
	AgentDeleted    bool
	WakeClass       WakeClass
	SkipIdleWakeups bool
	ActionableTasks int
	CancelRequested bool
	LaunchLimit     LaunchLimit // of the agent; a Count of 0 is none

	Requests     []RequestFacts
	Retry        bool // an attempt of the run has failed
	TaskBlocked  bool // a blocker is open
	CheckoutHeld bool // another run holds the task
}

// RequestFacts is the requests of one source and basis about a task: what one of them has lost, all have.
type RequestFacts struct {
	Source WakeupSource
	Basis  BasisFacts
}

// StaleRequests are the requests of a source and basis that have lost their reason.
type StaleRequests struct {
	Source WakeupSource
	Basis  WakeBasis
	Reason EndReason
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

// Admission is what the guards decide about a run. The zero value launches it. Stale requests end first, each for its own reason.
type Admission struct {
	Settle *Settlement
	Park   ParkedReason // "": it is not parked
	Stale  []StaleRequests
}

// Launches says whether the run is launched as it is.
func (a Admission) Launches() bool { return a.Settle == nil && a.Park == "" && len(a.Stale) == 0 }

// Settlement ends a run without launching it; all its requests end alike (SPEC S3.8).
type Settlement struct {
	Run      RunStatus
	Outcome  string // "" unless the run is FINISHED
	Request  WakeupStatus
	Reason   EndReason
	Activity ActivityCode
	Note     string // what a person said about it; "" when nobody did
}

// Admit runs the guards in their order: first match decides.
func Admit(f AdmitFacts) Admission {
	switch {
	case f.AgentDeleted:
		return settled(Settlement{Run: RunStatusCancelled, Request: WakeupStatusCancelled, Reason: EndReasonAgentDeleted, Activity: ActivityCodeWakeupStaleCancelled})
	case f.CancelRequested:
		return settled(Settlement{Run: RunStatusCancelled, Request: WakeupStatusCancelled, Reason: EndReasonCancelledByUser, Activity: ActivityCodeRunCancelled})
	case f.AgentStatus == AgentStatusPaused, f.AgentStatus == AgentStatusStopped:
		return settled(Settlement{Run: RunStatusFinished, Outcome: OutcomeAgentInactive, Request: WakeupStatusFinished, Reason: EndReasonAgentInactive, Activity: ActivityCodeWakeupAgentInactive})
	}
	stale, left := f.admitRequests()
	switch {
	case len(f.Requests) > 0 && len(left) == 0:
		end := staleSettlement(stale[0].Reason)
		return Admission{Settle: &end, Stale: stale}
	case f.TaskBlocked && onlyAssignments(left):
		return Admission{Park: ParkedReasonTaskBlocked, Stale: stale}
	case f.CountsIdle() && f.ActionableTasks == 0:
		return settled(Settlement{Run: RunStatusFinished, Outcome: OutcomeIdleSkipped, Request: WakeupStatusFinished, Reason: EndReasonIdleSkipped, Activity: ActivityCodeWakeupIdleSkipped})
	case f.CheckoutHeld:
		held := Settlement{Run: RunStatusFinished, Outcome: OutcomeCheckoutHeld, Request: WakeupStatusSkipped, Reason: EndReasonCheckoutHeld, Activity: ActivityCodeWakeupCheckoutHeld}
		return Admission{Settle: &held, Stale: stale}
	}
	return Admission{Stale: stale}
}

func settled(s Settlement) Admission { return Admission{Settle: &s} }

// admitRequests divides the requests into stale ones and those that are left (SPEC S6.2, "stale").
func (f AdmitFacts) admitRequests() (stale []StaleRequests, left []RequestFacts) {
	for _, q := range f.Requests {
		if reason := BasisLost(q.Basis); reason != "" {
			stale = append(stale, StaleRequests{Source: q.Source, Basis: q.Basis.Basis, Reason: RetryReason(reason, f.Retry)})
			continue
		}
		left = append(left, q)
	}
	return stale, left
}

// RetryReason names the loss of a request's basis as it is called when the run was to be tried again (SPEC S8.3).
func RetryReason(reason EndReason, retry bool) EndReason {
	switch {
	case retry && reason == EndReasonAssigneeChanged:
		return EndReasonRetryStaleAssignee
	case retry && reason == EndReasonTaskCancelled:
		return EndReasonRetryTaskCancelled
	}
	return reason
}

// StaleActivity is the code of the activity entry about a lost basis.
func StaleActivity(reason EndReason) ActivityCode {
	if reason == EndReasonRetryStaleAssignee || reason == EndReasonRetryTaskCancelled {
		return ActivityCodeWakeupRetryCancelled
	}
	return ActivityCodeWakeupStaleCancelled
}

func staleSettlement(reason EndReason) Settlement {
	return Settlement{Run: RunStatusCancelled, Request: WakeupStatusCancelled, Reason: reason, Activity: StaleActivity(reason)}
}

// onlyAssignments says whether the requests only tell an assignee of its task, which an open blocker holds back.
func onlyAssignments(requests []RequestFacts) bool {
	for _, q := range requests {
		if q.Source != WakeupSourceTaskAssigned || q.Basis.Basis != WakeBasisAssignee {
			return false
		}
	}
	return len(requests) > 0
}

// AdmitStart repeats the guards that may have changed between claim and start: agent, staleness, cancel (SPEC S6.2). The
// others are not repeated: they decided at the claim.
func AdmitStart(f AdmitFacts) Admission {
	f.SkipIdleWakeups, f.TaskBlocked, f.CheckoutHeld = false, false, false
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

// GuardErrorsForInbox is the number of guard errors of one run that makes an inbox item.
const GuardErrorsForInbox = 5
