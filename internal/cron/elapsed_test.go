package cron

import (
	"testing"
	"time"
)

// SPEC S4.5: the elapsed slots, and the older ones counted up to 10,000.
func TestElapsed(t *testing.T) {
	now := time.Date(2026, 4, 25, 12, 0, 12, 0, time.UTC)
	minute := now.Truncate(time.Minute)
	for _, c := range []struct {
		name, expression string
		cursor, now      time.Time
		limit            int
		fire, missed     int
		truncated        bool
		oldest, newest   time.Time
	}{
		{"C39 the slot due now", "* * * * *", minute, now, 25, 1, 0, false, minute, minute},
		{"C39 the cursor is now, to the nanosecond", "* * * * *", minute, minute, 25, 1, 0, false, minute, minute},
		{"C40 down ten minutes", "* * * * *", minute.Add(-10 * time.Minute), now, 25, 11, 0, false, minute.Add(-10 * time.Minute), minute},
		{"C41 down a hundred minutes, five may fire", "* * * * *", minute.Add(-100 * time.Minute), now, 5, 5, 96, false, minute.Add(-4 * time.Minute), minute},
		{"C43 hourly, down five hours, one may fire", "0 * * * *", minute.Add(-5 * time.Hour), now, 1, 1, 5, false, minute, minute},
		{"C45 down 366 days", "* * * * *", minute.AddDate(0, 0, -366), now, 5, 5, MaxMissed, true, minute.Add(-4 * time.Minute), minute},
		{"exactly the most that is counted", "* * * * *", minute.Add(-10_004 * time.Minute), now, 5, 5, 10_000, false, minute.Add(-4 * time.Minute), minute},
		{"one more than is counted", "* * * * *", minute.Add(-10_005 * time.Minute), now, 5, 5, 10_000, true, minute.Add(-4 * time.Minute), minute},
		{"most slots long ago", "* * * 1 *", minute.AddDate(-1, 0, 0), now, 3, 3, 10_000, true,
			time.Date(2026, 1, 31, 23, 57, 0, 0, time.UTC), time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC)},
		{"a limit of 0 is 1", "* * * * *", minute.Add(-time.Minute), now, 0, 1, 1, false, minute, minute},
		{"C205 late by 223 s", "0 12 * * *", minute, now.Add(223 * time.Second), 25, 1, 0, false, minute, minute},
		{"a cursor from before time began", "* * * * *", time.Time{}, now, 1000, 1000, 10_000, true, minute.Add(-999 * time.Minute), minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := parse(t, c.expression, "UTC").Elapsed(c.cursor, c.now, c.limit)
			if len(got.Slots) != c.fire || got.Missed.Ticks != c.missed || got.Missed.Truncated != c.truncated {
				t.Fatalf("fire %d, missed %d, truncated %t", len(got.Slots), got.Missed.Ticks, got.Missed.Truncated)
			}
			if !got.Slots[0].Equal(c.oldest) || !got.Slots[c.fire-1].Equal(c.newest) {
				t.Errorf("from %s to %s", got.Slots[0], got.Slots[c.fire-1])
			}
			if c.missed > 0 && !c.cursor.IsZero() && !got.Missed.Since.Equal(parse(t, c.expression, "UTC").Next(c.cursor.Add(-time.Second))) {
				t.Errorf("missed since %s", got.Missed.Since)
			}
			if c.missed == 0 && !got.Missed.Since.IsZero() {
				t.Errorf("nothing missed, since %s", got.Missed.Since)
			}
		})
	}
}

func TestElapsedBeforeTheCursorIsEmpty(t *testing.T) {
	now := time.Date(2026, 4, 25, 12, 0, 30, 0, time.UTC)
	if got := parse(t, "* * * * *", "UTC").Elapsed(now.Add(time.Hour), now, 25); len(got.Slots) != 0 || got.Missed.Ticks != 0 {
		t.Errorf("got %+v", got)
	}
}

func BenchmarkElapsedYear(b *testing.B) { // C45
	s := parse(b, "* * * * *", "America/New_York")
	now := time.Date(2026, 4, 25, 12, 0, 0, 0, time.UTC)
	for b.Loop() {
		s.Elapsed(now.AddDate(-1, 0, -1), now, 1000)
	}
}

func BenchmarkNextRare(b *testing.B) { // C202
	s := parse(b, "0 0 29 2 *", "America/New_York")
	for b.Loop() {
		s.Next(time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC))
	}
}
