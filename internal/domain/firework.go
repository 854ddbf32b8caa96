package domain

import "slices"

// FireWork is the work of an earlier fire, by which it is active or not.
type FireWork struct {
	Heavy           bool
	RequestUnrouted bool         // its request, of a heavy fire any request of its task, is unrouted or waits for its agent's resume
	RunStatus       RunStatus    // of the run that serves it, of a heavy fire of the task's next run; "": none
	Parked          ParkedReason // why that run is queued and not due; "": it is due
	ParkedLong      bool         // for longer than StrandedGrace, or until something comes

	// of a heavy fire
	TaskState    TaskState // of its task; "": the task is missing
	TaskArchived bool
	OpenBlocker  bool
	OpenApproval bool
}

// FireWait is what an active fire waits for while nothing of its work is on its way, or only much later.
type FireWait string

const (
	FireWaitBlocked  FireWait = "BLOCKED"   // its task's state
	FireWaitReview   FireWait = "IN_REVIEW" // its task's state
	FireWaitBlocker  FireWait = "BLOCKER"   // an open blocker of its task
	FireWaitApproval FireWait = "APPROVAL"  // an open approval of its task
	FireWaitParked   FireWait = "PARKED"    // its run is parked for long
)

// LongParked are the reasons for which a run may be parked for days, or until something comes that may not come. A retry's
// backoff, a window, a busy scope and a reserved budget end by themselves, soon.
var LongParked = []ParkedReason{ParkedReasonRateLimit, ParkedReasonNoWorker, ParkedReasonGuardError, ParkedReasonTaskBlocked, ParkedReasonLoopBreaker}

// Active says whether a fire still counts for the concurrency policy (SPEC S4.6, C53, C211). A lightweight fire counts
// while its request is unrouted or its run has not ended. A heavy fire counts while its task is open, and a run of it
// is on its way or something explains the wait. A task that a run left open when it gave up does not count.
func (w FireWork) Active() bool {
	if !w.Heavy {
		return w.toCome()
	}
	return w.open() && (w.toCome() || w.explained() != "")
}

// Waits says what an active fire waits for while nobody works on it; "" when work is on its way.
func (w FireWork) Waits() FireWait {
	switch {
	case w.Heavy && !w.open():
		return ""
	case w.Heavy && !w.toCome():
		return w.explained()
	case !w.RequestUnrouted && w.RunStatus == RunStatusQueued && slices.Contains(LongParked, w.Parked) && w.ParkedLong:
		return FireWaitParked
	}
	return ""
}

func (w FireWork) toCome() bool {
	return w.RequestUnrouted || w.RunStatus == RunStatusQueued || w.RunStatus == RunStatusClaimed
}

func (w FireWork) open() bool { return w.TaskState != "" && !w.TaskArchived && !w.TaskState.Ended() }

// explained is why an open task without a run waits; "" when nothing says so.
func (w FireWork) explained() FireWait {
	switch {
	case w.TaskState == TaskStateBlocked:
		return FireWaitBlocked
	case w.TaskState == TaskStateInReview:
		return FireWaitReview
	case w.OpenBlocker:
		return FireWaitBlocker
	case w.OpenApproval:
		return FireWaitApproval
	}
	return ""
}

// waitTexts say for people what fires wait for, and what ends it.
var waitTexts = map[FireWait]string{
	FireWaitBlocked:  "its task is BLOCKED: move it on (moveTask), or end it",
	FireWaitReview:   "its task is in review: decide, or move it on (moveTask)",
	FireWaitBlocker:  "its task waits for other tasks: end those, or take them off (setTaskBlockers)",
	FireWaitApproval: "its task waits for the answer to a question: decide it (decideApproval)",
	FireWaitParked:   "its run is parked: `waiting` of the run says for what and until when; cancelRun ends it",
}

// FiresWait is the title and the text of the inbox item about fires that wait for an earlier one.
func FiresWait(routine string, wait FireWait) (title, body string) {
	return CutText("Fires of routine "+routine+" wait for an earlier one", MaxInboxTitle, "…"),
		"Later fires are merged into the earlier one or skipped, because " + waitTexts[wait] + ". Until then the routine does nothing new."
}

// MaxInboxTitle is the longest title of an inbox item, in bytes.
const MaxInboxTitle = 300
