package cron

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// Spec is what a person set of a schedule. Exactly one of Expression and At is there.
type Spec struct {
	Expression, Zone string
	At               *time.Time    // the only slot
	StartsAt, EndsAt *time.Time    // slots are from StartsAt on and before EndsAt; nil: without bound
	Jitter           time.Duration // a slot is due up to so much later
	SkipDates        []string      // dates of the zone, as 2006-01-02, that have no slots
	Seed             string        // what tells two schedules' jitters apart
}

// Timing is when a schedule has its slots, and when each of them is due. It is an immutable value.
type Timing struct {
	Schedule // of an expression; without one it never fires
	Spec
	skipped map[string]bool
}

// ParseTiming reads a spec. Every error is an *Error.
func ParseTiming(spec Spec) (t Timing, err error) {
	t.Spec = spec
	if spec.At == nil {
		t.Schedule, err = Parse(spec.Expression, spec.Zone)
	} else {
		t.Schedule.zone, err = loadZone(spec.Zone)
	}
	if len(spec.SkipDates) > 0 {
		t.skipped = make(map[string]bool, len(spec.SkipDates))
		for _, date := range spec.SkipDates {
			t.skipped[date] = true
		}
	}
	return t, err
}

// Zone is the zone whose wall clock the schedule follows.
func (t Timing) Zone() *time.Location { return t.Schedule.Zone() }

// Slots walks the slots after an instant, in order, in UTC.
func (t Timing) Slots(after time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if t.StartsAt != nil && justBefore(*t.StartsAt).After(after) {
			after = justBefore(*t.StartsAt)
		}
		for slot := range t.all(after) {
			if t.EndsAt != nil && !slot.Before(*t.EndsAt) {
				return
			}
			if !t.skips(slot) && !yield(slot) {
				return
			}
		}
	}
}

// all walks the slots of the expression, or the only one.
func (t Timing) all(after time.Time) iter.Seq[time.Time] {
	if t.At == nil {
		return t.Schedule.Slots(after)
	}
	return func(yield func(time.Time) bool) {
		if t.At.After(after) {
			yield(t.At.UTC())
		}
	}
}

func (t Timing) skips(slot time.Time) bool {
	return len(t.skipped) > 0 && t.skipped[slot.In(t.Zone()).Format(time.DateOnly)]
}

// Due is when a slot is due: so much later as its jitter says, which is the same whenever it is asked, and before the next slot of
// the expression. So no slot overtakes another.
func (t Timing) Due(slot time.Time) time.Time {
	room := int64(t.Jitter / time.Second)
	if room <= 0 {
		return slot
	}
	for next := range t.all(slot) {
		room = min(room, int64(next.Sub(slot)/time.Second)-1)
		break
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", t.Seed, slot.Unix()))
	return slot.Add(time.Duration(binary.BigEndian.Uint64(sum[:])%uint64(room+1)) * time.Second)
}

// Fire is a slot, and when it is due.
type Fire struct{ Slot, Due time.Time }

// Fires walks what is due after an instant, in order.
func (t Timing) Fires(after time.Time) iter.Seq[Fire] {
	return func(yield func(Fire) bool) {
		for slot := range t.Slots(after.Add(-max(t.Jitter, 0))) {
			if due := t.Due(slot); due.After(after) && !yield(Fire{slot, due}) {
				return
			}
		}
	}
}

// NextDue is when the next slot is due after an instant; the zero time when none is any more.
func (t Timing) NextDue(after time.Time) time.Time {
	for fire := range t.Fires(after) {
		return fire.Due
	}
	return time.Time{}
}

// FirstDue is when the first slot is due that lies after an instant: where a schedule begins that was set or switched on then. A slot
// before may have fired as it was set before.
func (t Timing) FirstDue(after time.Time) time.Time {
	for slot := range t.Slots(after) {
		return t.Due(slot)
	}
	return time.Time{}
}

// Elapsed is the slots that were due from a cursor until an instant, both included: the newest limit of them, and how many are left
// out. The cost is bounded as that of Schedule.Elapsed.
func (t Timing) Elapsed(cursor, until time.Time, limit int) domain.ElapsedSlots {
	if t.Jitter <= 0 {
		return elapsed(t.Slots, cursor, until, limit)
	}
	from, ok := t.firstFrom(cursor)
	if !ok || from.After(until) {
		return domain.ElapsedSlots{}
	}
	for slot := range t.Slots(until.Add(-t.Jitter)) {
		if t.Due(slot).After(until) {
			until = slot.Add(-time.Nanosecond)
			break
		}
	}
	if until.Before(from) {
		return domain.ElapsedSlots{}
	}
	return elapsed(t.Slots, from, until, limit)
}

// firstFrom is the first slot that is due at an instant or later.
func (t Timing) firstFrom(instant time.Time) (time.Time, bool) {
	for fire := range t.Fires(justBefore(instant)) {
		return fire.Slot, true
	}
	return time.Time{}, false
}

// Explain says in words when it fires.
func (t Timing) Explain() string {
	var b strings.Builder
	if t.At != nil {
		b.WriteString("once, on " + t.told(*t.At))
	} else {
		b.WriteString(t.Schedule.Explain())
	}
	if t.StartsAt != nil {
		b.WriteString(", from " + t.told(*t.StartsAt) + " on")
	}
	if t.EndsAt != nil {
		b.WriteString(", before " + t.told(*t.EndsAt))
	}
	if n := len(t.SkipDates); n == 1 {
		b.WriteString(", not on " + t.SkipDates[0])
	} else if n > 1 {
		fmt.Fprintf(&b, ", not on %d dates", n)
	}
	if t.Jitter > 0 {
		fmt.Fprintf(&b, ", up to %s later", t.Jitter)
	}
	return b.String()
}

// told is an instant on the wall clock of the zone.
func (t Timing) told(at time.Time) string { return at.In(t.Zone()).Format("2006-01-02 15:04") }
