package domain

import "slices"

// WordFacts are the facts for a completion by default: the task as it stands when a run about it ended well, and who
// has said something about its state.
type WordFacts struct {
	StepCompletes bool // its step has AUTO_COMPLETE
	State         TaskState
	Archived      bool
	Assigned      bool // the run's agent is its assignee still
	Said          bool // since the run first started somebody said where the task stands, by a move or a question
	Asked         bool // the result itself names a move, a completion or a question, whatever became of that
	OpenBlocker   bool
	OpenApproval  bool
	MoreToCome    bool // a wake of the assignee about the task is on its way, which no prompt of this run told
}

// LeftOpen is why a task is not completed by default; "" when it is.
type LeftOpen string

const (
	LeftOpenNoStep   LeftOpen = "NO_STEP"  // its step completes nothing
	LeftOpenEnded    LeftOpen = "ENDED"    // it is over already
	LeftOpenAssignee LeftOpen = "ASSIGNEE" // it is another agent's now
	LeftOpenWord     LeftOpen = "WORD"     // somebody said where it stands
	LeftOpenState    LeftOpen = "STATE"    // it is BLOCKED or IN_REVIEW
	LeftOpenBlocker  LeftOpen = "BLOCKER"  // a blocker is open
	LeftOpenApproval LeftOpen = "APPROVAL" // an approval is open
	LeftOpenMore     LeftOpen = "MORE"     // a further run about it follows
)

// DefaultCompletion decides whether the end of a run completes its task because the task's step says so (AUTO_COMPLETE). A
// default speaks only where nobody else did: an explicit word, and whatever says that the task is not over, wins.
func DefaultCompletion(f WordFacts) LeftOpen {
	switch {
	case !f.StepCompletes:
		return LeftOpenNoStep
	case f.Archived || f.State.Ended():
		return LeftOpenEnded
	case !f.Assigned:
		return LeftOpenAssignee
	case f.Said || f.Asked:
		return LeftOpenWord
	case f.State == TaskStateBlocked || f.State == TaskStateInReview:
		return LeftOpenState
	case f.OpenBlocker:
		return LeftOpenBlocker
	case f.OpenApproval:
		return LeftOpenApproval
	case f.MoreToCome:
		return LeftOpenMore
	}
	return ""
}

// Explicit says whether the reason is worth telling: the step would have completed the task, and something held it back.
func (l LeftOpen) Explicit() bool {
	return l != "" && l != LeftOpenNoStep && l != LeftOpenEnded && l != LeftOpenAssignee
}

// AsksAboutTask says whether a result names where its task stands. An action that is refused or cannot be read counts,
// too, because an agent that wanted to move its task did not mean that the task is done.
func AsksAboutTask(actions []Action) bool {
	return slices.ContainsFunc(actions, func(a Action) bool {
		return a.Type == ActionMoveTask || a.Type == ActionCompleteTask || a.Type == ActionRequestApproval
	})
}
