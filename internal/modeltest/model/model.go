// Package model says what the queue, tasks and budgets must do, in memory, without locks, SQL or time: what follows from
// SPEC S3, S5, S6 and S8 for one workspace. It is written from the specification and imports nothing of the program, so that a
// mistake is not made twice. The driver beside it does the same to the program and compares all rows after each step.
package model

import (
	"fmt"
	"slices"
)

// World is one workspace. Its methods are the transitions that a process can make.
type World struct {
	Windowed bool // a new run waits for its coalescing window, unless a person waits
	Ceiling  int  // live runs of the workspace; 0: no bound
	Agents   []*Agent
	Routines []*Routine
	Requests []*Request
	Runs     []*Run
	Fires    []*Fire
	Tasks    []*Task
	Budgets  []*Budget

	over   []*Task // that have ended in this step
	costs  []cost  // in their order
	period int     // of budgets that begin anew

	inserted int // requests, in their order
	clock    int // rises with every step: instants of the queue's order
}

// Agent is whose queue it is.
type Agent struct {
	Capacity    int
	Cools       bool // has a cooldown, longer than a sequence
	Cooling     bool // in its cooldown
	Paused      bool
	OverBudget  bool // paused by a budget, which ends by itself
	SkipsIdle   bool // a periodic wake is not launched while there is no task to do
	NoExecutor  bool
	Pulls       bool   // its runs are executed by workers elsewhere
	Coordinator *Agent // who is told of a run that gave up; nil: nobody
	running     int
	pausedAt    int
}

// Request is that somebody asked.
type Request struct {
	Agent       *Agent
	Scope       string
	Event       bool // else periodic
	Person      bool // waits for the answer: no window
	Routine     *Routine
	Fingerprint string
	Hops        int
	Fire        *Fire
	Task        *Task  // it is about; nil: none
	Source      string // and Basis: "" where nothing depends on it
	Basis       string
	Recovered   bool // sent by the recovery sweep

	Status           string
	Run              *Run
	Delivered, Ended bool
	Reason           string
	Resends, Retries int
	asked, endedAt   int
	place            int // in the order, should it be sent again
}

// Run is a piece of work.
type Run struct {
	Agent       *Agent
	Scope       string
	Event       bool
	Routine     *Routine
	Fingerprint string
	Hops        int
	Task        *Task
	Spends      int // what its live attempt will turn out to have cost, in millionths

	Status          string
	Parked          string // why it is queued and not due; "": due
	Until           int    // instant until which it is parked; 0: without a date
	Over            bool   // that instant has passed
	Attempt         int
	Started         bool
	Offered         bool // live, and waits for a worker
	Abandonments    int
	Retries         int
	Merged          int // requests it serves, its own included
	CancelAsked     bool
	Outcome, Reason string
	place           int // in the order of the claim
	number          int
	endedAt         int
	cost            int // of its ended attempts
	holds           []hold
}

// The delays of the program in the order of their ends, far apart: an instant is a delay plus the step it began in.
const (
	second       = 1_000_000
	window       = 3600 * second
	rateLimitEnd = 1230 * second
	maxHops      = 25
	perStep      = 1 << 20 // requests of one step, far fewer of which are made
	maxLost      = 5
)

var backoffs = []int{120 * second, 600 * second, 1800 * second, 7200 * second}

// lossWaits are how long a run waits after the loss of a process that had launched it.
var lossWaits = []int{10 * second, 60 * second, 300 * second, 900 * second}

// tick begins a step.
func (w *World) tick() { w.clock++ }

func (w *World) running() (n int) {
	for _, a := range w.Agents {
		n += a.running
	}
	return n
}

// queue is the agent's runs in the order of the claim.
func (w *World) queue(a *Agent, which func(*Run) bool) []*Run {
	var runs []*Run
	for _, r := range w.Runs {
		if r.Agent == a && which(r) {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, compare)
	return runs
}

func compare(a, b *Run) int {
	if a.place != b.place {
		return a.place - b.place
	}
	return a.number - b.number
}

func (r *Run) due() bool { return r.Status == "QUEUED" && r.Parked == "" }

// soon is due, or will be as soon as somebody looks.
func (r *Run) soon() bool { return r.due() || r.Status == "QUEUED" && r.Over }

func (r *Run) ended() bool { return r.Status != "QUEUED" && r.Status != "CLAIMED" }

// head is the agent's oldest due run.
func (w *World) head(a *Agent) *Run {
	if due := w.queue(a, (*Run).due); len(due) > 0 {
		return due[0]
	}
	return nil
}

// requestsOf is all that the run serves and that has not ended.
func (w *World) requestsOf(run *Run) []*Request {
	var open []*Request
	for _, q := range w.Requests {
		if q.Run == run && !q.Ended {
			open = append(open, q)
		}
	}
	return open
}

// State is all there is to compare, a line for each record; numbers count from 1 in the order of making.
func (w *World) State() []string {
	var lines []string
	for i, f := range w.Fires {
		lines = append(lines, fmt.Sprintf("fire %d %s completed=%t reason=%s", i+1, f.Status, f.Completed, f.Reason))
	}
	for i, a := range w.Agents {
		head := 0
		if run := w.head(a); run != nil {
			head = run.number
		}
		lines = append(lines, fmt.Sprintf("lane %d running=%d head=%d cooling=%t", i+1, a.running, head, a.Cooling))
	}
	for i, q := range w.Requests {
		run := 0
		if q.Run != nil {
			run = q.Run.number
		}
		lines = append(lines, fmt.Sprintf("request %d %s run=%d delivered=%t ended=%t reason=%s resends=%d retries=%d",
			i+1, q.Status, run, q.Delivered, q.Ended, q.Reason, q.Resends, q.Retries))
	}
	for _, r := range w.Runs {
		class := "PERIODIC"
		if r.Event {
			class = "EVENT"
		}
		parking := "none"
		if r.Until > 0 {
			parking = "later"
		}
		if r.Over {
			parking = "over"
		}
		lines = append(lines, fmt.Sprintf("run %d %s %s parked=%s %s attempt=%d started=%t lost=%d retries=%d merged=%d cancel=%t outcome=%s reason=%s",
			r.number, r.Status, class, r.Parked, parking, r.Attempt, r.Started, r.Abandonments, r.Retries, r.Merged, r.CancelAsked, r.Outcome, r.Reason))
	}
	return append(lines, fmt.Sprintf("workspace running=%d", w.running()))
}

// Open says what has not ended: nothing, once all has been done.
func (w *World) Open() (open []string) {
	for i, q := range w.Requests {
		if !q.Ended {
			open = append(open, fmt.Sprintf("request %d is still %s", i+1, q.Status))
		}
	}
	for _, r := range w.Runs {
		if !r.ended() {
			open = append(open, fmt.Sprintf("run %d is still %s", r.number, r.Status))
		}
	}
	return open
}
