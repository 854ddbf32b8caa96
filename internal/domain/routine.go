package domain

import "rouse.dev/rouse/internal/xid"

// TaskTemplate is the task that a heavy routine makes; title and description may hold {{variables}}.
type TaskTemplate struct {
	Title            string `json:"title"`
	Description      string `json:"description"`
	ProjectID        xid.ID `json:"project_id,omitempty"`
	RequiresApproval bool   `json:"requires_approval,omitempty"`
}

// RoutineVariable is a declared template variable (SPEC S4.8).
type RoutineVariable struct {
	Name     string       `json:"name"`
	Type     VariableType `json:"type"`
	Default  *string      `json:"default,omitempty"` // nil: no default
	Required bool         `json:"required,omitempty"`
	Options  []string     `json:"options,omitempty"` // choices of SELECT
}
