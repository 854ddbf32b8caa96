package domain

// AgentRole is what an agent is for (SPEC S2).
//
//rouse:enum
type AgentRole string

const (
	AgentRoleWorker      AgentRole = "WORKER"      // does tasks
	AgentRoleSpecialist  AgentRole = "SPECIALIST"  // does one kind of task
	AgentRoleAssistant   AgentRole = "ASSISTANT"   // helps a person
	AgentRoleCoordinator AgentRole = "COORDINATOR" // directs other agents
)

// AgentStatus is the hot state of an agent; it lives on its lane.
//
//rouse:enum
type AgentStatus string

const (
	AgentStatusIdle    AgentStatus = "IDLE"    // ready
	AgentStatusWorking AgentStatus = "WORKING" // has a live run
	AgentStatusPaused  AgentStatus = "PAUSED"  // held
	AgentStatusStopped AgentStatus = "STOPPED" // off
)

// AgentPauseReason is why an agent is paused.
//
//rouse:enum
type AgentPauseReason string

const (
	AgentPauseReasonUser   AgentPauseReason = "USER"   // by a person
	AgentPauseReasonBudget AgentPauseReason = "BUDGET" // by a budget; ends by itself (SPEC S6.3)
)
