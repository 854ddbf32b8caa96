package cron

import (
	"strings"
	"testing"
	"time"
)

// SPEC S4.2, S4.10: a slot that a clock change removes is skipped, a repeated one fires first; the preview says so.
func TestClockChanges(t *testing.T) {
	for _, c := range []struct {
		name, expression, zone string
		want                   []string
	}{
		{"a removed slot", "30 2 * * *", "America/New_York", []string{"2026-03-08 02:30 does not exist, since the clock goes from 02:00 to 03:00"}},
		{"a repeated slot", "30 1 * * *", "America/New_York", []string{"2026-11-01 01:30 comes twice, since the clock is set back from 02:00 to 01:00"}},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", []string{"2026-10-04 02:15 does not exist"}},
		{"a slot at the end of a gap exists", "0 3 * * *", "America/New_York", nil},
		{"a slot at the end of an overlap comes once", "0 2 1-7 11 *", "America/New_York", nil},
		{"no changes", "30 2 * * *", "UTC", nil},
	} {
		got := parse(t, c.expression, c.zone).ClockChanges(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 50)
		if len(got) != len(c.want) {
			t.Fatalf("%s: %v", c.name, got)
		}
		for i := range got {
			if !strings.HasPrefix(got[i].String(), c.want[i]) {
				t.Errorf("%s: %s", c.name, got[i])
			}
		}
	}
	if got := parse(t, "* * * * *", "America/New_York").ClockChanges(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 7); len(got) != 7 {
		t.Errorf("limit 7: %d", len(got))
	}
}
