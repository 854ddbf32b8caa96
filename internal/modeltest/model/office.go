package model

import (
	"fmt"
	"slices"
	"strings"
)

// Office is what there is to compare of tasks, of the wakes about them and of money, a line for each record besides State.
func (w *World) Office() []string {
	var lines []string
	for _, t := range w.Tasks {
		var open []string
		for _, b := range w.Tasks {
			if slices.Contains(t.open(), b) {
				open = append(open, fmt.Sprint(b.number))
			}
		}
		holder := 0
		if t.Holder != nil {
			holder = t.Holder.number
		}
		lines = append(lines, fmt.Sprintf("task %d %s archived=%t office=%t assignee=%d version=%d held=%d asking=%t open=%s",
			t.number, t.State, t.Archived, t.Office(), w.agentNumber(t.Assignee), t.Version, holder, t.asking, strings.Join(open, ",")))
	}
	for i, q := range w.Requests {
		task := 0
		if q.Task != nil {
			task = q.Task.number
		}
		lines = append(lines, fmt.Sprintf("wake %d %s %s agent=%d task=%d recovered=%t", i+1, q.Source, q.Basis, w.agentNumber(q.Agent), task, q.Recovered))
	}
	for i, a := range w.Agents {
		why := "none"
		switch {
		case a.OverBudget:
			why = "BUDGET"
		case a.Paused:
			why = "USER"
		}
		lines = append(lines, fmt.Sprintf("agent %d paused=%s", i+1, why))
	}
	n := 0
	for _, b := range w.Budgets {
		if b.Gone {
			continue
		}
		n++
		alerted := 0
		if len(b.alerted) > 0 && !(b.Periodic && b.period != w.period) {
			alerted = slices.Max(b.alerted)
		}
		lines = append(lines, fmt.Sprintf("budget %d limit=%d spent=%d reserved=%d alerted=%d", n, b.Limit, w.Spent(b), b.reserved, alerted))
	}
	for n, why := range w.Waiting() {
		lines = append(lines, fmt.Sprintf("run %d waits for %s", n, why))
	}
	return lines
}

func (w *World) agentNumber(a *Agent) int {
	for i, x := range w.Agents {
		if x == a {
			return i + 1
		}
	}
	return 0
}
