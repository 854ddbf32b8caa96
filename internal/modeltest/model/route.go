package model

import (
	"math"
	"slices"
)

// Ask inserts a request, unrouted.
func (w *World) Ask(q *Request) {
	w.tick()
	w.insert(q)
}

// Wake inserts a request and routes it in one step, since nobody holds the lane.
func (w *World) Wake(q *Request) {
	w.tick()
	w.insert(q)
	w.routeAll(q.Agent)
}

func (w *World) insert(q *Request) {
	w.inserted++
	q.Status, q.asked, q.place = "QUEUED", w.clock, w.clock*perStep+w.inserted%perStep
	w.Requests = append(w.Requests, q)
}

// Route turns the agent's unrouted requests into runs, oldest first (SPEC S3.2, S3.5).
func (w *World) Route(a *Agent) {
	w.tick()
	w.routeAll(a)
}

func (w *World) routeAll(a *Agent) {
	var unrouted []*Request
	for _, q := range w.Requests {
		if q.Agent == a && q.Status == "QUEUED" && q.Run == nil {
			unrouted = append(unrouted, q)
		}
	}
	slices.SortStableFunc(unrouted, func(x, y *Request) int { return x.asked - y.asked })
	for _, q := range unrouted {
		w.route(q)
	}
}

func (w *World) route(q *Request) {
	if q.Hops > maxHops { // S3.10
		w.end(q, "SKIPPED", "HOP_LIMIT", "SKIPPED")
		return
	}
	waiting, live := w.waiting(q.Agent, q.Scope), w.live(q.Agent, q.Scope)
	switch {
	case waiting != nil:
		w.merge(q, waiting)
		w.hasten(q, waiting)
		w.unblock(q)
	case live == nil && q.assignment() && len(q.Task.open()) > 0:
		w.newRun(q, "TASK_BLOCKED")
	case live == nil:
		w.newRun(q, "")
	case !live.Started && (live.Event || !q.Event):
		w.merge(q, live)
	case live.Started && !q.Event && q.Routine != nil && q.Routine == live.Routine && q.Fingerprint == live.Fingerprint:
		w.merge(q, live) // the same heartbeat
	default:
		w.newRun(q, "SCOPE_BUSY")
	}
}

func (w *World) live(a *Agent, scope string) *Run {
	for _, r := range w.Runs {
		if r.Agent == a && r.Scope == scope && r.Status == "CLAIMED" {
			return r
		}
	}
	return nil
}

// waiting is the scope's queued run that will be due first: one that is, one behind a live run, one with a date.
func (w *World) waiting(a *Agent, scope string) *Run {
	runs := w.queue(a, func(r *Run) bool { return r.Scope == scope && r.Status == "QUEUED" })
	if len(runs) == 0 {
		return nil
	}
	rank := func(r *Run) int {
		switch {
		case r.soon():
			return 0
		case r.Parked == "SCOPE_BUSY":
			return 1
		case r.Until == 0: // without a date
			return math.MaxInt
		}
		return 1 + r.Until
	}
	slices.SortStableFunc(runs, func(x, y *Run) int { return rank(x) - rank(y) })
	return runs[0]
}

// merge links a request to a run that is there; an event raises a queued run's class for good.
func (w *World) merge(q *Request, run *Run) {
	q.Status, q.Run = "COALESCED", run
	run.Merged++
	run.Hops = max(run.Hops, q.Hops) // a chain that merges into a younger run counts on (S3.10)
	if run.Status == "QUEUED" && q.Event {
		run.Event = true
	}
}

// hasten ends a window or a backoff for a person (S3.7), and the wait for blockers for any event but the assignment that
// they hold back (S5.3); beside a live or due run of the scope it waits for that.
func (w *World) hasten(q *Request, run *Run) {
	switch run.Parked {
	case "WINDOW":
		if !q.Person {
			return
		}
	case "BACKOFF":
		if !q.Person && (q.Source != "COMMENT" || q.Hops > 0) {
			return
		}
	case "TASK_BLOCKED":
		if !q.Event || q.assignment() {
			return
		}
	default:
		return
	}
	run.Parked, run.Until, run.Over = "", 0, false
	if w.taken(run) {
		run.Parked = "SCOPE_BUSY"
	}
}

// unblock ends the wait of all runs of the scope for blockers that are gone, also of those that the request was not merged
// into: else nothing would tell them (S5.3).
func (w *World) unblock(q *Request) {
	if q.Source != "TASK_BLOCKERS_RESOLVED" {
		return
	}
	for _, run := range w.queue(q.Agent, func(r *Run) bool { return r.Scope == q.Scope && r.Parked == "TASK_BLOCKED" }) {
		run.Parked = ""
		if w.taken(run) {
			run.Parked = "SCOPE_BUSY"
		}
	}
}

// assignment says whether a request only tells an assignee of its task.
func (q *Request) assignment() bool { return q.Source == "TASK_ASSIGNED" && q.Basis == "ASSIGNEE" }

// taken says whether another run of the scope is live or due.
func (w *World) taken(run *Run) bool {
	return slices.ContainsFunc(w.Runs, func(r *Run) bool {
		return r != run && r.Agent == run.Agent && r.Scope == run.Scope && (r.Status == "CLAIMED" || r.soon())
	})
}

func (w *World) newRun(q *Request, parked string) {
	run := &Run{Agent: q.Agent, Scope: q.Scope, Event: q.Event, Routine: q.Routine, Fingerprint: q.Fingerprint, Hops: q.Hops, Retries: q.Retries, Task: q.Task,
		Status: "QUEUED", Parked: parked, Merged: 1, place: w.clock * perStep, number: len(w.Runs) + 1}
	if q.Resends > 0 {
		run.place = q.place
	}
	if parked == "" && w.Windowed && !q.Person && q.Resends == 0 {
		run.Parked, run.Until = "WINDOW", window+q.asked
	}
	q.Run = run
	w.Runs = append(w.Runs, run)
	if q.Fire != nil && q.Fire.Status == "COALESCED" { // a run of its own all the same: it is active as long as that (S4.6)
		q.Fire.Completed = false
	}
}

// end ends a request, and the fire that asked.
func (w *World) end(q *Request, status, reason, fire string) {
	q.endedAt = w.clock
	q.Status, q.Reason, q.Ended = status, reason, true
	if q.Fire != nil && !q.Fire.Completed {
		q.Fire.Completed = true
		if q.Fire.Status == "COALESCED" {
			return
		}
		q.Fire.Status = fire
		if fire != "DONE" && fire != "FAILED" {
			q.Fire.Reason = reason
		}
	}
}
