package domain

import (
	"fmt"
	"strconv"
	"time"
)

// Bounds of when a schedule fires. TickInterval is how long the scheduler lets pass between two looks at most (SPEC S4.3).
const (
	MaxJitter        = 24 * time.Hour
	MinStartDeadline = time.Second
	MaxStartDeadline = 30 * 24 * time.Hour
	TickInterval     = 5 * time.Second
	MaxBackfill      = 1000 // slots of one window
	maxSkipDates     = 366
)

// NoSlotLeft is what a schedule shows as its error once it was switched off because no slot is left.
const NoSlotLeft = "no slot is left within its bounds"

// CheckTiming says what is wrong with when a schedule fires. Whether its expression and zone can be read is for the caller to find out.
func CheckTiming(s TriggerSettings) (problems []FieldError) {
	add := func(code UserErrorCode, field, format string, args ...any) {
		problems = append(problems, FieldError{Field: []string{field}, Code: code, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case s.Cron == "" && s.At == nil:
		add(UserErrorCodeInvalid, "cron", "a schedule needs an expression such as \"0 9 * * 1-5\", or with at an instant to fire at once")
	case s.Cron != "" && s.At != nil:
		add(UserErrorCodeInvalid, "at", "a schedule has an expression or one instant, not both: leave one of cron and at out")
	}
	if s.At != nil {
		for field, set := range map[string]bool{"startsAt": s.StartsAt != nil, "endsAt": s.EndsAt != nil, "jitter": s.Jitter != 0, "skipDates": len(s.SkipDates) > 0} {
			if set {
				add(UserErrorCodeInvalid, field, "a schedule that fires once, at an instant, has no %s: leave it out", field)
			}
		}
	}
	if s.StartsAt != nil && s.EndsAt != nil && !s.StartsAt.Before(*s.EndsAt) {
		add(UserErrorCodeInvalid, "endsAt", "the end is not after the start")
	}
	if s.Jitter < 0 || s.Jitter > MaxJitter {
		add(UserErrorCodeOutOfRange, "jitter", "a jitter is PT0S to PT24H")
	}
	if d := s.StartDeadline; d != nil && (*d < MinStartDeadline || *d > MaxStartDeadline) {
		add(UserErrorCodeOutOfRange, "startDeadline", "a deadline is PT1S to P30D")
	}
	if len(s.SkipDates) > maxSkipDates {
		add(UserErrorCodeTooLong, "skipDates", "at most %d dates are left out", maxSkipDates)
		return problems
	}
	for i, date := range s.SkipDates {
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			problems = append(problems, FieldError{Field: []string{"skipDates", strconv.Itoa(i)}, Code: UserErrorCodeInvalid,
				Message: fmt.Sprintf("%q is no date: write it as 2026-12-25", shorten(date))})
		}
	}
	return problems
}

// sameInstant compares instants that may be absent.
func sameInstant(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// CheckBackfill says what is wrong with a window whose slots are to be fired anew.
func CheckBackfill(from, until, now time.Time) (problems []FieldError) {
	if !from.Before(until) {
		problems = append(problems, FieldError{Field: []string{"until"}, Code: UserErrorCodeInvalid, Message: "the end of the window is not after its begin"})
	}
	if until.After(now) {
		problems = append(problems, FieldError{Field: []string{"until"}, Code: UserErrorCodeInvalid, Message: "the window ends in the future: slots to come fire by themselves"})
	}
	return problems
}

// BackfillFacts are what is known of a slot that is to be fired anew. Cursor is when the schedule's next fire is due; nil: it has none.
type BackfillFacts struct {
	Due    time.Time
	Fired  bool
	Cursor *time.Time
}

// PlanBackfill says what becomes of a slot: what has fired does not fire again, and what the schedule will fire is left to it.
func PlanBackfill(f BackfillFacts) BackfillOutcome {
	switch {
	case f.Fired:
		return BackfillOutcomeAlreadyFired
	case f.Cursor != nil && !f.Due.Before(*f.Cursor):
		return BackfillOutcomePending
	}
	return BackfillOutcomeFired
}
