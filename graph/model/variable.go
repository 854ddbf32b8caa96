package model

import "rouse.dev/rouse/internal/domain"

// ResolvedVariable is the value of a variable and where it came from. Value is nil when the variable has no value.
type ResolvedVariable struct {
	Name   string
	Value  *string
	Origin domain.VariableOrigin
}
