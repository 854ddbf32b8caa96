package domain

import (
	"cmp"
	"slices"
	"time"
)

// ScopeRun is a run of the scope that a request is routed into, as far as merging depends on it.
type ScopeRun struct {
	ID           string
	Status       RunStatus    // QUEUED or CLAIMED; runs that ended are left out of consideration
	Started      bool         // CLAIMED, and its prompt is assembled
	ParkedReason ParkedReason // of a QUEUED run; "": due
	ParkedUntil  time.Time    // zero: without a date
	WakeClass    WakeClass
	RoutineID    string // "" unless it serves a routine
	Fingerprint  string // of the fire it serves
	RequestedAt  time.Time
}

// CoalesceRequest is the wakeup request to route, as far as merging depends on it.
type CoalesceRequest struct {
	Class         WakeClass
	Source        WakeupSource
	Basis         WakeBasis
	PersonWaiting bool      // USER, manual fire, mention, a person's queueRun or move to In Progress: no window (SPEC S3.7)
	PersonSpoke   bool      // a person's comment: it keeps the window, and ends a backoff
	Resend        bool      // routed before: no window (SPEC S3.6)
	TaskBlocked   bool      // its task has an open blocker, where the router knows (SPEC S5.3)
	RequestedAt   time.Time // zero: now
	RoutineID     string    // of a fire
	Fingerprint   string
}

// CoalesceFacts is what routing decides on: the scope's live runs, the request, the workspace's window and the instant,
// all read under the lane lock.
type CoalesceFacts struct {
	Runs    []ScopeRun
	Request CoalesceRequest
	Window  time.Duration
	Now     time.Time
}

// CoalesceAction is what becomes of a routed request.
type CoalesceAction string

const (
	CoalesceNew    CoalesceAction = "NEW"    // a run of its own
	CoalesceMerge  CoalesceAction = "MERGE"  // linked to a run that has not started; the request ends up in its prompt
	CoalesceAbsorb CoalesceAction = "ABSORB" // linked to a started run, which is the same heartbeat; not delivered, not sent again
)

// CoalescePlan is the decision. Merged and absorbed requests are COALESCED into RunID.
type CoalescePlan struct {
	Action  CoalesceAction
	RunID   string // of MERGE and ABSORB
	Promote bool   // raise the merged run's class from PERIODIC to EVENT in the same statement
	MakeDue bool   // clear the merged run's parking; retry_count stays
	// The parking to write: of the new run, or, when set on a merge, of the merged run instead of the one it has.
	// ParkedReason "" is due (NEW) or unchanged (MERGE); a zero ParkedUntil with a reason has no date.
	ParkedReason ParkedReason
	ParkedUntil  time.Time
	Unblocked    []Unparked // other runs of the scope whose parking ends, too
}

// Unparked is what becomes of a run whose blockers are gone.
type Unparked struct {
	RunID        string
	ParkedReason ParkedReason // "": due
}

// Coalesce decides whether a request is merged into a run of its scope or makes a new one (SPEC S3.5, S3.7; the table
// "Event × run state" of docs/queue.md).
func Coalesce(f CoalesceFacts) CoalescePlan {
	if run, ok := dueFirst(f); ok {
		plan := mergeIntoQueued(f, run)
		plan.Unblocked = unblocked(f, run, plan)
		return plan
	}
	for _, run := range f.Runs {
		if run.Status == RunStatusClaimed {
			return joinClaimed(f.Request, run)
		}
	}
	return newRun(f)
}

// dueFirst is the QUEUED run that will be claimed first. A run that is due comes first, then one that follows a live
// run, then the one whose parking ends soonest.
func dueFirst(f CoalesceFacts) (ScopeRun, bool) {
	queued := slices.DeleteFunc(slices.Clone(f.Runs), func(r ScopeRun) bool { return r.Status != RunStatusQueued })
	if len(queued) == 0 {
		return ScopeRun{}, false
	}
	return slices.MinFunc(queued, func(a, b ScopeRun) int {
		return cmp.Or(
			cmp.Compare(a.rank(f.Now), b.rank(f.Now)),
			a.compareUntil(b, f.Now),
			a.RequestedAt.Compare(b.RequestedAt),
			cmp.Compare(a.ID, b.ID))
	}), true
}

// rank orders kinds of waiting: due 0, behind a live run 1, until an instant 2, without a date 3.
func (r ScopeRun) rank(now time.Time) int {
	switch {
	case r.due(now):
		return 0
	case r.ParkedReason == ParkedReasonScopeBusy:
		return 1
	case !r.ParkedUntil.IsZero():
		return 2
	}
	return 3
}

func (r ScopeRun) compareUntil(other ScopeRun, now time.Time) int {
	if r.rank(now) != 2 {
		return 0
	}
	return r.ParkedUntil.Compare(other.ParkedUntil)
}

// due says whether a QUEUED run may be claimed, a parking that is over included.
func (r ScopeRun) due(now time.Time) bool {
	return r.ParkedReason == "" || !r.ParkedUntil.IsZero() && !r.ParkedUntil.After(now)
}

func mergeIntoQueued(f CoalesceFacts, run ScopeRun) CoalescePlan {
	plan := CoalescePlan{
		Action:  CoalesceMerge,
		RunID:   run.ID,
		Promote: needsPromotion(f.Request, run),
	}
	if !unparks(f.Request, run.ParkedReason) {
		return plan
	}
	if scopeTaken(f, run.ID) { // at most one due run in a scope, none while one is live
		plan.ParkedReason = ParkedReasonScopeBusy
		return plan
	}
	plan.MakeDue = true
	return plan
}

// unblocked says what becomes of the scope's other runs that wait for the same blockers. There may be several, because
// a run that is about more than the assignment goes past one that a blocker holds, and the request is merged into the
// former. The oldest is due when nothing of the scope is.
func unblocked(f CoalesceFacts, merged ScopeRun, plan CoalescePlan) (list []Unparked) {
	if f.Request.Source != WakeupSourceTaskBlockersResolved {
		return nil
	}
	held := slices.DeleteFunc(slices.Clone(f.Runs), func(r ScopeRun) bool {
		return r.ID == merged.ID || r.Status != RunStatusQueued || r.ParkedReason != ParkedReasonTaskBlocked
	})
	slices.SortFunc(held, func(a, b ScopeRun) int { return cmp.Or(a.RequestedAt.Compare(b.RequestedAt), cmp.Compare(a.ID, b.ID)) })
	taken := plan.MakeDue || scopeTaken(f, "")
	for _, run := range held {
		now := Unparked{RunID: run.ID}
		if taken {
			now.ParkedReason = ParkedReasonScopeBusy
		}
		list, taken = append(list, now), true
	}
	return list
}

// unparks says whether merging this request ends the parking (SPEC S3.7, S5.3). A person does not wait for a window or
// a backoff, but a person's comment waits for the rest of its burst. Any event but the assignment itself is a reason to
// look at a blocked task. No request ends a rate limit, because a new try would only meet the limit again.
func unparks(request CoalesceRequest, parked ParkedReason) bool {
	switch parked {
	case ParkedReasonWindow:
		return request.PersonWaiting
	case ParkedReasonBackoff:
		return request.PersonWaiting || request.PersonSpoke
	case ParkedReasonTaskBlocked:
		return request.Class == WakeClassEvent && !request.assignment()
	}
	return false
}

// assignment says whether the request only tells an assignee of its task, which a blocker holds back.
func (r CoalesceRequest) assignment() bool {
	return r.Source == WakeupSourceTaskAssigned && r.Basis == WakeBasisAssignee
}

// scopeTaken says whether a run of the scope other than this one is live or due.
func scopeTaken(f CoalesceFacts, runID string) bool {
	return slices.ContainsFunc(f.Runs, func(r ScopeRun) bool {
		return r.ID != runID && (r.Status == RunStatusClaimed || r.Status == RunStatusQueued && r.due(f.Now))
	})
}

// joinClaimed decides about a scope whose only run is live. A message is never merged into a prompt already sent, and a
// claimed run keeps its class, since the idle guard has already judged it (C61).
func joinClaimed(request CoalesceRequest, run ScopeRun) CoalescePlan {
	switch {
	case !run.Started && !needsPromotion(request, run):
		return CoalescePlan{Action: CoalesceMerge, RunID: run.ID}
	case run.Started && sameHeartbeat(request, run):
		return CoalescePlan{Action: CoalesceAbsorb, RunID: run.ID}
	}
	return CoalescePlan{Action: CoalesceNew, ParkedReason: ParkedReasonScopeBusy}
}

func sameHeartbeat(request CoalesceRequest, run ScopeRun) bool {
	return request.Class == WakeClassPeriodic && request.RoutineID != "" &&
		request.RoutineID == run.RoutineID && request.Fingerprint == run.Fingerprint
}

func needsPromotion(request CoalesceRequest, run ScopeRun) bool {
	return run.WakeClass == WakeClassPeriodic && request.Class == WakeClassEvent
}

// newRun is a run of its own in a scope without any: held by a blocker, or parked for the window, or due.
func newRun(f CoalesceFacts) CoalescePlan {
	if f.Request.TaskBlocked && f.Request.assignment() {
		return CoalescePlan{Action: CoalesceNew, ParkedReason: ParkedReasonTaskBlocked}
	}
	asked := f.Request.RequestedAt
	if asked.IsZero() {
		asked = f.Now
	}
	until := asked.Add(f.Window)
	if f.Request.PersonWaiting || f.Request.Resend || !until.After(f.Now) {
		return CoalescePlan{Action: CoalesceNew}
	}
	return CoalescePlan{Action: CoalesceNew, ParkedReason: ParkedReasonWindow, ParkedUntil: until}
}
