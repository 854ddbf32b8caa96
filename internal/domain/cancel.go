package domain

// CancelReason is why a live run that was asked to end has ended. A deleted agent goes before a person's cancel of one of
// its runs: it is what ends all of them.
func CancelReason(agentDeleted bool) EndReason {
	if agentDeleted {
		return EndReasonAgentDeleted
	}
	return EndReasonCancelledByUser
}
