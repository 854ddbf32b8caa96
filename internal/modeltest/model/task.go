package model

import (
	"fmt"
	"slices"
)

// Task is something to do. Blockers are all that it was linked to, ended ones too.
type Task struct {
	State     string
	Archived  bool
	Board     bool // in a workflow that the loop leaves alone, unless there is a project, and that completes by default
	Project   int  // 0: none
	Parent    *Task
	Assignee  *Agent
	Version   int // of the assignment
	Blockers  []*Task
	Reviewers []*Agent // in the order of their making
	Approvers []*Agent
	Reviewed  bool // needs an approval to be done
	Holder    *Run // whose live attempt has it checked out

	said      *Run   // that was at work when somebody last said where the task stands; nil: none was
	asking    bool   // its completion waits for a decision
	asker     *Agent // who asked for it; nil: people
	made      int
	recovered map[int]bool // assignments that the recovery sweep has tried
	number    int
}

// By is who does something: a run of an agent, or people.
type By struct {
	Agent *Agent
	hops  int
}

// By is what a run does by its result.
func (r *Run) By() By { return By{Agent: r.Agent, hops: r.Hops + 1} }

// Office says whether the loop may act on the task (SPEC S5.1).
func (t *Task) Office() bool { return t.Project > 0 || !t.Board }

func (t *Task) ended() bool { return t.State == "DONE" || t.State == "CANCELLED" || t.Archived }

// open is the blockers that still hold the task up.
func (t *Task) open() []*Task {
	return slices.DeleteFunc(slices.Clone(t.Blockers), (*Task).ended)
}

func (t *Task) scope() string { return fmt.Sprint("task ", t.number) }

// Create makes a task and tells its assignee.
func (w *World) Create(t *Task, by By) {
	w.tick()
	w.create(t, by)
}

func (w *World) create(t *Task, by By) {
	t.number, t.made, t.recovered = len(w.Tasks)+1, w.clock, map[int]bool{}
	w.Tasks = append(w.Tasks, t)
	if t.Assignee != nil {
		t.Version = 1
		w.tellAssignee(t, by)
	}
}

// send asks for a run about a task.
func (w *World) send(t *Task, a *Agent, source, basis string, by By) *Request {
	q := &Request{Agent: a, Task: t, Source: source, Basis: basis, Scope: t.scope(), Event: true, Hops: by.hops}
	w.insert(q)
	return q
}

// tellAssignee says to an assignee that the task is its own; its own run's doing is no news to it (S5.2).
func (w *World) tellAssignee(t *Task, by By) *Request {
	if t.Office() && !t.ended() && t.Assignee != nil && t.Assignee != by.Agent {
		return w.send(t, t.Assignee, "TASK_ASSIGNED", "ASSIGNEE", by)
	}
	return nil
}

// Assign gives a task to an agent, or to nobody (S5.5). What the former assignee was to begin, or to try again, ends; false
// when the task is archived, and may not be changed.
func (w *World) Assign(t *Task, a *Agent) bool {
	w.tick()
	if t.Archived || t.Assignee == a {
		return !t.Archived
	}
	former := t.Assignee
	t.Assignee = a
	t.Version++
	w.tellAssignee(t, By{})
	if former != nil {
		w.drop(former, t, func(q *Request) string {
			retry := q.Run != nil && q.Run.Retries > 0
			switch {
			case q.Basis != "" && q.Basis != "ASSIGNEE":
				return ""
			case retry:
				return "RETRY_STALE_ASSIGNEE"
			case q.Source == "TASK_ASSIGNED":
				return "ASSIGNEE_CHANGED"
			}
			return ""
		})
	}
	return true
}

// drop ends what an agent has queued about a task and no attempt has begun, each request for the reason that the rule
// gives, and the runs of which nothing is left.
func (w *World) drop(a *Agent, t *Task, rule func(*Request) string) {
	emptied := map[*Run]string{}
	for _, q := range w.Requests {
		if q.Agent != a || q.Task != t || q.Ended || q.Run != nil && q.Run.Status != "QUEUED" {
			continue
		}
		if reason := rule(q); reason != "" {
			w.end(q, "CANCELLED", reason, "CANCELLED")
			if q.Run != nil {
				emptied[q.Run] = reason
			}
		}
	}
	for run, reason := range emptied {
		if len(w.requestsOf(run)) == 0 {
			w.endRun(run, "CANCELLED", "", reason)
			w.release(run)
		}
	}
}

// Move takes a task to a state (S5.2, S5.4); false when that is refused.
func (w *World) Move(t *Task, state string, by By) bool {
	w.tick()
	defer w.dropWaiting()
	return w.move(t, state, by)
}

func (w *World) move(t *Task, state string, by By) bool {
	switch {
	case t.Archived:
		return false
	case t.State == state:
		t.say()
		return true
	case t.asking && by.Agent != nil:
		return false // a decision is waited for, and it is not the agent's
	case t.asking:
		t.asking = false // a person's move is the decision
	case state == "DONE" && t.Reviewed:
		w.askCompletion(t, by)
		return true
	}
	w.enter(t, state, by)
	return true
}

// say notes that somebody said where the task stands, and which run was at work then.
func (t *Task) say() {
	t.said = nil
	if t.Holder != nil && t.Holder.Started {
		t.said = t.Holder
	}
}

// completeByDefault completes a run's task as its step does, where nobody has said anything and nothing is to come.
func (w *World) completeByDefault(run *Run, acts []Act) {
	t := run.Task
	if t == nil || !t.Board || t.ended() || t.Assignee != run.Agent || t.said == run || t.State == "IN_REVIEW" || t.State == "BLOCKED" || t.asking || len(t.open()) > 0 {
		return
	}
	if slices.ContainsFunc(acts, func(a Act) bool { return a.Kind == "move_task" || a.Kind == "complete_task" }) {
		return
	}
	toCome := func(q *Request) bool {
		return q.Task == t && q.Agent == run.Agent && q.Event && !q.Ended && (q.Run != run || !q.Delivered)
	}
	if !slices.ContainsFunc(w.Requests, toCome) {
		w.move(t, "DONE", run.By())
	}
}

// askCompletion puts a task into review and calls its approvers.
func (w *World) askCompletion(t *Task, by By) {
	if t.State != "IN_REVIEW" {
		w.enter(t, "IN_REVIEW", by)
	}
	t.say()
	t.asking, t.asker = true, by.Agent
	w.callApprovers(t, t.Approvers, by)
}

// own says whether an agent's own work is to be approved, or it asked for that: others decide.
func (t *Task) own(a *Agent) bool { return a == t.asker || a == t.Assignee }

func (w *World) callApprovers(t *Task, approvers []*Agent, by By) {
	for _, a := range approvers {
		if t.Office() && !t.ended() && a != by.Agent && !t.own(a) {
			w.send(t, a, "TASK_ASSIGNED", "APPROVER", by)
		}
	}
}

// enter is the move itself.
func (w *World) enter(t *Task, state string, by By) {
	from, over := t.State, t.ended()
	t.State = state
	t.say()
	switch {
	case state == "IN_PROGRESS" && from == "IN_REVIEW":
		if t.Office() && t.Assignee != nil && t.Assignee != by.Agent {
			w.send(t, t.Assignee, "COMMENT", "", by).Person = by.Agent == nil
		}
	case state == "IN_PROGRESS":
		if q := w.tellAssignee(t, by); q != nil {
			q.Person = by.Agent == nil
		}
	case state == "IN_REVIEW":
		w.callReviewers(t, t.Reviewers, by)
	}
	if t.ended() && !over {
		w.followEnd(t, by)
	}
}

func (w *World) callReviewers(t *Task, reviewers []*Agent, by By) {
	for _, a := range reviewers {
		if t.Office() && !t.ended() && a != by.Agent {
			w.send(t, a, "TASK_ASSIGNED", "REVIEWER", by)
		}
	}
}

// followEnd tells those who waited for a task that has just ended, once nothing of what they wait for is open (S5.3).
func (w *World) followEnd(ended *Task, by By) {
	w.over = append(w.over, ended)
	for _, t := range w.Tasks {
		if slices.Contains(t.Blockers, ended) && len(t.open()) == 0 {
			w.tellUnblocked(t, by)
		}
	}
	p := ended.Parent
	if p == nil || p.ended() || !p.Office() || p.Assignee == nil {
		return
	}
	if !slices.ContainsFunc(w.Tasks, func(c *Task) bool { return c.Parent == p && !c.ended() }) {
		w.send(p, p.Assignee, "TASK_CHILDREN_COMPLETED", "", by)
	}
}

// tellUnblocked ends the wait of what was queued about a task whose last open blocker is gone: whoever ended it, and even
// when the task itself is over.
func (w *World) tellUnblocked(t *Task, by By) {
	if (t.Office() || w.assignmentQueued(t)) && !t.Archived && t.Assignee != nil {
		w.send(t, t.Assignee, "TASK_BLOCKERS_RESOLVED", "", by)
	}
}

// assignmentQueued says whether an assignment is queued from when the loop was still to act on the task.
func (w *World) assignmentQueued(t *Task) bool {
	return slices.ContainsFunc(w.Requests, func(q *Request) bool {
		return q.Task == t && q.Agent == t.Assignee && q.assignment() && !q.Ended && (q.Run == nil || q.Run.Status == "QUEUED")
	})
}

// Block sets the whole list of a task's blockers; false when they would wait for the task themselves, or it is archived.
func (w *World) Block(t *Task, blockers []*Task) bool {
	w.tick()
	if t.Archived || slices.ContainsFunc(blockers, func(b *Task) bool { return b.waitsFor(t) }) {
		return false
	}
	before := len(t.open())
	t.Blockers = blockers
	if before > 0 && len(t.open()) == 0 {
		w.tellUnblocked(t, By{})
	}
	return true
}

// waitsFor says whether a task is the other one or waits for it, directly or not.
func (t *Task) waitsFor(other *Task) bool {
	return t == other || slices.ContainsFunc(t.Blockers, func(b *Task) bool { return b.waitsFor(other) })
}

// Participants sets who reviews and who approves. Those who join what is going on are called; what waits for those who
// leave ends.
func (w *World) Participants(t *Task, reviewers, approvers []*Agent) bool {
	w.tick()
	if t.Archived {
		return false
	}
	oldReviewers, oldApprovers := t.Reviewers, t.Approvers
	t.Reviewers, t.Approvers = reviewers, approvers
	if t.State == "IN_REVIEW" {
		w.callReviewers(t, without(reviewers, oldReviewers), By{})
	}
	if t.asking {
		w.callApprovers(t, without(approvers, oldApprovers), By{})
	}
	for _, a := range w.Agents {
		if !slices.Contains(without(oldReviewers, reviewers), a) && !slices.Contains(without(oldApprovers, approvers), a) {
			continue
		}
		w.drop(a, t, func(q *Request) string {
			if over := t.over(); over != "" {
				return over
			}
			if q.Basis == "REVIEWER" && !slices.Contains(reviewers, a) || q.Basis == "APPROVER" && !slices.Contains(approvers, a) {
				return "REVIEW_PARTICIPANT_CHANGED"
			}
			return ""
		})
	}
	return true
}

func without(list, other []*Agent) []*Agent {
	return slices.DeleteFunc(slices.Clone(list), func(a *Agent) bool { return slices.Contains(other, a) })
}

// Comment is a person's comment; the agents it mentions are woken besides the assignee, without a window.
func (w *World) Comment(t *Task, mentions []*Agent) bool {
	w.tick()
	if t.Archived {
		return false
	}
	w.comment(t, mentions, By{})
	return true
}

func (w *World) comment(t *Task, mentions []*Agent, by By) {
	told := by.Agent
	if a := t.Assignee; a != nil && t.Office() && !t.ended() && a != by.Agent {
		w.send(t, a, "COMMENT", "", by).Person = slices.Contains(mentions, a)
		told = a
	}
	for _, a := range mentions {
		if a != told && a != by.Agent {
			w.insert(&Request{Agent: a, Source: "USER", Scope: "taskless", Event: true, Person: true, Hops: by.hops})
		}
	}
}

// QueueRun asks for a run by name, on any task that is not over; false when it is, or when there is nobody.
func (w *World) QueueRun(t *Task, a *Agent) bool {
	w.tick()
	if a == nil {
		a = t.Assignee
	}
	if t.ended() || a == nil {
		return false
	}
	w.send(t, a, "TASK_ASSIGNED", "EXPLICIT", By{}).Person = true
	return true
}

// Archive takes a task away: what waits about it ends, and its end is told as any other.
func (w *World) Archive(t *Task) {
	w.tick()
	if t.Archived {
		return
	}
	over := t.ended()
	t.Archived, t.asking = true, false
	if !over {
		w.followEnd(t, By{})
	}
	w.over = nil
	w.dropAbout(t, "TASK_CANCELLED")
}

// dropWaiting ends what waits about the tasks that have ended in this step.
func (w *World) dropWaiting() {
	over := w.over
	w.over = nil
	for _, t := range over {
		if t.ended() {
			w.dropAbout(t, t.over())
		}
	}
}

// dropAbout ends what is queued about a task that is over.
func (w *World) dropAbout(t *Task, over string) {
	for _, a := range w.Agents {
		w.drop(a, t, func(q *Request) string {
			if q.Run != nil && q.Run.Retries > 0 && over == "TASK_CANCELLED" {
				return "RETRY_TASK_CANCELLED"
			}
			return over
		})
	}
}

// Decide answers what a task's completion waits for: by people, or an agent among its approvers.
func (w *World) Decide(t *Task, approve bool, a *Agent) bool {
	w.tick()
	if !t.asking || a != nil && (!slices.Contains(t.Approvers, a) || t.own(a)) {
		return false
	}
	t.asking = false
	defer w.dropWaiting()
	switch by := (By{Agent: a}); {
	case t.ended():
	case approve:
		w.enter(t, "DONE", by)
	default:
		w.enter(t, "IN_PROGRESS", by)
	}
	return true
}

// Asking says whether the task's completion waits for a decision.
func (t *Task) Asking() bool { return t.asking }

// SetProject gives a task to a project, 0 for none: the loop may act on it from then on, or not any more.
func (w *World) SetProject(t *Task, project int) bool {
	w.tick()
	if t.Archived {
		return false
	}
	was := t.Office()
	t.Project = project
	if !was {
		w.tellAssignee(t, By{})
	}
	return true
}
