package domain

import "time"

// Waiting is why a queued run or an unrouted request waits (SPEC S3.9). Until is zero where no instant is known; BlockedBy
// holds ids of runs, for TASK_BLOCKED of tasks.
type Waiting struct {
	Hold      QueueHold
	Until     time.Time
	BlockedBy []string
}

// WaitsForRouting is the answer for every unrouted request.
var WaitsForRouting = Waiting{Hold: QueueHoldRouting}

// parkedHolds says what a run waits for that stays parked through the next pass.
var parkedHolds = map[ParkedReason]QueueHold{
	ParkedReasonWindow:         QueueHoldWindow,
	ParkedReasonBackoff:        QueueHoldBackoff,
	ParkedReasonRateLimit:      QueueHoldRateLimit,
	ParkedReasonScopeBusy:      QueueHoldScopeBusy,
	ParkedReasonTaskBlocked:    QueueHoldTaskBlocked,
	ParkedReasonBudgetReserved: QueueHoldBudgetReserved,
	ParkedReasonGuardError:     QueueHoldGuardError,
	ParkedReasonNoWorker:       QueueHoldNoWorker,
}

// Waiting says why a queued run of the pass's facts waits. NONE: the pass takes it, or ends it because a guard refuses it
// (a paused agent's run, say: nothing holds it back). Otherwise the first of these that holds: its parking; its agent's
// live runs; its agent's rest; runs ahead of it, which count as claimed; the workspace's ceiling.
func (p *Pass) Waiting(agentID, runID string) Waiting {
	l := p.lanes[agentID]
	run := l.byID[runID]
	switch {
	case l.taken[runID]:
		return Waiting{Hold: QueueHoldNone}
	case run.ParkedReason == ParkedReasonScopeBusy:
		return Waiting{Hold: QueueHoldScopeBusy, BlockedBy: l.holders(run)}
	case run.ParkedReason != "":
		return Waiting{Hold: parkedHolds[run.ParkedReason], Until: run.ParkedUntil}
	case l.Running >= l.MaxSessions:
		return Waiting{Hold: QueueHoldAgentAtCapacity, BlockedBy: l.live()}
	case l.EligibleAt.After(p.now):
		return Waiting{Hold: QueueHoldAgentCooldown, Until: l.EligibleAt}
	case l.full():
		return Waiting{Hold: QueueHoldAgentAtCapacity, BlockedBy: l.live()}
	case p.full():
		return Waiting{Hold: QueueHoldWorkspaceCeiling}
	}
	return Waiting{Hold: QueueHoldNone} // behind more runs that guards will end than the facts hold
}

// live are the lane's runs that are live once the pass is over.
func (l *passLane) live() []string {
	var list []string
	for i := range l.Runs {
		if l.Runs[i].Status == RunStatusClaimed {
			list = append(list, l.Runs[i].ID)
		}
	}
	return list
}
