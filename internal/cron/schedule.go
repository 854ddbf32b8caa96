// Package cron says when a schedule fires: five-field cron expressions on the wall clock of a time zone (SPEC S4.2). A
// slot is a wall-clock minute. A slot that a clock change removes does not fire. One that it repeats fires the first
// time only. No other slot is lost, in any zone. The package is pure: "now" is an argument.
package cron

import (
	"strings"
	"time"
)

// maxExpression is the longest expression taken, in bytes; all values of all fields, written out, need fewer.
const maxExpression = 500

// Schedule is an expression in a zone. It is an immutable value; the zero Schedule never fires.
type Schedule struct {
	minute, hour, dom, month, dow uint64 // bit n set: value n
	// anyDay says that one day-of-month or day-of-week match is enough: neither field begins with "*" (SPEC S4.2).
	anyDay bool
	zone   *time.Location
}

// Parse reads an expression of five fields (minute, hour, day of month, month, day of week) and the IANA name of a
// zone. Every error is an *Error, which names the field and what it takes. The caller resolves "no zone given" to the
// workspace's zone first: an empty zone is refused here.
func Parse(expression, zone string) (Schedule, error) {
	fields, err := split(expression)
	if err != nil {
		return Schedule{}, err
	}
	var s Schedule
	for i, part := range []struct {
		field field
		set   *uint64
	}{{minuteField, &s.minute}, {hourField, &s.hour}, {domField, &s.dom}, {monthField, &s.month}, {dowField, &s.dow}} {
		if *part.set, err = part.field.parse(fields[i]); err != nil {
			return Schedule{}, err
		}
	}
	s.anyDay = fields[2][0] != '*' && fields[4][0] != '*'
	if !s.possible() {
		return Schedule{}, neverFires(expression)
	}
	if s.zone, err = loadZone(zone); err != nil {
		return Schedule{}, err
	}
	return s, nil
}

// Zone is the zone whose wall clock the schedule follows.
func (s Schedule) Zone() *time.Location {
	if s.zone == nil {
		return time.UTC
	}
	return s.zone
}

func split(expression string) ([]string, error) {
	if len(expression) > maxExpression {
		return nil, invalid("the cron expression has %d characters: use %d at most", len(expression), maxExpression)
	}
	fields := strings.Fields(expression)
	switch {
	case len(fields) == 0:
		return nil, invalid("the cron expression is empty: use five fields, e.g. \"0 9 * * 1-5\" for 09:00 on weekdays")
	case strings.Contains(fields[0], "="):
		return nil, invalid("%q is not allowed in a cron expression: set the time zone in its own field", fields[0])
	case strings.HasPrefix(fields[0], "@"):
		return nil, macro(fields)
	case len(fields) != 5:
		return nil, invalid("the cron expression has %d fields: use five (minute, hour, day of month, month, day of week)", len(fields))
	}
	return fields, nil
}

// loadZone takes the names of the IANA database only. The machine's own zone ("Local") is refused since a schedule must
// not depend on where the server runs (C203), and "right/" zones since they count leap seconds.
func loadZone(name string) (*time.Location, error) {
	switch first, _, _ := strings.Cut(name, "/"); first {
	case "", "Local", "localtime", "posixrules", "right", "posix", "Factory":
		return nil, unknownZone(name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknownZone(name)
	}
	return zone, nil
}

// possible says whether some date matches. Any date of the calendar falls on each day of the week in some year, so that
// only months that are too short can make a schedule impossible.
func (s Schedule) possible() bool {
	if s.anyDay {
		return true
	}
	longest := [13]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for month := 1; month <= 12; month++ {
		if has(s.month, month) && s.dom&(1<<(longest[month]+1)-1) != 0 {
			return true
		}
	}
	return false
}

// onDay says whether the schedule fires on the date that is this many days after 1970-01-01.
func (s Schedule) onDay(day int64) bool {
	date := time.Unix(day*secondsPerDay, 0).UTC()
	_, month, dayOfMonth := date.Date()
	if !has(s.month, int(month)) {
		return false
	}
	dom, dow := has(s.dom, dayOfMonth), has(s.dow, int(date.Weekday()))
	if s.anyDay {
		return dom || dow
	}
	return dom && dow
}

func has(set uint64, value int) bool { return set&(1<<value) != 0 }
