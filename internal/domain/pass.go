package domain

import (
	"cmp"
	"slices"
	"time"
)

// PassRun is a run of a lane as the next pass of the claim meets it.
type PassRun struct {
	ID           string
	Scope        string
	Status       RunStatus // QUEUED or CLAIMED
	ParkedReason ParkedReason
	ParkedUntil  time.Time // zero: without a date
	RequestedAt  time.Time
	TaskID       string // "" for a taskless run
	ProjectID    string // of its task, "" for none
	Settles      bool   // a guard will end it without a launch (Admit)
	Blocked      bool   // a guard will park it TASK_BLOCKED
	Unattended   bool   // neither a person nor a schedule asked for it
}

// PassLane is an agent's lane before a pass. Runs holds at least these: the runs asked about with all of their scopes;
// runs that are or become due, oldest first, until the free sessions are taken; all live runs.
type PassLane struct {
	AgentID              string
	MaxSessions, Running int
	EligibleAt           time.Time
	Held                 bool // its agent is paused, stopped or deleted: what is due ends without a launch, apart from the claims
	Deleted              bool // its agent is deleted: what is parked ends, too
	Window               LaunchWindow
	Runs                 []PassRun
}

// PassFacts is a workspace before a pass, at one instant. Places is how many more runs may be live, nil without a
// ceiling. With one, or with a budget that pauses agents and has room, Lanes holds the workspace's oldest due lanes besides
// those asked about. Ledger has its budgets.
type PassFacts struct {
	WorkspaceID string
	Now         time.Time
	HeldSince   time.Time // a person holds the workspace, so that nothing is claimed; zero: nobody does
	Places      *int
	Lanes       []PassLane
	Ledger      BudgetLedger
}

// Pass foretells what the next pass of the claim does in a workspace when there are enough free workers (SPEC S3.9,
// S6.1). It takes runs in order while their agents have a free session and the workspace has a place. Runs that a guard
// refuses end on the way, and take neither.
type Pass struct {
	workspaceID string
	now         time.Time
	heldSince   time.Time
	places      *int
	lanes       map[string]*passLane
	order       []*passLane
	ledger      BudgetLedger
	held        map[string]bool // tasks that the pass has checked out
}

// passLane is a lane as the pass changes it.
type passLane struct {
	PassLane
	due   []*PassRun // oldest first
	byID  map[string]*PassRun
	taken map[string]bool // claimed or settled by this pass
	ahead []string        // claimed by this pass
}

// Foresee goes through the next pass.
func Foresee(f PassFacts) *Pass {
	p := &Pass{workspaceID: f.WorkspaceID, now: f.Now, heldSince: f.HeldSince, lanes: map[string]*passLane{}, ledger: f.Ledger.Clone(), held: map[string]bool{}}
	if f.Places != nil {
		places := *f.Places
		p.places = &places
	}
	for _, l := range f.Lanes {
		lane := &passLane{PassLane: l, byID: map[string]*PassRun{}, taken: map[string]bool{}}
		lane.Runs = slices.Clone(l.Runs)
		lane.Window = l.Window.At(f.Now)
		lane.promote(f.Now)
		p.lanes[l.AgentID] = lane
		p.order = append(p.order, lane)
	}
	for l := p.oldest(); l != nil; l = p.oldest() {
		if p.takeHead(l) && p.places != nil {
			*p.places--
		}
	}
	for _, l := range p.order {
		l.clear()
	}
	return p
}

// clear ends the due runs of a held agent, and all queued runs of a deleted one. That takes neither a session nor a
// place, and does not wait for a cooldown.
func (l *passLane) clear() {
	for i := range l.Runs {
		if run := &l.Runs[i]; l.Deleted && run.Status == RunStatusQueued {
			l.settle(run)
		}
	}
	if l.Deleted {
		return
	}
	for l.Held && len(l.due) > 0 {
		run := l.due[0]
		l.due = l.due[1:]
		l.settle(run)
		l.releaseScope(run)
	}
}

// promote makes runs due whose parking is over, oldest first; one whose scope is taken waits for it instead.
func (l *passLane) promote(now time.Time) {
	slices.SortFunc(l.Runs, func(a, b PassRun) int { return compareRuns(&a, &b) })
	for i := range l.Runs {
		run := &l.Runs[i]
		l.byID[run.ID] = run
		if run.Status != RunStatusQueued || run.ParkedUntil.IsZero() || run.ParkedUntil.After(now) {
			continue
		}
		run.ParkedReason, run.ParkedUntil = "", time.Time{}
		if len(l.holders(run)) > 0 {
			run.ParkedReason = ParkedReasonScopeBusy
		}
	}
	for i := range l.Runs {
		if run := &l.Runs[i]; run.due() {
			l.due = append(l.due, run)
		}
	}
}

func (r *PassRun) due() bool { return r.Status == RunStatusQueued && r.ParkedReason == "" }

func compareRuns(a, b *PassRun) int {
	return cmp.Or(a.RequestedAt.Compare(b.RequestedAt), cmp.Compare(a.ID, b.ID))
}

// holders are the other runs of the scope that are live or due, oldest first.
func (l *passLane) holders(run *PassRun) []string {
	var list []string
	for i := range l.Runs {
		if o := &l.Runs[i]; o.ID != run.ID && o.Scope == run.Scope && (o.Status == RunStatusClaimed || o.due()) {
			list = append(list, o.ID)
		}
	}
	return list
}

// oldest is the lane whose head the pass takes next; nil: the pass is over.
func (p *Pass) oldest() *passLane {
	if p.full() {
		return nil
	}
	var first *passLane
	for _, l := range p.order {
		if len(l.due) == 0 || l.Held || l.full() || l.EligibleAt.After(p.now) {
			continue
		}
		if first == nil || compareRuns(l.due[0], first.due[0]) < 0 {
			first = l
		}
	}
	return first
}

func (p *Pass) full() bool {
	return !p.heldSince.IsZero() || p.places != nil && *p.places <= 0
}
func (l *passLane) full() bool { return l.Running+len(l.ahead) >= l.MaxSessions }

// takeHead claims the lane's oldest due run, or settles or parks it: then its scope falls free and the next run of it is due.
func (p *Pass) takeHead(l *passLane) (claimed bool) {
	run := l.due[0]
	l.due = l.due[1:]
	charge := BudgetCharge{WorkspaceID: p.workspaceID, AgentID: l.AgentID, ProjectID: run.ProjectID}
	answer := p.ledger.Admit(charge)
	until, braked := l.Window.Full()
	switch {
	case run.Settles:
		l.settle(run)
	case run.Blocked:
		run.ParkedReason = ParkedReasonTaskBlocked
	case p.held[run.TaskID]:
		l.settle(run) // another agent's run has just taken the task
	case run.Unattended && braked:
		run.ParkedReason, run.ParkedUntil = ParkedReasonLoopBreaker, until
	case answer.Blocked != nil:
		l.Held = true
		l.settle(run)
	case answer.Reserved != nil:
		run.ParkedReason, run.ParkedUntil = ParkedReasonBudgetReserved, p.now.Add(BudgetRetry)
	default:
		l.taken[run.ID] = true
		run.Status = RunStatusClaimed
		l.ahead = append(l.ahead, run.ID)
		if run.Unattended {
			l.Window = l.Window.Launch(p.now)
		}
		if run.TaskID != "" {
			p.held[run.TaskID] = true
		}
		p.ledger.Reserve(charge)
		return true
	}
	l.releaseScope(run)
	return false
}

func (l *passLane) settle(run *PassRun) {
	l.taken[run.ID] = true
	run.Status = RunStatusFinished
}

// releaseScope makes the scope's oldest run due that waits for it, when no other is live or due.
func (l *passLane) releaseScope(left *PassRun) {
	if len(l.holders(left)) > 0 {
		return
	}
	for i := range l.Runs { // oldest first
		if next := &l.Runs[i]; next.Scope == left.Scope && next.Status == RunStatusQueued && next.ParkedReason == ParkedReasonScopeBusy {
			next.ParkedReason = ""
			at, _ := slices.BinarySearchFunc(l.due, next, compareRuns)
			l.due = slices.Insert(l.due, at, next)
			break
		}
	}
}
