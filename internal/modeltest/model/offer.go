package model

import "slices"

// Acquire is a worker that asks for a run of its queue (SPEC S7.1): it is given the oldest that is offered, started. What
// waits because no worker came is due again first, and what is due is offered by the call itself. Nil: there is nothing.
func (w *World) Acquire() *Run {
	w.tick()
	if run := w.takeOffer(); run != nil {
		return run
	}
	for _, a := range w.Agents {
		for _, run := range w.queue(a, func(r *Run) bool { return r.Status == "QUEUED" && r.Parked == "NO_WORKER" }) {
			run.Parked = ""
			if w.takenNow(run) {
				run.Parked = "SCOPE_BUSY"
			}
		}
	}
	w.promote()
	lanes := slices.DeleteFunc(w.dueLanes(len(w.Agents)), func(a *Agent) bool { return !a.Pulls })
	if len(lanes) == 0 || len(w.claimOldest(lanes, len(w.Runs)+1)) == 0 {
		return nil
	}
	return w.takeOffer()
}

// takeOffer starts the oldest offered run; those of paused agents are settled instead.
func (w *World) takeOffer() *Run {
	for {
		var oldest *Run
		for _, r := range w.Runs {
			if r.Offered && (oldest == nil || compare(r, oldest) < 0) {
				oldest = r
			}
		}
		if oldest == nil {
			return nil
		}
		oldest.Offered = false
		if w.start(oldest) {
			return oldest
		}
	}
}

// Withdraw is that no worker took an offer in time: it waits for one, which is neither a failure nor an abandonment.
func (w *World) Withdraw(run *Run) {
	w.tick()
	run.Parked, run.Until = "NO_WORKER", 0
	w.requeue(run)
	w.leave(run, false)
}

// Offers are the runs that wait for a worker.
func (w *World) Offers() []*Run {
	return slices.DeleteFunc(slices.Clone(w.Runs), func(r *Run) bool { return !r.Offered })
}
