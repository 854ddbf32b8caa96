// Package prompt assembles what an agent is told (SPEC S7.3): what it remembers, who it is, why it was woken and how to
// answer. It is pure: the same input gives the same text, and whatever the input holds, the text is valid UTF-8 without
// NUL and within MaxBytes.
package prompt

import (
	"time"

	"rouse.dev/rouse/internal/domain"
)

// Input is everything a prompt is made of. Texts may be of any size and content; they are cleaned and cut here.
type Input struct {
	Delta        bool   // the agent resumes a session: wake context, run facts and actions only
	Reinstructed bool   // of a delta: the session was told other instructions than these
	Summary      string // continuation summary of a lightweight routine run; "" for every other run
	Agent        Agent
	Wakes        []Wake // the run's wakeups, in the order they were asked for
	Run          Run
}

// Agent is the agent that is woken.
type Agent struct {
	Name         string
	Role         domain.AgentRole
	Instructions string
	Workspace    string // the name of its workspace; may be ""
}

// Run is the attempt that the prompt is for.
type Run struct {
	ID          string
	Attempt     int // from 1
	AgentID     string
	WorkspaceID string
	Task        *Task // nil for a taskless run
	// Actions are the actions of SPEC S7.5 that will be carried out for this run, e.g. "comment"; unknown names are left
	// out. None means that the agent is told so.
	Actions    []string
	Tools      domain.AgentTools
	Colleagues []Colleague // whom a coordinator may give work to, the nearest first
}

// Colleague is another agent of the workspace.
type Colleague struct {
	ID     string
	Name   string
	Role   domain.AgentRole
	Status domain.AgentStatus
	About  string // its instructions or their beginning, of which the first sentence is shown
}

// Task is the task a run is about, as it stands now.
type Task struct {
	ID          string
	Title       string
	Description string
	State       domain.TaskState
	Project     string    // its name; may be ""
	Completes   bool      // it is completed when the run ends well and nobody says otherwise (AUTO_COMPLETE)
	Blockers    []TaskRef // the open ones
	Children    []TaskRef
	// Comments are those on the task, oldest first. Those that woke this run may be among them; the newest five of the
	// others are shown as background.
	Comments     []Comment
	CommentCount int // how many there are, if Comments does not hold them all
}

// TaskRef names another task.
type TaskRef struct {
	ID      string
	Title   string
	State   domain.TaskState
	Outcome *Outcome // what its work came to; nil: nobody has said, or nobody asks
}

// Outcome is what an agent said at the end of its last run about a task.
type Outcome struct {
	AgentID string
	Agent   string // its name
	Part    string // what it is of the task: "assignee", "reviewer", "approver", or "" for none of them
	Text    string
	At      time.Time
}

// Comment is a comment on a task.
type Comment struct {
	ID     string
	Author string // name of the user, agent or channel
	Body   string
	At     time.Time
}

// Wake is one wakeup request with what its payload's ids stand for. Members that do not belong to its source, or are not
// known any more, are empty: the text then names the id alone.
type Wake struct {
	Source  domain.WakeupSource
	At      time.Time // when it was asked for
	Payload domain.Payload

	Routine  string    // ROUTINE: name
	Text     string    // ROUTINE: what the routine says is to be done, with its variables filled in
	Comment  *Comment  // COMMENT
	Agent    string    // AGENT_ERROR and BUDGET_ALERT: name of the agent it is about
	User     string    // USER: name
	Tasks    []TaskRef // TASK_BLOCKERS_RESOLVED: the blockers; TASK_CHILDREN_COMPLETED: the children
	Question string    // APPROVAL_RESOLVED: what was asked
	Outcomes []Outcome // TASK_ASSIGNED: what others said at the end of their runs about the task, the newest first

	Approvals []Approval // TASK_ASSIGNED to an approver: what waits for its decision
}

// Approval is a question that waits for a decision.
type Approval struct{ ID, Question string }

// Prompt is the assembled text.
type Prompt struct {
	Text            string
	SummaryInjected string // the part of the summary that is in Text; "" when none is
}
