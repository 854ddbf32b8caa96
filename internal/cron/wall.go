package cron

import (
	"math"
	"math/bits"
	"time"
)

const (
	secondsPerDay = 24 * 60 * 60
	// horizon is how far ahead slots are looked for. The rarest schedule, 29 February on one day of the week, comes
	// again after 40 years at most.
	horizon = 100 * 366 * secondsPerDay
	// overlap is more than any clock was ever set back at once, in seconds: only that long before a period can the same
	// wall-clock time have been shown already.
	overlap = 48 * 60 * 60
)

// A wall is a wall-clock time as seconds since 1970-01-01 00:00 on that clock, whatever the zone.

// nextWall is the first wall at or after from and before limit at which the schedule has a slot.
func (s Schedule) nextWall(from, limit int64) (int64, bool) {
	from = roundUpToMinute(from)
	day := floorDiv(from, secondsPerDay)
	second := int(from - day*secondsPerDay)
	for ; day*secondsPerDay < limit; day++ {
		if s.onDay(day) {
			if second, ok := s.nextInDay(second); ok {
				wall := day*secondsPerDay + int64(second)
				return wall, wall < limit
			}
		}
		second = 0
	}
	return 0, false
}

// nextInDay is the first second of the day, at or after from (a whole minute), with a slot.
func (s Schedule) nextInDay(from int) (int, bool) {
	hour, minute := from/3600, from%3600/60
	if has(s.hour, hour) {
		if left := s.minute >> minute; left != 0 {
			return hour*3600 + (minute+bits.TrailingZeros64(left))*60, true
		}
	}
	left := s.hour >> (hour + 1)
	if left == 0 || s.minute == 0 {
		return 0, false
	}
	hour += 1 + bits.TrailingZeros64(left)
	return hour*3600 + bits.TrailingZeros64(s.minute)*60, true
}

// period is a stretch of time with one offset from UTC. Instants are Unix seconds: start is the first, end the first
// after; without a bound they are the smallest and the largest number.
type period struct {
	start, end, offset int64
	shown              []span // walls that the clock showed before this period began and that it may show again
}

// span is a half-open stretch of walls, or of instants.
type span struct{ from, until int64 }

func (s span) holds(t int64) bool { return t >= s.from && t < s.until }

// periodAt is the period that holds an instant.
func periodAt(instant int64, zone *time.Location) period {
	p := barePeriodAt(instant, zone)
	for at := p.start; at != math.MinInt64; {
		earlier := barePeriodAt(at-1, zone)
		if earlier.end+overlap < p.start {
			break
		}
		if earlier.end+earlier.offset > p.start+p.offset {
			p.shown = append(p.shown, span{earlier.firstWall(), earlier.end + earlier.offset})
		}
		at = earlier.start
	}
	return p
}

func barePeriodAt(instant int64, zone *time.Location) period {
	t := time.Unix(instant, 0).In(zone)
	_, offset := t.Zone()
	start, end := t.ZoneBounds()
	p := period{start: math.MinInt64, end: math.MaxInt64, offset: int64(offset)}
	if !start.IsZero() {
		p.start = start.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	// Beyond the stored table (2037), package time ends every year after 365 days, so that 31 December of a leap year
	// lies behind the end of its own period. Its offset holds until the year ends.
	if p.end <= instant {
		p.end = (floorDiv(instant, secondsPerDay) + 1) * secondsPerDay
	}
	return p
}

// firstWall is what the clock shows as the period begins.
func (p period) firstWall() int64 {
	if p.start == math.MinInt64 {
		return math.MinInt64
	}
	return p.start + p.offset
}

// repeats says whether the clock showed this wall before the period.
func (p period) repeats(wall int64) bool {
	for _, s := range p.shown {
		if s.holds(wall) {
			return true
		}
	}
	return false
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func roundUpToMinute(wall int64) int64 { return -floorDiv(-wall, 60) * 60 }
