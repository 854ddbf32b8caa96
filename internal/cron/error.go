package cron

import (
	"fmt"

	"rouse.dev/rouse/internal/domain"
)

// Error is a schedule that is refused. Code is INVALID, CRON_NEVER_FIRES or UNKNOWN_TIME_ZONE; the last one concerns the
// zone, the others the expression. Message is a sentence for people that names the field and says what is allowed.
type Error struct {
	Code    domain.UserErrorCode
	Message string
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &Error{Code: domain.UserErrorCodeInvalid, Message: fmt.Sprintf(format, args...)}
}

func unknownZone(zone string) error {
	return &Error{
		Code:    domain.UserErrorCodeUnknownTimeZone,
		Message: fmt.Sprintf("time zone %q is unknown: use an IANA name such as UTC, Europe/Berlin or America/New_York", zone),
	}
}

func neverFires(expression string) error {
	return &Error{
		Code: domain.UserErrorCodeCronNeverFires,
		Message: fmt.Sprintf("%q never fires: none of its months has such a day of month; "+
			"change the day of month (third field) or the month (fourth field)", expression),
	}
}
