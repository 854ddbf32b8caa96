package model

import "rouse.dev/rouse/internal/domain"

// UserError is a problem that the caller can fix. Field is the path from "input" on; nil when it concerns the whole call.
type UserError struct {
	Code    domain.UserErrorCode
	Message string
	Field   []string
}
