package domain

// BasisFacts are what decides whether a request about a task still has its reason (SPEC S6.2, "stale"). A taskless
// request has TaskBound false, and nothing else matters.
type BasisFacts struct {
	TaskBound    bool
	Basis        WakeBasis // "": the assignee is meant, as by COMMENT and most TASK_* sources
	TaskMissing  bool      // absent or deleted
	TaskState    TaskState
	TaskArchived bool
	Assigned     bool // the agent is the task's assignee
	Reviews      bool // the agent is one of its reviewers
	Approves     bool // the agent is one of its approvers
}

// BasisLost says why a request is stale; "" when it is not. It is stale when its task is gone or has ended, and when
// the agent has lost the part in which it was woken (C82, C313, C319).
func BasisLost(f BasisFacts) EndReason {
	switch {
	case !f.TaskBound:
		return ""
	case f.TaskMissing:
		return EndReasonTaskNotFound
	case f.TaskState == TaskStateDone:
		return EndReasonTaskDone
	case f.TaskState == TaskStateCancelled, f.TaskArchived:
		return EndReasonTaskCancelled
	}
	return f.partLost()
}

func (f BasisFacts) partLost() EndReason {
	switch f.Basis {
	case WakeBasisExplicit:
		return "" // asked for by hand, for whom it was asked
	case WakeBasisReviewer, WakeBasisApprover:
		if f.Basis == WakeBasisReviewer && f.Reviews || f.Basis == WakeBasisApprover && f.Approves {
			return ""
		}
		return EndReasonReviewParticipantChanged
	}
	if f.Assigned {
		return ""
	}
	return EndReasonAssigneeChanged
}

// ReassignCancels says why a request of the former assignee ends at once when a task is reassigned; "" when it does
// not. Assignments end at once, and so do requests to the assignee that wait for a retry (SPEC S5.5). Others are judged
// when they are claimed.
func ReassignCancels(source WakeupSource, basis WakeBasis, retry bool) EndReason {
	switch {
	case basis != "" && basis != WakeBasisAssignee:
		return ""
	case retry || source == WakeupSourceTaskAssigned:
		return RetryReason(EndReasonAssigneeChanged, retry)
	}
	return ""
}
