package model

// Pause holds an agent: what comes to its claim ends without a launch (S6.2).
func (w *World) Pause(a *Agent) {
	w.tick()
	w.pause(a)
}

func (w *World) pause(a *Agent) {
	if !a.Paused {
		a.Paused, a.pausedAt = true, w.clock
	}
	a.OverBudget = false // a person's pause takes the place of a budget's
}

// Resume lets it go on, and sends the events again that its hold dropped (S6.3); the fires behind them are open again.
func (w *World) Resume(a *Agent) {
	w.tick()
	if a.Paused {
		w.resume(a)
	}
}

func (w *World) resume(a *Agent) {
	a.Paused, a.OverBudget = false, false
	for _, q := range w.Requests {
		dropped := q.Ended && q.endedAt >= a.pausedAt && (q.Reason == "AGENT_INACTIVE" || q.Reason == "BUDGET_BLOCKED")
		if q.Agent != a || !q.Event || !dropped || q.stale() != "" {
			continue
		}
		q.sendAgain()
		if f := q.Fire; f != nil && f.Status == "SKIPPED" && f.Reason != "CONCURRENCY_POLICY" {
			f.Status, f.Completed, f.Reason = "ENQUEUED", false, ""
		}
	}
}
