package model

// Live says whether this attempt of the run may still report: any other report must change nothing (SPEC S7.7).
func (r *Run) Live(attempt int) bool { return r.Status == "CLAIMED" && r.Attempt == attempt }

// Start assembles the prompt and writes its receipts (S3.6); false when the run was settled instead.
func (w *World) Start(run *Run) bool {
	w.tick()
	return w.start(run)
}

func (w *World) start(run *Run) bool {
	switch {
	case run.CancelAsked:
		w.settle(run, "CANCELLED", "", "CANCELLED", "CANCELLED_BY_USER")
	case run.Agent.Paused:
		w.settle(run, "FINISHED", "agent_inactive", "FINISHED", "AGENT_INACTIVE")
	default:
		if reason := w.dropStale(run); reason != "" {
			w.settle(run, "CANCELLED", "", "CANCELLED", reason)
			break
		}
		if run.Agent.NoExecutor {
			w.giveUp(run, "NO_EXECUTOR")
			return false
		}
		w.launch(run)
		return true
	}
	w.leave(run, false)
	return false
}

// launch gives the agent all that the run is for.
func (w *World) launch(run *Run) {
	run.Started = true
	for _, q := range w.requestsOf(run) {
		q.Delivered = true
	}
}

// Finish ends a started run well, with what its result asks for.
func (w *World) Finish(run *Run, acts ...Act) {
	w.tick()
	for _, a := range acts {
		w.act(run, a)
	}
	w.completeByDefault(run, acts)
	w.resend(run)
	for _, q := range w.requestsOf(run) {
		w.end(q, served(q, "FINISHED"), "", "DONE")
	}
	w.endRun(run, "FINISHED", "processed", "")
	w.leave(run, true)
	w.dropWaiting()
}

// served is the status of a request whose run was launched: merged ones keep theirs (S3.8).
func served(q *Request, status string) string {
	if q.Status == "COALESCED" {
		return q.Status
	}
	return status
}

// resend returns events that no prompt contained to the router (S3.6).
func (w *World) resend(run *Run) {
	for _, q := range w.requestsOf(run) {
		if q.Event && !q.Delivered {
			q.sendAgain()
		}
	}
}

// Fail ends an attempt badly (S8.1): a retry, or after four of them, or when it is for good, the end. A rate limit is no
// failure and leaves their count (S8.2).
func (w *World) Fail(run *Run, forGood, rateLimited bool) {
	w.tick()
	launched := run.Started
	switch {
	case run.CancelAsked:
		w.cancelLive(run)
		return
	case forGood || !rateLimited && run.Retries >= len(backoffs):
		w.giveUp(run, "RETRIES_EXHAUSTED")
		return
	case rateLimited:
		run.Until, run.Parked = w.clock+rateLimitEnd, "RATE_LIMIT"
		w.requeue(run)
	default:
		run.Until, run.Parked = w.clock+backoffs[run.Retries], "BACKOFF"
		run.Retries++
		w.requeue(run)
		for _, q := range w.requestsOf(run) {
			q.Retries++
		}
	}
	w.leave(run, launched)
}

func (w *World) requeue(run *Run) {
	run.Status, run.Started, run.Offered = "QUEUED", false, false
	for _, q := range w.requestsOf(run) {
		if q.Status == "CLAIMED" {
			q.Status = "QUEUED"
		}
	}
}

// giveUp ends a run FAILED and tells the coordinator. What was launched sends undelivered events again; what was not ends
// all its requests alike.
func (w *World) giveUp(run *Run, reason string) {
	launched := run.Started
	if launched {
		w.resend(run)
	}
	for _, q := range w.requestsOf(run) {
		status := "FAILED"
		if launched {
			status = served(q, status)
		}
		w.end(q, status, reason, "FAILED")
	}
	w.endRun(run, "FAILED", "", reason)
	if c := run.Agent.Coordinator; c != nil && c != run.Agent {
		w.insert(&Request{Agent: c, Source: "AGENT_ERROR", Scope: "taskless", Event: true, Hops: run.Hops + 1})
	}
	w.leave(run, launched)
}

// Cancel is a person's wish (S7.7); false when the run has ended already.
func (w *World) Cancel(run *Run) bool {
	w.tick()
	switch run.Status {
	case "QUEUED":
		w.settle(run, "CANCELLED", "", "CANCELLED", "CANCELLED_BY_USER")
		return true
	case "CLAIMED":
		run.CancelAsked = true
		if run.Offered { // nobody is there to obey
			w.cancelLive(run)
		}
		return true
	}
	return false
}

// Cancelled is that the owner has ended the agent, as was asked.
func (w *World) Cancelled(run *Run) {
	w.tick()
	w.cancelLive(run)
}

func (w *World) cancelLive(run *Run) {
	launched := run.Started
	if launched {
		w.resend(run)
	}
	for _, q := range w.requestsOf(run) {
		w.end(q, "CANCELLED", "CANCELLED_BY_USER", "CANCELLED")
	}
	w.endRun(run, "CANCELLED", "", "CANCELLED_BY_USER")
	w.leave(run, launched)
}

// HandBack returns a live attempt to the queue.
func (w *World) HandBack(run *Run) {
	w.tick()
	if run.CancelAsked {
		w.cancelLive(run)
		return
	}
	w.requeue(run)
	w.leave(run, false)
}

// Abandon ends an attempt whose owner is gone (S8.4): due again when it had not launched, else after a wait, and given up
// the fifth time.
func (w *World) Abandon(run *Run) {
	w.tick()
	switch {
	case run.CancelAsked:
		w.cancelLive(run)
		return
	case !run.Started:
		w.requeue(run)
		w.leave(run, false)
		return
	}
	if run.Abandonments++; run.Abandonments >= maxLost {
		w.giveUp(run, "RETRIES_EXHAUSTED")
		return
	}
	run.Parked, run.Until = "BACKOFF", lossWaits[run.Abandonments-1]+w.clock
	w.requeue(run)
	w.leave(run, true)
}

// Retry is a person's wish that a run be tried now (S8.7); false when it is refused.
func (w *World) Retry(run *Run) bool {
	w.tick()
	switch run.Status {
	case "QUEUED":
		if run.Parked == "SCOPE_BUSY" || run.Parked == "TASK_BLOCKED" && len(run.Task.open()) > 0 {
			return false
		}
		if run.Parked != "" {
			run.Parked, run.Until, run.Over = "", 0, false
			if w.takenNow(run) {
				run.Parked = "SCOPE_BUSY"
			}
		}
		run.Retries, run.Abandonments = 0, 0
		for _, q := range w.requestsOf(run) {
			q.Retries = 0
		}
		return true
	case "FAILED", "CANCELLED":
		return w.retryEnded(run)
	}
	return false
}

// retryEnded sends again what a run ended with and still has its reason.
func (w *World) retryEnded(run *Run) (sent bool) {
	for _, q := range w.Requests {
		if q.Run != run || !q.Ended || q.stale() != "" {
			continue
		}
		q.sendAgain()
		q.Retries, sent = 0, true
		if f := q.Fire; f != nil && f.Completed && (f.Status == "FAILED" || f.Status == "CANCELLED") {
			f.Status, f.Completed, f.Reason = "ENQUEUED", false, ""
		}
	}
	return sent
}

// leave is every way out of CLAIMED; the cooldown follows launched attempts only.
func (w *World) leave(run *Run, launched bool) {
	run.Agent.running--
	run.Agent.Cooling = run.Agent.Cooling || launched && run.Agent.Cools
	w.release(run)
	w.free(run)
	w.charge(run)
}

// Pass lets the time pass until which a run is parked; Cool that of an agent's cooldown.
func (w *World) Pass(run *Run) { run.Over = run.Status == "QUEUED" && run.Until > 0 }

// Cool ends an agent's cooldown.
func (w *World) Cool(a *Agent) { a.Cooling = false }
