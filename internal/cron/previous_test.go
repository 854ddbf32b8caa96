package cron

import (
	"testing"
	"time"
)

// Previous goes back over exactly the slots that Next went forward over.
func TestPreviousIsTheWayBack(t *testing.T) {
	for _, c := range []struct{ expression, zone, from string }{
		{"* * * * *", "UTC", "2026-04-25T10:30:00Z"},
		{"30 1 * * *", "America/New_York", "2026-10-30T12:00:00Z"},
		{"30 2 * * *", "America/New_York", "2026-03-06T12:00:00Z"},
		{"*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T13:00:00Z"},
		{"0 0 * * *", "Africa/Cairo", "2026-04-22T12:00:00Z"},
		{"0 0 29 2 *", "UTC", "2020-01-01T00:00:00Z"},
	} {
		s := parse(t, c.expression, c.zone)
		slots := s.NextN(instant(t, c.from), 5)
		for i := len(slots) - 1; i > 0; i-- {
			if got := s.Previous(slots[i]); !got.Equal(slots[i-1]) {
				t.Errorf("%q in %s: before %s came %s, want %s", c.expression, c.zone, slots[i], got, slots[i-1])
			}
		}
	}
	if got := parse(t, "* * * * *", "UTC").Previous(instant(t, "2026-04-25T10:30:00.5Z")); !got.Equal(instant(t, "2026-04-25T10:30:00Z")) {
		t.Errorf("half a second after a slot: %s", got)
	}
	if got := (Schedule{}).Previous(time.Unix(0, 0)); !got.IsZero() {
		t.Errorf("the zero schedule fired at %s", got)
	}
}

// The clock changes that people trip over: Lord Howe's half hour, Cairo's missing midnight, Troll's two hours.
func BenchmarkNext(b *testing.B) {
	for _, c := range []struct{ name, expression, zone, after string }{
		{"every minute", "* * * * *", "UTC", "2026-04-25T10:30:00Z"},
		{"daily across the change", "30 1 * * *", "America/New_York", "2026-10-31T16:00:00Z"},
		{"Lord Howe", "*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T15:00:00Z"},
		{"Cairo's missing midnight", "0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z"},
		{"Troll's two hours", "30 1 * * *", "Antarctica/Troll", "2026-03-28T12:00:00Z"},
		{"29 February", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z"},
		{"29 February on a Sunday, 40 years", "0 0 29 2 */7", "Europe/Berlin", "2072-03-01T00:00:00Z"},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, after := parse(b, c.expression, c.zone), instant(b, c.after)
			for b.Loop() {
				if s.Next(after).IsZero() {
					b.Fatal("no slot")
				}
			}
		})
	}
}
