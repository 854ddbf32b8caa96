package cron

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	robfig "github.com/robfig/cron/v3"
)

// field is one of the five fields of an expression: what it is called, what it takes, and how its text becomes a set
// of values. Each field has a parser of its own, so that an error can name it.
type field struct {
	name     string
	min, max int
	names    []string // of the values, from that of min on
	parser   robfig.Parser
	bits     func(*robfig.SpecSchedule) uint64
}

var (
	minuteField = field{"minute", 0, 59, nil, robfig.NewParser(robfig.Minute), func(s *robfig.SpecSchedule) uint64 { return s.Minute }}
	hourField   = field{"hour", 0, 23, nil, robfig.NewParser(robfig.Hour), func(s *robfig.SpecSchedule) uint64 { return s.Hour }}
	domField    = field{"day of month", 1, 31, nil, robfig.NewParser(robfig.Dom), func(s *robfig.SpecSchedule) uint64 { return s.Dom }}
	monthField  = field{"month", 1, 12, monthNames, robfig.NewParser(robfig.Month), func(s *robfig.SpecSchedule) uint64 { return s.Month }}
	dowField    = field{"day of week", 0, 7, dayNames, robfig.NewParser(robfig.Dow), func(s *robfig.SpecSchedule) uint64 { return s.Dow }}

	monthNames = strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")
	dayNames   = strings.Fields("SUN MON TUE WED THU FRI SAT")
)

// element is one item of a list: "*", a value, a range, each with an optional step. The library's parser takes more
// than that ("+5", "*-3", "?", empty items), none of which this one lets through.
var element = regexp.MustCompile(`^(?:\*|([0-9A-Za-z]+)(?:-([0-9A-Za-z]+))?)(?:/([0-9]+))?$`)

// parse turns the text of a field into a set of values, bit n for value n.
func (f field) parse(text string) (uint64, error) {
	var set uint64
	for item := range strings.SplitSeq(text, ",") {
		bits, err := f.parseItem(item)
		if err != nil {
			return 0, err
		}
		set |= bits
	}
	return set, nil
}

func (f field) parseItem(item string) (uint64, error) {
	parts := element.FindStringSubmatch(item)
	if parts == nil {
		return 0, f.refuse(item)
	}
	step, err := strconv.Atoi(parts[3])
	if parts[3] != "" && (err != nil || step < 1 || step > f.max-f.min+1) {
		return 0, invalid("%s: the step of %q is not allowed: use 1 to %d", f.name, item, f.max-f.min+1)
	}
	if r, ok := f.rangeOf(parts[1], parts[2], max(step, 1)); ok {
		if r.from > r.to {
			return 0, f.falls(item, r)
		}
		if f.isWeek() {
			return set(r.values()), nil
		}
	}
	return f.parsePlain(item)
}

// parsePlain leaves an item to the library.
func (f field) parsePlain(item string) (uint64, error) {
	plain := item
	if f.isWeek() && item == "7" { // which the library does not know
		plain = "0"
	}
	parsed, err := f.parser.Parse(plain)
	if err != nil {
		return 0, f.refuse(item)
	}
	spec, ok := parsed.(*robfig.SpecSchedule)
	if !ok {
		return 0, f.refuse(item)
	}
	return f.bits(spec) & (1<<(f.max+1) - 1), nil // without the library's mark for "*"
}

func (f field) refuse(item string) error {
	return invalid("%s: %q is not allowed: use %s, * for all, a range like %d-%d, a list like %d,%d or a step like */2",
		f.name, item, f.takes(), f.min, f.min+2, f.min, f.min+2)
}

// takes is the values of a field, for messages.
func (f field) takes() string {
	takes := fmt.Sprintf("%d to %d", f.min, f.max)
	if f.isWeek() {
		takes += " (0 and 7 are Sunday)"
	}
	if len(f.names) > 0 {
		takes += " or " + f.names[0] + " to " + f.names[len(f.names)-1]
	}
	return takes
}

// number is the value that a number or a name in any case stands for.
func (f field) number(text string) (int, bool) {
	if at := slices.Index(f.names, strings.ToUpper(text)); at >= 0 {
		return f.min + at, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= f.min && n <= f.max
}

// isWeek says that the field is that of the days of the week, where the value behind the last is the first again.
func (f field) isWeek() bool { return f.max == 7 }
