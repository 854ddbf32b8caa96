package cron

import (
	"iter"
	"time"
)

// Next is the first slot after an instant, in UTC; the zero time when none comes within a century.
func (s Schedule) Next(after time.Time) time.Time {
	for slot := range s.Slots(after) {
		return slot
	}
	return time.Time{}
}

// Previous is the newest slot before an instant, in UTC; the zero time when there is none within a century.
func (s Schedule) Previous(before time.Time) time.Time {
	for length := int64(secondsPerDay); ; length *= 4 {
		from := before.Add(-time.Duration(min(length, horizon)) * time.Second)
		if slots := lastBetween(s.Slots, from, before, 1); len(slots) > 0 {
			return slots[0]
		}
		if length >= horizon {
			return time.Time{}
		}
	}
}

// NextN is the first n slots after an instant, in order, in UTC; fewer when the schedule has no more.
func (s Schedule) NextN(after time.Time, n int) []time.Time {
	return take(s.Slots, after, time.Time{}, n)
}

// Between is the slots in [from, until), oldest first, in UTC, limit at most. Both ends of a window that follows
// another fit together: a slot at the border belongs to the second.
func (s Schedule) Between(from, until time.Time, limit int) []time.Time {
	return take(s.Slots, justBefore(from), until, limit)
}

// take collects up to limit slots after an instant and before another (zero: without end).
func take(walk walker, after, until time.Time, limit int) []time.Time {
	var slots []time.Time
	if limit <= 0 {
		return slots
	}
	for slot := range walk(after) {
		if !until.IsZero() && !slot.Before(until) {
			break
		}
		if slots = append(slots, slot); len(slots) == limit {
			break
		}
	}
	return slots
}

// lastYear is the last instant of year 9999, behind which no slot is: neither RFC 3339 nor the API can write a later one.
var lastYear = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()

// Slots walks the slots after an instant, in order, in UTC, for at most a century and until year 9999.
func (s Schedule) Slots(after time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		from := after.Unix() + 1 // slots are whole seconds
		last := min(after.Unix()+horizon, lastYear+1)
		for from < last {
			p := periodAt(from, s.Zone())
			if !s.slotsOf(p, from, min(p.end, last), yield) {
				return
			}
			from = p.end
		}
	}
}

// slotsOf walks the slots of one period in [from, until), and says whether to go on.
func (s Schedule) slotsOf(p period, from, until int64, yield func(time.Time) bool) bool {
	for wall := from + p.offset; ; wall += 60 {
		var ok bool
		if wall, ok = s.nextWall(wall, until+p.offset); !ok {
			return true
		}
		if !p.repeats(wall) && !yield(time.Unix(wall-p.offset, 0).UTC()) {
			return false
		}
	}
}

// justBefore is the newest instant whose "after" includes t, at the resolution of slots.
func justBefore(t time.Time) time.Time {
	if t.Nanosecond() > 0 {
		return t
	}
	return t.Add(-time.Second)
}
