package model

import "maps"

// Waiting says of each queued run, by its number, why it waits (SPEC S3.9), "NONE" where the next pass of the claim takes
// it or ends it: what is left after a pass on a copy of the world with workers for all.
func (w *World) Waiting() map[int]string {
	c := w.clone()
	c.promote()
	c.claimOldest(c.dueLanes(len(c.Agents)), len(c.Runs)+1)
	c.clearHeld()
	why := map[int]string{}
	for i, run := range w.Runs {
		if run.Status == "QUEUED" {
			why[run.number] = c.holdOf(c.Runs[i])
		}
	}
	return why
}

func (w *World) holdOf(run *Run) string {
	a := run.Agent
	switch {
	case run.Status != "QUEUED":
		return "NONE"
	case run.Parked != "":
		return run.Parked
	case a.running >= a.Capacity:
		return "AGENT_AT_CAPACITY"
	case a.Cooling:
		return "AGENT_COOLDOWN"
	case w.full():
		return "WORKSPACE_CEILING"
	}
	return "NONE"
}

// clone is a world of its own in the same state.
func (w *World) clone() *World {
	c := *w
	c.Agents, c.Budgets, c.Tasks = nil, nil, nil
	c.Runs, c.Requests, c.Fires = nil, nil, nil
	agents, budgets, tasks, runs, fires := map[*Agent]*Agent{}, map[*Budget]*Budget{}, map[*Task]*Task{}, map[*Run]*Run{}, map[*Fire]*Fire{}
	for _, a := range w.Agents {
		agents[a] = new(*a)
		c.Agents = append(c.Agents, agents[a])
	}
	for _, b := range w.Budgets {
		n := new(*b)
		n.Agent, n.told = agents[b.Agent], maps.Clone(b.told)
		budgets[b] = n
		c.Budgets = append(c.Budgets, n)
	}
	for _, t := range w.Tasks {
		n := new(*t)
		n.Assignee, n.Reviewers, n.Approvers = agents[t.Assignee], mapped(agents, t.Reviewers), mapped(agents, t.Approvers)
		tasks[t] = n
		c.Tasks = append(c.Tasks, n)
	}
	for _, r := range w.Runs {
		n := new(*r)
		n.Agent, n.Task, n.holds = agents[r.Agent], tasks[r.Task], nil
		for _, h := range r.holds {
			n.holds = append(n.holds, hold{budgets[h.of], h.amount})
		}
		runs[r] = n
		c.Runs = append(c.Runs, n)
	}
	for i, t := range w.Tasks {
		n := c.Tasks[i]
		n.Parent, n.Blockers, n.Holder = tasks[t.Parent], mapped(tasks, t.Blockers), runs[t.Holder]
	}
	for _, f := range w.Fires {
		fires[f] = new(*f)
		c.Fires = append(c.Fires, fires[f])
	}
	for _, q := range w.Requests {
		n := new(*q)
		n.Agent, n.Task, n.Run, n.Fire = agents[q.Agent], tasks[q.Task], runs[q.Run], fires[q.Fire]
		c.Requests = append(c.Requests, n)
	}
	c.costs = nil
	for _, x := range w.costs {
		x.run = runs[x.run]
		c.costs = append(c.costs, x)
	}
	return &c
}

func mapped[T any](to map[*T]*T, list []*T) (out []*T) {
	for _, x := range list {
		out = append(out, to[x])
	}
	return out
}
