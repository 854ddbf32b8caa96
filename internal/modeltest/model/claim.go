package model

import "slices"

// Claim takes the oldest due runs of all, at most so many; none only when nothing may be taken (S6.1). Runs that workers
// execute are offered to them instead (S7.1).
func (w *World) Claim(most int) []*Run {
	w.tick()
	w.promote()
	for {
		lanes := w.dueLanes(most)
		if len(lanes) == 0 {
			w.clearHeld()
			return nil
		}
		taken := slices.DeleteFunc(w.claimOldest(lanes, most), func(r *Run) bool { return r.Offered })
		if len(taken) > 0 {
			return taken
		}
	}
}

// claimOldest takes from the lanes that were found, the oldest run first. When there may be more lanes than were found,
// it stops before a run that is newer than the newest of their heads, since one of another lane may be older.
func (w *World) claimOldest(lanes []*Agent, most int) (taken []*Run) {
	var newest *Run
	if len(lanes) == most {
		newest = w.head(lanes[most-1])
	}
	for len(taken) < most && !w.full() {
		lanes = slices.DeleteFunc(lanes, func(a *Agent) bool { return w.head(a) == nil || a.Paused || a.running >= a.Capacity })
		if len(lanes) == 0 {
			break
		}
		a := slices.MinFunc(lanes, func(a, b *Agent) int { return compare(w.head(a), w.head(b)) })
		if newest != nil && compare(w.head(a), newest) > 0 {
			break
		}
		if run := w.claimHead(a); run != nil {
			taken = append(taken, run)
		}
	}
	return taken
}

// clearHeld ends what paused agents have due: that takes neither a session nor a place, and no rest is waited for.
func (w *World) clearHeld() {
	for _, a := range w.Agents {
		if !a.Paused {
			continue
		}
		for _, run := range w.queue(a, (*Run).due) { // what waited behind them is due now, and ends at the next claim
			w.refuse(run)
		}
	}
}

func (w *World) full() bool { return w.Ceiling > 0 && w.running() >= w.Ceiling }

// promote makes due whose parking is over; beside a live or due run of its scope it waits for that.
func (w *World) promote() {
	for _, a := range w.Agents {
		for _, run := range w.queue(a, func(r *Run) bool { return r.Status == "QUEUED" && r.Over }) {
			run.Parked, run.Until, run.Over = "", 0, false
			if w.takenNow(run) {
				run.Parked = "SCOPE_BUSY"
			}
		}
	}
}

// takenNow says whether another run of the scope is live or due.
func (w *World) takenNow(run *Run) bool {
	return slices.ContainsFunc(w.Runs, func(r *Run) bool {
		return r != run && r.Agent == run.Agent && r.Scope == run.Scope && (r.Status == "CLAIMED" || r.due())
	})
}

func (w *World) dueLanes(most int) []*Agent {
	var lanes []*Agent
	for _, a := range w.Agents {
		if !w.full() && !a.Paused && w.head(a) != nil && a.running < a.Capacity && !a.Cooling {
			lanes = append(lanes, a)
		}
	}
	slices.SortFunc(lanes, func(a, b *Agent) int { return compare(w.head(a), w.head(b)) })
	return lanes[:min(most, len(lanes))]
}

// claimHead takes the agent's oldest due run, unless a guard refuses it (S6.2), and starts it, if it is the program itself that
// executes it.
func (w *World) claimHead(a *Agent) *Run {
	run := w.head(a)
	if w.refuse(run) {
		return nil
	}
	run.Status, run.Started, run.Offered = "CLAIMED", false, a.Pulls
	run.Attempt++
	a.running++
	if run.Task != nil {
		run.Task.Holder = run
	}
	w.hold(run)
	for _, q := range w.requestsOf(run) {
		if q.Status == "QUEUED" {
			q.Status = "CLAIMED"
		}
	}
	if !a.Pulls && !a.NoExecutor {
		w.launch(run)
	}
	return run
}

// settle ends a run that is not launched, and all its requests alike (S3.8).
func (w *World) settle(run *Run, status, outcome, request, reason string) {
	w.endRun(run, status, outcome, reason)
	fire := "SKIPPED"
	if request == "CANCELLED" || request == "FAILED" {
		fire = request
	}
	for _, q := range w.requestsOf(run) {
		w.end(q, request, reason, fire)
	}
	w.release(run)
}

func (w *World) endRun(run *Run, status, outcome, reason string) {
	run.Status, run.Outcome, run.Reason = status, outcome, reason
	run.Parked, run.Until, run.Over, run.Offered = "", 0, false, false
	run.endedAt = w.clock
}

// release makes the scope's oldest run that waits for it due, when none is live or due any more.
func (w *World) release(left *Run) {
	same := func(r *Run) bool { return r.Scope == left.Scope }
	if w.live(left.Agent, left.Scope) != nil || len(w.queue(left.Agent, func(r *Run) bool { return same(r) && r.due() })) > 0 {
		return
	}
	if busy := w.queue(left.Agent, func(r *Run) bool { return same(r) && r.Parked == "SCOPE_BUSY" }); len(busy) > 0 {
		busy[0].Parked = ""
	}
}
