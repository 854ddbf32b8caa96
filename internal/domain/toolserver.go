package domain

import "slices"

// ToolServer is a server of the Model Context Protocol that an agent's program is told of: a program that it starts, or an address. Values
// that are secret are those of variables of the executor, which are sealed: they are named here.
type ToolServer struct {
	Name        string       `json:"name"`
	Command     []string     `json:"command,omitempty"`     // the program and its arguments
	Environment []string     `json:"environment,omitempty"` // names of variables that the program gets
	URL         string       `json:"url,omitempty"`         // of a server elsewhere
	Headers     []ToolHeader `json:"headers,omitempty"`     // that calls of the URL have
}

// ToolHeader is a header whose value is that of a variable.
type ToolHeader struct {
	Name     string `json:"name"`
	Variable string `json:"variable"`
}

// RouseTools is the name of the server that every agent's program is told of, unless its executor says no.
const RouseTools = "rouse"

// ToolVariables are those that the server of that name needs.
var ToolVariables = []string{"ROUSE_API_URL", "ROUSE_RUN_TOKEN"}

// toolPresets are the presets whose programs can be told of servers of tools.
var toolPresets = []string{"claude", "codex", "gemini", "opencode"}

// PresetTakesTools says whether the program of a preset can be told of servers of tools.
func PresetTakesTools(name string) bool { return slices.Contains(toolPresets, name) }

// HandsTools says whether rouse's tools are handed over to the programs of an executor.
func (s *ExecutorSpec) HandsTools() bool {
	switch {
	case s == nil:
		return false
	case s.Command != nil:
		return !s.Command.NoTools && PresetTakesTools(s.Command.Preset)
	case s.ACP != nil:
		return !s.ACP.NoTools
	case s.Pull != nil && s.Pull.Command != nil:
		return !s.Pull.Command.NoTools && PresetTakesTools(s.Pull.Command.Preset)
	}
	return false
}

// ToolServers are the servers of an executor's own.
func (s *ExecutorSpec) ToolServers() []ToolServer {
	switch {
	case s.Command != nil:
		return s.Command.ToolServers
	case s.ACP != nil:
		return s.ACP.ToolServers
	}
	return nil
}
