package model

import "rouse.dev/rouse/internal/domain"

// ResolvedVariable is the value of a variable and where it came from. Value is nil when there is none.
type ResolvedVariable struct {
	Name   string
	Value  *string
	Origin domain.VariableOrigin
}
