package graph

import (
	"errors"
	"fmt"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
)

// Codes of Error, for extensions.code.
const (
	CodeUnauthenticated    = "UNAUTHENTICATED"     // nobody is known to call
	CodeUnavailable        = "UNAVAILABLE"         // the server ends; come back
	CodeForbidden          = "FORBIDDEN"           // the caller may not do this
	CodeBadInput           = "BAD_INPUT"           // an argument breaks a rule
	CodeNotFound           = "NOT_FOUND"           // a subscription's subject is absent or not the caller's
	CodeSubscriptionLagged = "SUBSCRIPTION_LAGGED" // the reader was too slow; extensions.resumeAfter says where to go on
)

// Error is an error that the caller may see as it is. Every other error that a resolver returns is a server error, whose
// cause only the log sees.
type Error struct {
	Code       string
	Message    string
	Extensions map[string]any // besides the code; may be nil
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

func badInput(format string, args ...any) error {
	return &Error{Code: CodeBadInput, Message: fmt.Sprintf(format, args...)}
}

// problems takes what the caller can fix out of err, for the payload; any other error stays one. The list is never nil.
func problems(err error) ([]*model.UserError, error) {
	out := []*model.UserError{}
	user, ok := errors.AsType[*domain.UserError](err)
	if !ok {
		return out, err
	}
	for _, p := range user.Problems {
		e := &model.UserError{Code: p.Code, Message: p.Message}
		if len(p.Field) > 0 {
			e.Field = append([]string{"input"}, p.Field...)
		}
		out = append(out, e)
	}
	return out, nil
}

// notFound is the problem of a record that does not exist for the caller.
func notFound(field, what string) error {
	return domain.RefuseField([]string{field}, domain.UserErrorCodeNotFound, "there is no such %s in this workspace", what)
}
