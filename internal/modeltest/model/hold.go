package model

// Pause holds an agent: what comes to its claim ends without a launch (S6.2).
func (w *World) Pause(a *Agent) {
	w.tick()
	if !a.Paused {
		a.Paused, a.pausedAt = true, w.clock
	}
}

// Resume lets it go on, and sends the events again that its hold dropped (S6.3); the fires behind them are open again.
func (w *World) Resume(a *Agent) {
	w.tick()
	if !a.Paused {
		return
	}
	a.Paused = false
	for _, q := range w.Requests {
		if q.Agent != a || !q.Event || !q.Ended || q.Reason != "AGENT_INACTIVE" || q.endedAt < a.pausedAt {
			continue
		}
		q.Status, q.Run, q.Delivered, q.Ended, q.Reason = "QUEUED", nil, false, false, ""
		q.Resends++
		if f := q.Fire; f != nil && f.Status == "SKIPPED" && f.Reason == "AGENT_INACTIVE" {
			f.Status, f.Completed, f.Reason = "ENQUEUED", false, ""
		}
	}
}
