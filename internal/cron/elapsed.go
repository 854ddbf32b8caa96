package cron

import (
	"iter"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// MaxMissed is the most slots that catch-up counts as missed; a longer outage says "at least this many" (SPEC S4.5).
const MaxMissed = 10_000

// maxOutage keeps the arithmetic within the range of a duration. No real trigger has a cursor that is older.
const maxOutage = 50 * 365 * 24 * time.Hour

// Elapsed is the slots in [cursor, now]: the newest limit of them to fire, and how many older ones are left out (SPEC
// S4.5, C39 to C45). The cost is bounded however long ago the cursor is: MaxMissed + limit slots are walked from the
// cursor, and when there are more, the newest are found from the other end.
func (s Schedule) Elapsed(cursor, now time.Time, limit int) domain.ElapsedSlots {
	return elapsed(s.Slots, cursor, now, limit)
}

// walker walks slots after an instant, in order.
type walker func(after time.Time) iter.Seq[time.Time]

// elapsed is Elapsed of slots that are walked.
func elapsed(walk walker, cursor, now time.Time, limit int) domain.ElapsedSlots {
	limit = max(limit, 1)
	if oldest := now.Add(-maxOutage); cursor.Before(oldest) {
		cursor = oldest
	}
	until := now.Add(time.Nanosecond) // now itself is due
	slots := take(walk, justBefore(cursor), until, MaxMissed+limit+1)
	if len(slots) <= limit {
		return domain.ElapsedSlots{Slots: slots}
	}
	missed := domain.Missed{Ticks: len(slots) - limit, Since: slots[0]}
	if missed.Ticks > MaxMissed {
		missed.Ticks, missed.Truncated = MaxMissed, true
		slots = newest(walk, cursor, until, limit)
	}
	return domain.ElapsedSlots{Slots: slots[len(slots)-limit:], Missed: missed}
}

// newest is at least the newest limit slots of a window that holds more, oldest first. It looks at the end of the
// window and takes twice as much of it until there are enough.
func newest(walk walker, from, until time.Time, limit int) []time.Time {
	for length := time.Duration(limit+1) * time.Minute; ; length *= 2 {
		start := until.Add(-length)
		if start.Before(from) {
			start = from
		}
		slots := lastBetween(walk, start, until, limit)
		if len(slots) == limit || start.Equal(from) {
			return slots
		}
	}
}

// lastBetween is the newest limit slots of [from, until), oldest first, keeping no more than twice as many at a time.
func lastBetween(walk walker, from, until time.Time, limit int) []time.Time {
	slots := make([]time.Time, 0, 2*limit)
	for slot := range walk(justBefore(from)) {
		if !slot.Before(until) {
			break
		}
		if len(slots) == 2*limit {
			slots = append(slots[:0], slots[limit:]...)
		}
		slots = append(slots, slot)
	}
	return slots[max(0, len(slots)-limit):]
}
