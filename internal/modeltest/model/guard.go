package model

import "slices"

// over is why nothing is to be done about a task any more, "" while there is.
func (t *Task) over() string {
	switch {
	case t.State == "DONE":
		return "TASK_DONE"
	case t.State == "CANCELLED", t.Archived:
		return "TASK_CANCELLED"
	}
	return ""
}

// stale is why a request has lost its reason: its task is over, or its agent has no more the part in which it was woken
// (SPEC S6.2, S8.3).
func (q *Request) stale() string {
	if q.Task == nil {
		return ""
	}
	reason := q.Task.over()
	switch {
	case reason != "" || q.Basis == "EXPLICIT":
	case q.Basis == "REVIEWER" && !slices.Contains(q.Task.Reviewers, q.Agent), q.Basis == "APPROVER" && !slices.Contains(q.Task.Approvers, q.Agent):
		reason = "REVIEW_PARTICIPANT_CHANGED"
	case q.Basis != "REVIEWER" && q.Basis != "APPROVER" && q.Task.Assignee != q.Agent:
		reason = "ASSIGNEE_CHANGED"
	}
	return reason
}

// dropStale ends the requests of a run that have lost their reason; the answer is why the run ends too, "" when something
// is left of it. Of several reasons it is that of the first kind of request, in the order of their names.
func (w *World) dropStale(run *Run) string {
	first, kind, left := "", "", 0
	for _, q := range w.requestsOf(run) {
		reason := q.stale()
		if reason == "" {
			left++
			continue
		}
		if run.Retries > 0 && reason == "ASSIGNEE_CHANGED" {
			reason = "RETRY_STALE_ASSIGNEE"
		}
		if run.Retries > 0 && reason == "TASK_CANCELLED" {
			reason = "RETRY_TASK_CANCELLED"
		}
		if name := q.Source + ":" + q.Basis; kind == "" || name < kind {
			first, kind = reason, name
		}
		w.end(q, "CANCELLED", reason, "CANCELLED")
	}
	if left > 0 {
		return ""
	}
	return first
}

// refuse runs the guards on a lane's head in their order and does what they say; false: it may be launched (S6.2).
func (w *World) refuse(run *Run) bool {
	a, t := run.Agent, run.Task
	if a.Paused {
		w.settle(run, "FINISHED", "agent_inactive", "FINISHED", "AGENT_INACTIVE")
		return true
	}
	if reason := w.dropStale(run); reason != "" {
		w.settle(run, "CANCELLED", "", "CANCELLED", reason)
		return true
	}
	onlyAssigned := !slices.ContainsFunc(w.requestsOf(run), func(q *Request) bool { return q.Source != "TASK_ASSIGNED" || q.Basis != "ASSIGNEE" })
	switch {
	case t != nil && onlyAssigned && len(t.open()) > 0:
		run.Parked = "TASK_BLOCKED"
		w.release(run)
	case !run.Event && a.SkipsIdle && !w.hasWork(a):
		w.settle(run, "FINISHED", "idle_skipped", "FINISHED", "IDLE_SKIPPED")
	case t != nil && t.Holder != nil && t.Holder != run:
		w.settle(run, "FINISHED", "checkout_held", "SKIPPED", "CHECKOUT_HELD")
	default:
		return w.overBudget(run)
	}
	return true
}

func (w *World) hasWork(a *Agent) bool {
	return slices.ContainsFunc(w.Tasks, func(t *Task) bool {
		return t.Assignee == a && !t.Archived && (t.State == "TODO" || t.State == "IN_PROGRESS")
	})
}

// free gives back the task that a run holds, and sends again what its lock made skip (S5.6).
func (w *World) free(run *Run) {
	t := run.Task
	if t == nil || t.Holder != run {
		return
	}
	t.Holder = nil
	for _, q := range w.Requests {
		if q.Task == t && q.Status == "SKIPPED" && q.Reason == "CHECKOUT_HELD" {
			q.sendAgain()
		}
	}
}

// sendAgain puts an ended request back, at its place (S3.6).
func (q *Request) sendAgain() {
	q.Status, q.Run, q.Delivered, q.Ended, q.Reason = "QUEUED", nil, false, false, ""
	q.Resends++
}

// Recover sends the assignees of tasks that were never begun their assignment again, once each (S8.5).
func (w *World) Recover() (sent int) {
	w.tick()
	for _, t := range w.Tasks {
		if t.State != "TODO" || t.Archived || !t.Office() || t.Assignee == nil || t.Assignee.Paused || t.recovered[t.Version] || len(t.open()) > 0 ||
			slices.ContainsFunc(w.Runs, func(r *Run) bool { return w.begun(t, r) }) || slices.ContainsFunc(w.Requests, t.underWay) || w.spent(t) {
			continue
		}
		t.recovered[t.Version] = true
		w.send(t, t.Assignee, "TASK_ASSIGNED", "ASSIGNEE", By{}).Recovered = true
		sent++
	}
	return sent
}

// begun says whether a run keeps the sweep away from the task: it will do the work or has done it, or a person cancelled
// it since the last assignment. One that a guard ended does not.
func (w *World) begun(t *Task, r *Run) bool {
	if r.Task != t {
		return false
	}
	return !r.ended() || r.Status == "FINISHED" && r.Outcome == "processed" || r.Reason == "CANCELLED_BY_USER" && r.endedAt >= w.told(t)
}

// told is when the assignee was last told that the task is its own, but for the sweep's telling.
func (w *World) told(t *Task) int {
	at := t.made
	for _, q := range w.Requests {
		if q.Task == t && q.Agent == t.Assignee && q.Source == "TASK_ASSIGNED" && q.Basis == "ASSIGNEE" && !q.Recovered {
			at = max(at, q.asked)
		}
	}
	return at
}

func (t *Task) underWay(q *Request) bool {
	return q.Task == t && (q.Status == "QUEUED" || q.Status == "CLAIMED" || q.Status == "SKIPPED" && q.Reason == "CHECKOUT_HELD")
}
