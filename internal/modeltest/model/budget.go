package model

import "slices"

// Budget bounds what a workspace, one of its projects or one of its agents spends: of a period, or for ever. Amounts are
// millionths (SPEC S6.5).
type Budget struct {
	Agent      *Agent // nil: of a project or the workspace
	Project    int    // 0: of the workspace or an agent
	Limit      int
	Pauses     bool // else it only tells
	Periodic   bool
	Thresholds []int // percent, rising

	Gone     bool
	told     map[[2]int]bool // period and threshold
	reserved int
	alerted  []int // thresholds told of in this period
	period   int   // of alerted
}

// hold is what a live run reserves of a budget.
type hold struct {
	of     *Budget
	amount int
}

// cost is what an attempt has cost.
type cost struct {
	run             *Run
	project, period int
	amount          int
}

// history is how many of the last runs tell what the next one will cost.
const history = 10

// Spent is what a budget has spent in its period.
func (w *World) Spent(b *Budget) (sum int) {
	for _, c := range w.costs {
		if (!b.Periodic || c.period == w.period) && b.applies(c.run.Agent, c.project) {
			sum += c.amount
		}
	}
	return sum
}

func (b *Budget) applies(a *Agent, project int) bool {
	return !b.Gone && (b.Agent == nil || b.Agent == a) && (b.Project == 0 || b.Project == project)
}

func (w *World) exceeded(b *Budget) bool { return w.Spent(b) >= b.Limit }

// room is what is left of a budget besides what live runs hold.
func (w *World) room(b *Budget) int { return max(b.Limit-w.Spent(b)-b.reserved, 0) }

// budgetsOf is the budgets that hold up a run.
func (w *World) budgetsOf(run *Run) []*Budget {
	return slices.DeleteFunc(slices.Clone(w.Budgets), func(b *Budget) bool { return !b.Pauses || !b.applies(run.Agent, run.project()) })
}

func (r *Run) project() int {
	if r.Task == nil {
		return 0
	}
	return r.Task.Project
}

// overBudget ends a run whose budget is spent, and pauses its agent; it parks one that only what live runs hold stands in
// the way of.
func (w *World) overBudget(run *Run) bool {
	budgets := w.budgetsOf(run)
	switch {
	case slices.ContainsFunc(budgets, w.exceeded):
		w.pause(run.Agent)
		run.Agent.OverBudget = true
		w.settle(run, "FINISHED", "budget_blocked", "SKIPPED", "BUDGET_BLOCKED")
	case slices.ContainsFunc(budgets, func(b *Budget) bool { return w.room(b) == 0 }):
		run.Parked, run.Until = "BUDGET_RESERVED", 30*second+w.clock
		w.release(run)
	default:
		return false
	}
	return true
}

// hold reserves what a claimed run is expected to cost: the mean of its agent's last runs; for an agent without any, of the
// last attempts of the workspace; and where nobody knows, all that is left of budgets that hold runs up.
func (w *World) hold(run *Run) {
	w.reserveOf(run, w.Budgets...)
}

func (w *World) reserveOf(run *Run, budgets ...*Budget) {
	amount, known := w.expected(run.Agent)
	for _, b := range budgets {
		if !b.applies(run.Agent, run.project()) {
			continue
		}
		h := hold{of: b, amount: amount}
		if !known && b.Pauses {
			h.amount = w.room(b)
		}
		b.reserved += h.amount
		run.holds = append(run.holds, h)
	}
}

func (w *World) expected(a *Agent) (amount int, known bool) {
	runs := slices.DeleteFunc(slices.Clone(w.Runs), func(r *Run) bool { return r.Agent != a || !r.ended() || !r.Started })
	slices.SortStableFunc(runs, func(x, y *Run) int { return y.endedAt - x.endedAt })
	var last []int
	for _, r := range runs[:min(len(runs), history)] {
		last = append(last, r.cost)
	}
	for i := len(w.costs) - 1; i >= 0 && len(runs) == 0 && len(last) < history; i-- {
		last = append(last, w.costs[i].amount)
	}
	if len(last) == 0 {
		return 0, false
	}
	sum := len(last) - 1 // rounded up
	for _, n := range last {
		sum += n
	}
	return sum / len(last), true
}

// charge ends what an attempt held of budgets, and books what it really cost instead.
func (w *World) charge(run *Run) {
	held, spent := run.holds, run.Spends
	run.holds, run.Spends = nil, 0
	before := w.rooms()
	for _, h := range held {
		h.of.reserved -= h.amount
	}
	if spent > 0 {
		run.cost += spent
		w.costs = append(w.costs, cost{run: run, project: run.project(), period: w.period, amount: spent})
	}
	for _, b := range w.Budgets {
		if spent > 0 && b.applies(run.Agent, run.project()) || slices.ContainsFunc(held, func(h hold) bool { return h.of == b }) {
			w.alert(b, run.Agent, run.Hops+1)
		}
	}
	w.wakeReserved(before)
}

// alert tells the coordinator of the thresholds that a budget has crossed, each once in a period.
func (w *World) alert(b *Budget, about *Agent, hops int) {
	if b.Gone {
		return
	}
	if b.Periodic && b.period != w.period {
		b.period, b.alerted = w.period, nil
	}
	for _, percent := range b.Thresholds {
		if slices.Contains(b.alerted, percent) || w.Spent(b)*100 < b.Limit*percent {
			continue
		}
		b.alerted = append(b.alerted, percent)
		once := [2]int{-1, percent} // of a budget for ever
		if b.Periodic {
			once[0] = w.period
		}
		if c := w.Agents[0]; c != about && !b.told[once] {
			b.told[once] = true
			w.insert(&Request{Agent: c, Source: "BUDGET_ALERT", Scope: "taskless", Event: true, Hops: hops})
		}
	}
}

// rooms is what is left of each budget that holds runs up.
func (w *World) rooms() map[*Budget]int {
	left := map[*Budget]int{}
	for _, b := range w.Budgets {
		if b.Pauses && !b.Gone {
			left[b] = w.room(b)
		}
	}
	return left
}

// wakeReserved lets those look again at once who wait for what live runs hold, when there is more left of one of their
// budgets than there was.
func (w *World) wakeReserved(before map[*Budget]int) {
	now := w.rooms()
	for _, run := range w.Runs {
		if run.Status != "QUEUED" || run.Parked != "BUDGET_RESERVED" {
			continue
		}
		for b, room := range before {
			freed := !b.Gone && !b.Pauses || b.Gone || now[b] > room && now[b] > 0
			if wasOf := (b.Agent == nil || b.Agent == run.Agent) && (b.Project == 0 || b.Project == run.project()); wasOf && freed {
				run.Over = true
			}
		}
	}
}

// SetBudget sets the budget of a subject: now is what it becomes. Agents that no budget holds any more go on.
func (w *World) SetBudget(now Budget) {
	w.tick()
	before := w.rooms()
	b := w.budgetOf(now.Agent, now.Project)
	made := b == nil
	if made {
		b = &Budget{Agent: now.Agent, Project: now.Project, Periodic: now.Periodic, told: map[[2]int]bool{}, period: w.period}
		w.Budgets = append(w.Budgets, b)
	}
	if b.Periodic != now.Periodic {
		b.alerted = nil
	}
	if now.Periodic && b.period != w.period {
		b.alerted = nil
	}
	b.Limit, b.Pauses, b.Periodic, b.Thresholds, b.period = now.Limit, now.Pauses, now.Periodic, now.Thresholds, w.period
	if made { // what is live reserves of it, too
		live := slices.DeleteFunc(slices.Clone(w.Runs), func(r *Run) bool { return r.Status != "CLAIMED" })
		slices.SortFunc(live, compare)
		for _, run := range live {
			w.reserveOf(run, b)
		}
	}
	w.alert(b, b.Agent, 0)
	w.wakeReserved(before)
	w.resumeHeld()
}

func (w *World) budgetOf(a *Agent, project int) *Budget {
	for _, b := range w.Budgets {
		if !b.Gone && b.Agent == a && b.Project == project {
			return b
		}
	}
	return nil
}

// DropBudget deletes a budget with its holds.
func (w *World) DropBudget(b *Budget) {
	w.tick()
	before := w.rooms()
	b.Gone = true
	for _, run := range w.Runs {
		run.holds = slices.DeleteFunc(run.holds, func(h hold) bool { return h.of == b })
	}
	w.wakeReserved(before)
	w.resumeHeld()
}

// Turn lets the period end; SweepBudgets notices it, and resumes whom no budget holds any more.
func (w *World) Turn() { w.period++ }

// SweepBudgets is the sweep over budgets.
func (w *World) SweepBudgets() {
	w.tick()
	before := w.swept()
	for _, b := range w.Budgets {
		w.alert(b, nil, 0)
	}
	w.wakeReserved(before)
	w.resumeHeld()
}

// swept is the rooms as they were before a period that nobody has looked at since it began.
func (w *World) swept() map[*Budget]int {
	before := w.rooms()
	for b := range before {
		if b.Periodic && b.period != w.period {
			before[b] = -1
		}
	}
	return before
}

// resumeHeld resumes the agents that no budget of theirs holds any more: the workspace's, their own, and those of the
// projects whose wakes were blocked.
func (w *World) resumeHeld() {
	for _, a := range w.Agents {
		if !a.Paused || !a.OverBudget {
			continue
		}
		blocked := func(project int) bool {
			return slices.ContainsFunc(w.Requests, func(q *Request) bool {
				return q.Agent == a && q.Reason == "BUDGET_BLOCKED" && q.endedAt >= a.pausedAt && q.Task != nil && q.Task.Project == project
			})
		}
		holds := func(b *Budget) bool {
			return !b.Gone && b.Pauses && (b.Agent == nil || b.Agent == a) && (b.Project == 0 || blocked(b.Project)) && w.exceeded(b)
		}
		if !slices.ContainsFunc(w.Budgets, holds) {
			w.resume(a)
		}
	}
}

// spent says whether a budget of a task's assignee is exceeded that would hold it up.
func (w *World) spent(t *Task) bool {
	return slices.ContainsFunc(w.Budgets, func(b *Budget) bool { return b.Pauses && b.applies(t.Assignee, t.Project) && w.exceeded(b) })
}
