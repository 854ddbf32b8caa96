package domain

import "io"

// AgentRole is what an agent is for (SPEC S2).
type AgentRole string

const (
	AgentRoleWorker      AgentRole = "WORKER"      // does tasks
	AgentRoleSpecialist  AgentRole = "SPECIALIST"  // does one kind of task
	AgentRoleAssistant   AgentRole = "ASSISTANT"   // helps a person
	AgentRoleCoordinator AgentRole = "COORDINATOR" // directs other agents
)

var agentRoleValues = []AgentRole{
	AgentRoleWorker,
	AgentRoleSpecialist,
	AgentRoleAssistant,
	AgentRoleCoordinator,
}

// Values lists every AgentRole, for the database check and the API enum.
func (AgentRole) Values() []string { return enumValues(agentRoleValues) }

// MarshalGQL writes the value as the API spells it.
func (v AgentRole) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *AgentRole) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, agentRoleValues) }

// AgentStatus is the hot state of an agent; it lives on its lane.
type AgentStatus string

const (
	AgentStatusIdle    AgentStatus = "IDLE"    // ready
	AgentStatusWorking AgentStatus = "WORKING" // has a live run
	AgentStatusPaused  AgentStatus = "PAUSED"  // held
	AgentStatusStopped AgentStatus = "STOPPED" // off
)

var agentStatusValues = []AgentStatus{
	AgentStatusIdle,
	AgentStatusWorking,
	AgentStatusPaused,
	AgentStatusStopped,
}

// Values lists every AgentStatus, for the database check and the API enum.
func (AgentStatus) Values() []string { return enumValues(agentStatusValues) }

// MarshalGQL writes the value as the API spells it.
func (v AgentStatus) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *AgentStatus) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, agentStatusValues) }

// AgentPauseReason is why an agent is paused.
type AgentPauseReason string

const (
	AgentPauseReasonUser   AgentPauseReason = "USER"   // by a person
	AgentPauseReasonBudget AgentPauseReason = "BUDGET" // by a budget; ends by itself (SPEC S6.3)
)

var agentPauseReasonValues = []AgentPauseReason{
	AgentPauseReasonUser,
	AgentPauseReasonBudget,
}

// Values lists every AgentPauseReason, for the database check and the API enum.
func (AgentPauseReason) Values() []string { return enumValues(agentPauseReasonValues) }

// MarshalGQL writes the value as the API spells it.
func (v AgentPauseReason) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *AgentPauseReason) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, agentPauseReasonValues)
}
