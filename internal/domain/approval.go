package domain

import "slices"

// ApprovalFacts is an approval as far as its decision depends on it.
type ApprovalFacts struct {
	ID            string
	Status        ApprovalStatus
	Completion    bool   // it decides whether the task is done
	RequestedByID string // the agent that asked; "" for people
	AssigneeID    string // of the task; "" for nobody
	Approvers     []string
}

// Completion is what completing a task comes to (SPEC S5.4).
type Completion string

const (
	CompletionDone    Completion = "DONE"    // the task is done
	CompletionAsk     Completion = "ASK"     // it goes into review, and somebody is asked
	CompletionApprove Completion = "APPROVE" // a person's move is the decision that was waited for
	CompletionRefuse  Completion = "REFUSE"  // a decision is waited for, and who moves cannot give it
)

// Complete decides what becomes of a task that somebody completes. pending says that the decision on it was asked for and
// is open.
func Complete(requiresApproval, pending, byAgent bool) Completion {
	switch {
	case !requiresApproval:
		return CompletionDone
	case !pending:
		return CompletionAsk
	case byAgent:
		return CompletionRefuse
	}
	return CompletionApprove
}

// own says whether the decision is about an agent's own doing: it asked, or the work is its own.
func (a ApprovalFacts) own(agentID string) bool {
	return agentID != "" && (agentID == a.RequestedByID || a.Completion && agentID == a.AssigneeID)
}

// MayDecide says why somebody must not decide an approval. People may decide, and so may the agents that the task names
// as approvers. An agent never decides about its own work.
func MayDecide(a ApprovalFacts, agentID string) []FieldError {
	switch {
	case a.Status != ApprovalStatusPending:
		return []FieldError{{Field: []string{"approvalId"}, Code: UserErrorCodeInvalidState, Message: "the approval was decided already"}}
	case agentID != "" && !slices.Contains(a.Approvers, agentID):
		return []FieldError{{Field: []string{"agentId"}, Code: UserErrorCodeInvalid,
			Message: "the agent is none of the task's approvers; name it there first (setTaskParticipants), or let a person decide"}}
	case a.own(agentID):
		return []FieldError{{Field: []string{"agentId"}, Code: UserErrorCodeInvalid,
			Message: "an agent does not approve what it asked for or worked on itself; another approver or a person decides"}}
	}
	return nil
}

// ApproverWakes call the approvers of an open approval on an office task who may decide it, except the agent that acts.
func ApproverWakes(task TaskFacts, a ApprovalFacts, byAgentID string) []TaskWake {
	if !task.Office || !task.Live() {
		return nil
	}
	var wakes []TaskWake
	for _, agent := range a.Approvers {
		if agent == byAgentID || a.own(agent) {
			continue
		}
		wakes = append(wakes, TaskWake{AgentID: agent, Source: WakeupSourceTaskAssigned, Basis: WakeBasisApprover, Reason: "approval wanted",
			Payload: &TaskPayload{TaskID: task.ID, Basis: WakeBasisApprover}, Key: "approve:" + a.ID + ":" + agent})
	}
	return wakes
}

// DecisionWake is the wake that brings the decision to the agent that asked. A decision about a completion has none,
// because the task's own wakes bring it.
func DecisionWake(a ApprovalFacts, status ApprovalStatus, note, byAgentID string) []TaskWake {
	if a.Completion || a.RequestedByID == "" || a.RequestedByID == byAgentID {
		return nil
	}
	return []TaskWake{{AgentID: a.RequestedByID, Source: WakeupSourceApprovalResolved, Reason: "approval decided",
		Payload: &ApprovalPayload{ApprovalID: a.ID, Status: status, DecisionNote: note}, Key: "approval:" + a.ID}}
}
