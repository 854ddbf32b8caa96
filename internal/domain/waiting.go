package domain

import "time"

// Waiting is why a queued run or an unrouted request waits (SPEC S3.9). Until and Since are zero where no instant is known;
// BlockedBy holds ids of runs, for TASK_BLOCKED of tasks.
type Waiting struct {
	Hold      QueueHold
	Until     time.Time
	Since     time.Time // of NO_SCHEDULER: the last sign of life of a scheduler; of WORKSPACE_HELD: the begin of the hold
	BlockedBy []string
}

// Signs of life of the schedulers that work on a database. While one was heard of within SchedulerLease, one runs.
const (
	SchedulerBeat  = 5 * time.Second
	SchedulerLease = 20 * time.Second
)

// SchedulerSigns is when a scheduler last gave a sign of life, the zero time for never, both by the database's clock.
type SchedulerSigns struct{ Last, Now time.Time }

// Run says whether a scheduler runs.
func (s SchedulerSigns) Run() bool { return !s.Last.IsZero() && s.Now.Sub(s.Last) <= SchedulerLease }

// Under is the answer in view of the schedulers: what the next pass would take, or route, waits for a scheduler while none
// runs. What else holds it would hold it with a scheduler, too, and goes before.
func (w Waiting) Under(s SchedulerSigns) Waiting {
	if s.Run() || w.Hold != QueueHoldNone && w.Hold != QueueHoldRouting {
		return w
	}
	return Waiting{Hold: QueueHoldNoScheduler, Since: s.Last}
}

// holdTexts say for people what each answer means, and what to do.
var holdTexts = map[QueueHold]string{
	QueueHoldNone:             "nothing holds it: the next pass with a free worker takes it, or ends it because a guard refuses it",
	QueueHoldRouting:          "it has no run yet: the router makes one within seconds",
	QueueHoldAgentAtCapacity:  "the agent's sessions are taken: wait for the runs in blockedBy, cancel one, or raise maxConcurrentSessions",
	QueueHoldAgentCooldown:    "the agent rests after its last run: wait, or lower its cooldown",
	QueueHoldWindow:           "a burst of wakes is gathered into one run: wait, or call retryRun",
	QueueHoldBackoff:          "an attempt failed and is tried again later: repair the cause that the run's error names, then call retryRun",
	QueueHoldRateLimit:        "the agent's provider limits it: wait until the limit is over, or call retryRun",
	QueueHoldScopeBusy:        "a run of the same scope is live or goes first: wait for it, or cancel it",
	QueueHoldTaskBlocked:      "tasks that must end first are open: end, cancel or archive them, or take the link away (setTaskBlockers)",
	QueueHoldTaskCheckedOut:   "another run holds the task: nothing is to be done, it is sent again when that run ends",
	QueueHoldWorkspaceCeiling: "as many runs are live as the workspace allows: wait, or raise maxConcurrentRuns",
	QueueHoldBudgetReserved:   "what live runs may cost would use up a budget: wait, or raise the budget (upsertBudget)",
	QueueHoldGuardError:       "a guard could not be evaluated and is tried again: the server's log has the cause",
	QueueHoldNoWorker:         "no worker of its queue took it: start one (`rouse worker --queue …`); retryRun offers it again",
	QueueHoldWorkspaceHeld:    "a person holds the workspace, so nothing of it begins: releaseWorkspace lets it go on; hold { by note } says who holds it, and why",
	QueueHoldLoopBreaker:      "agents or webhooks have launched the agent as often as its launchLimit allows, which looks like a loop: it goes on when the window is over, or after retryRun; the inbox says what was found",
	QueueHoldNoScheduler:      "no scheduler runs, so nothing is taken: start `rouse serve`; one that runs with --standby must be started without it",
}

// Message says the answer in words, with what to do.
func (w Waiting) Message() string {
	text := holdTexts[w.Hold]
	if dated := w.Hold == QueueHoldNoScheduler || w.Hold == QueueHoldWorkspaceHeld; dated && !w.Since.IsZero() {
		return "since " + w.Since.UTC().Format(time.RFC3339) + " " + text
	}
	return text
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
	ParkedReasonLoopBreaker:    QueueHoldLoopBreaker,
}

// ParkedBy is the reason for parking that a hold tells of; false for a hold that no parked run has.
func ParkedBy(hold QueueHold) (ParkedReason, bool) {
	for reason, told := range parkedHolds {
		if told == hold {
			return reason, true
		}
	}
	return "", false
}

// Waiting says why a queued run of the pass's facts waits. NONE: the pass takes it, or ends it because a guard refuses it
// (a paused agent's run, say: nothing holds it back). Otherwise the first of these that holds: a person, who holds the workspace;
// its parking; its agent's live runs; its agent's rest; runs ahead of it, which count as claimed; the workspace's ceiling.
func (p *Pass) Waiting(agentID, runID string) Waiting {
	l := p.lanes[agentID]
	run := l.byID[runID]
	switch {
	case l.taken[runID]:
		return Waiting{Hold: QueueHoldNone}
	case !p.heldSince.IsZero():
		return Waiting{Hold: QueueHoldWorkspaceHeld, Since: p.heldSince}
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
