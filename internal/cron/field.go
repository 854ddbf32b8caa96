package cron

import (
	"regexp"
	"strconv"
	"strings"

	robfig "github.com/robfig/cron/v3"
)

// field is one of the five fields of an expression: what it is called, what it takes, and how its text becomes a set
// of values. Each field has a parser of its own, so that an error can name it.
type field struct {
	name     string
	min, max int
	names    string // named values, for messages
	parser   robfig.Parser
	bits     func(*robfig.SpecSchedule) uint64
}

var (
	minuteField = field{"minute", 0, 59, "", robfig.NewParser(robfig.Minute), func(s *robfig.SpecSchedule) uint64 { return s.Minute }}
	hourField   = field{"hour", 0, 23, "", robfig.NewParser(robfig.Hour), func(s *robfig.SpecSchedule) uint64 { return s.Hour }}
	domField    = field{"day of month", 1, 31, "", robfig.NewParser(robfig.Dom), func(s *robfig.SpecSchedule) uint64 { return s.Dom }}
	monthField  = field{"month", 1, 12, " or JAN to DEC", robfig.NewParser(robfig.Month), func(s *robfig.SpecSchedule) uint64 { return s.Month }}
	dowField    = field{"day of week", 0, 7, " (0 and 7 are Sunday) or SUN to SAT", robfig.NewParser(robfig.Dow), func(s *robfig.SpecSchedule) uint64 { return s.Dow }}
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
	if step, err := strconv.Atoi(parts[3]); parts[3] != "" && (err != nil || step < 1 || step > f.max-f.min+1) {
		return 0, invalid("%s: the step of %q is not allowed: use 1 to %d", f.name, item, f.max-f.min+1)
	}
	if f.max == 7 {
		item = withoutSeven(item, parts)
	}
	var set uint64
	for plain := range strings.SplitSeq(item, ",") {
		parsed, err := f.parser.Parse(plain)
		if err != nil {
			return 0, f.refuse(item)
		}
		spec, ok := parsed.(*robfig.SpecSchedule)
		if !ok {
			return 0, f.refuse(item)
		}
		set |= f.bits(spec) & (1<<(f.max+1) - 1) // without the library's mark for "*"
	}
	return set, nil
}

func (f field) refuse(item string) error {
	return invalid("%s: %q is not allowed: use %d to %d%s, * for all, a range like %d-%d, a list like %d,%d or a step like */2",
		f.name, item, f.min, f.max, f.names, f.min, f.min+2, f.min, f.min+2)
}

// withoutSeven rewrites an item of the day-of-week field so that 7 (Sunday, which the library does not know) becomes 0:
// "7" is "0", "5-7" is "5,6,0", "1-7/2" is "1,3,5,0".
func withoutSeven(item string, parts []string) string {
	if item == "7" {
		return "0"
	}
	if parts[2] != "7" {
		return item
	}
	from, ok := weekdayNumber(parts[1])
	if !ok {
		return item
	}
	step := 1
	if parts[3] != "" {
		step, _ = strconv.Atoi(parts[3]) // checked by the caller
	}
	var days []string
	for day := from; day <= 7; day += step {
		days = append(days, strconv.Itoa(day%7))
	}
	return strings.Join(days, ",")
}

func weekdayNumber(text string) (int, bool) {
	const names = "sunmontuewedthufrisat"
	if at := strings.Index(names, strings.ToLower(text)); len(text) == 3 && at >= 0 && at%3 == 0 {
		return at / 3, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= 7
}
