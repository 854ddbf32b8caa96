package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

const (
	allMinutes = 1<<60 - 1
	allHours   = 1<<24 - 1
	allDoms    = 1<<32 - 2
	allMonths  = 1<<13 - 2
	allDows    = 1<<7 - 1
	maxTimes   = 6 // of a day that are spelled out one by one
)

// Explain says in words when the schedule fires, e.g. "at 09:00 on Monday to Friday". The zone is left out.
func (s Schedule) Explain() string {
	if s.minute == 0 {
		return "never"
	}
	parts := []string{s.times(), s.days(), s.months()}
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, " ")
}

// times is the times of a day.
func (s Schedule) times() string {
	n := bits.OnesCount64(s.minute) * bits.OnesCount64(s.hour)
	switch {
	case s.minute == allMinutes && s.hour == allHours:
		return "every minute"
	case s.hour == allHours && stepOf(s.minute, 60) > 1:
		return fmt.Sprintf("every %d minutes", stepOf(s.minute, 60))
	case s.hour == allHours:
		return "at minute " + list(s.minute, plainNumber) + " of every hour"
	case n <= maxTimes:
		var times []string
		for hour := range each(s.hour) {
			for minute := range each(s.minute) {
				times = append(times, fmt.Sprintf("%02d:%02d", hour, minute))
			}
		}
		return "at " + join(times, "and")
	case s.minute == 1 && stepOf(s.hour, 24) > 1:
		return fmt.Sprintf("every %d hours", stepOf(s.hour, 24))
	case s.minute == allMinutes:
		return "every minute of hour " + list(s.hour, plainNumber)
	case stepOf(s.minute, 60) > 1:
		return fmt.Sprintf("every %d minutes of hour %s", stepOf(s.minute, 60), list(s.hour, plainNumber))
	}
	return "at minute " + list(s.minute, plainNumber) + " of hour " + list(s.hour, plainNumber)
}

// days is the days of a month; "" where every day is understood.
func (s Schedule) days() string {
	dom, dow := "day "+list(s.dom, plainNumber)+" of the month", list(s.weekdays(), weekday)
	switch everyDom, everyDow := s.dom == allDoms, s.weekdays() == allDows; {
	case s.anyDay && (everyDom || everyDow):
		return "every day"
	case s.anyDay:
		return "on " + dom + " or on " + dow
	case everyDom && everyDow && s.hour == allHours:
		return ""
	case everyDom && everyDow:
		return "every day"
	case everyDow:
		return "on " + dom
	case everyDom:
		return "on " + dow
	}
	return "on " + dom + " if it is a " + dow
}

func (s Schedule) months() string {
	if s.month == allMonths {
		return ""
	}
	return "in " + list(s.month, func(n int) string { return time.Month(n).String() })
}

func (s Schedule) weekdays() uint64 { return s.dow & allDows }

func plainNumber(n int) string { return strconv.Itoa(n) }
func weekday(n int) string     { return time.Weekday(n).String() }

// each walks the values of a set.
func each(set uint64) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for ; set != 0; set &= set - 1 {
			if !yield(bits.TrailingZeros64(set)) {
				return
			}
		}
	}
}

// stepOf is n when a set is 0, n, 2n, … up to the end of a field of that many values, and n divides it; else 0.
func stepOf(set uint64, values int) int {
	n := bits.TrailingZeros64(set &^ 1)
	if set&1 == 0 || n >= values || values%n != 0 {
		return 0
	}
	var steps uint64
	for v := 0; v < values; v += n {
		steps |= 1 << v
	}
	if steps != set {
		return 0
	}
	return n
}

// list spells a set, three and more values in a row as a range: "1 to 5 and 7".
func list(set uint64, spell func(int) string) string {
	var items []string
	for set != 0 {
		from := bits.TrailingZeros64(set)
		length := bits.TrailingZeros64(^(set >> from))
		for v := from; v < from+length; v++ {
			if length < 3 {
				items = append(items, spell(v))
			}
			set &^= 1 << v
		}
		if length >= 3 {
			items = append(items, spell(from)+" to "+spell(from+length-1))
		}
	}
	return join(items, "and")
}

func join(items []string, word string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " " + word + " " + items[len(items)-1]
}
