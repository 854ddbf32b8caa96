package cron

import (
	"fmt"
	"time"
)

// Change is a slot that a clock change takes away or shows twice.
type Change struct {
	Repeated bool      // the slot fires the first time only; else it is removed and does not fire
	Slot     string    // the wall-clock time, e.g. "2026-03-08 02:30"
	At       time.Time // when the clock changes, UTC
	Before   string    // what the clock shows as it changes, e.g. "02:00"
	After    string    // what it is set to, e.g. "03:00"
}

// String is the change as a sentence.
func (c Change) String() string {
	if c.Repeated {
		return fmt.Sprintf("%s comes twice, since the clock is set back from %s to %s: it fires the first time only", c.Slot, c.Before, c.After)
	}
	return fmt.Sprintf("%s does not exist, since the clock goes from %s to %s: it is skipped", c.Slot, c.Before, c.After)
}

// ClockChanges is the slots in [from, until) that changes of the clock remove or repeat, in order, limit at most (SPEC
// S4.10). A repeated slot is listed when either of its two instants lies in the range, because between the two the
// clock shows a slot that will not fire.
func (s Schedule) ClockChanges(from, until time.Time, limit int) []Change {
	var changes []Change
	w := span{from.Unix(), min(until.Unix(), from.Unix()+horizon)}
	for p := periodAt(w.from-overlap, s.Zone()); p.end < w.until+overlap && len(changes) < limit; {
		next := periodAt(p.end, s.Zone())
		changes = s.changesBetween(changes, p, next, w, limit)
		p = next
	}
	return changes
}

// changesBetween appends the slots of a window that the change from one period to the next removes or repeats.
func (s Schedule) changesBetween(changes []Change, p, next period, window span, limit int) []Change {
	shown, set := p.end+p.offset, p.end+next.offset
	for wall := min(shown, set); len(changes) < limit; wall += 60 {
		var ok bool
		if wall, ok = s.nextWall(wall, max(shown, set)); !ok {
			break
		}
		repeated := set < shown
		if repeated && !window.holds(wall-p.offset) && !window.holds(wall-next.offset) || !repeated && !window.holds(p.end) {
			continue
		}
		changes = append(changes, Change{
			Repeated: repeated,
			Slot:     wallText(wall, "2006-01-02 15:04"),
			At:       time.Unix(p.end, 0).UTC(),
			Before:   wallText(shown, "15:04"),
			After:    wallText(set, "15:04"),
		})
	}
	return changes
}

func wallText(wall int64, layout string) string { return time.Unix(wall, 0).UTC().Format(layout) }
