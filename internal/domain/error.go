package domain

import (
	"fmt"
	"strings"
)

// UserErrorCode is the stable, machine-readable name of a problem the caller can fix. The set is closed here and may
// grow; codes are never renamed.
//
//rouse:enum
type UserErrorCode string

const (
	UserErrorCodeRequired             UserErrorCode = "REQUIRED"               // value missing
	UserErrorCodeInvalid              UserErrorCode = "INVALID"                // value not allowed
	UserErrorCodeTooLong              UserErrorCode = "TOO_LONG"               // text too long
	UserErrorCodeOutOfRange           UserErrorCode = "OUT_OF_RANGE"           // number out of range
	UserErrorCodeNotFound             UserErrorCode = "NOT_FOUND"              // no such record in this workspace
	UserErrorCodeTaken                UserErrorCode = "TAKEN"                  // name or key already used
	UserErrorCodeConflict             UserErrorCode = "CONFLICT"               // expectedRevision is not the current revision
	UserErrorCodeInvalidState         UserErrorCode = "INVALID_STATE"          // the record's status forbids this
	UserErrorCodeCronNeverFires       UserErrorCode = "CRON_NEVER_FIRES"       // cron expression never fires
	UserErrorCodeUnknownTimeZone      UserErrorCode = "UNKNOWN_TIME_ZONE"      // unknown time zone
	UserErrorCodeUnresolvedVariable   UserErrorCode = "UNRESOLVED_VARIABLE"    // required variable without a value
	UserErrorCodeBacklogFull          UserErrorCode = "BACKLOG_FULL"           // queue or backlog bound reached
	UserErrorCodeBlockerCycle         UserErrorCode = "BLOCKER_CYCLE"          // blockers would form a cycle
	UserErrorCodeIdempotencyKeyReused UserErrorCode = "IDEMPOTENCY_KEY_REUSED" // same idempotency key, different input
	UserErrorCodeStaleLease           UserErrorCode = "STALE_LEASE"            // another attempt owns the run
	UserErrorCodeAlreadyTerminal      UserErrorCode = "ALREADY_TERMINAL"       // run already reached a terminal status
	UserErrorCodeBudgetExceeded       UserErrorCode = "BUDGET_EXCEEDED"        // budget forbids it
	UserErrorCodeAgentUnavailable     UserErrorCode = "AGENT_UNAVAILABLE"      // agent is paused or stopped
)

// FieldError is one problem with one value of the input. Field is the path below "input", in the API's spelling, e.g.
// ["variables", "branch"]; it is empty when the problem concerns the whole call. Message is a sentence for people: what
// is wrong, and what to do.
type FieldError struct {
	Field   []string      `json:"field,omitempty"`
	Code    UserErrorCode `json:"code"`
	Message string        `json:"message"`
}

// Error is the problem as text, its path first.
func (e FieldError) Error() string {
	if len(e.Field) == 0 {
		return e.Message
	}
	return strings.Join(e.Field, ".") + ": " + e.Message
}

// Under is the same problem below a longer path: Under("trigger") turns ["cron"] into ["trigger", "cron"].
func (e FieldError) Under(path ...string) FieldError {
	e.Field = append(append([]string{}, path...), e.Field...)
	return e
}

// UserError carries one or more problems that the caller can fix; the API shows them all (class 2 of its errors). Any
// other error is a server error, whose cause only the log sees.
type UserError struct{ Problems []FieldError }

// Error joins the problems.
func (e *UserError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "; ")
}

// AsUserError is an error that carries the problems; nil when there are none.
func AsUserError(problems []FieldError) error {
	if len(problems) == 0 {
		return nil
	}
	return &UserError{Problems: briefly(problems)}
}

// Refuse is a UserError with one problem that concerns the whole call.
func Refuse(code UserErrorCode, format string, args ...any) error {
	return AsUserError([]FieldError{{Code: code, Message: fmt.Sprintf(format, args...)}})
}

// RefuseField is a UserError with one problem at one path.
func RefuseField(path []string, code UserErrorCode, format string, args ...any) error {
	return AsUserError([]FieldError{{Field: path, Code: code, Message: fmt.Sprintf(format, args...)}})
}
