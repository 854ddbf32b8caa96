package domain

// AgentTools is how an agent can act and look around while it works, besides the actions of its result. Its prompt says so.
type AgentTools string

// What it may have.
const (
	AgentToolsNone AgentTools = ""    // nothing: no program runs that could call
	AgentToolsAPI  AgentTools = "API" // the API, by the variables of its environment
	AgentToolsMCP  AgentTools = "MCP" // the tools of rouse's own Model Context Protocol server
)

// AgentTools are what the agents of an executor have.
func (s *ExecutorSpec) AgentTools() AgentTools {
	switch {
	case s.Kind() == ExecutorEcho:
		return AgentToolsNone
	case s.HandsTools():
		return AgentToolsMCP
	}
	return AgentToolsAPI
}
