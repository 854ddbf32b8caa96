package cron

import (
	"slices"
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

// SPEC S4.10: who asks while the clock shows an hour again is told as well, since 01:30 on the clock will not fire then.
func TestClockChangesBesideARepeatedHour(t *testing.T) {
	for _, c := range []struct {
		name, from, until string
		want              []string
	}{
		{"asked before the hour", "2026-11-01T04:00:00Z", "2026-11-01T05:31:00Z", []string{"2026-11-01 01:30"}},
		{"asked in the hour, the first time", "2026-11-01T05:40:00Z", "2026-11-02T06:31:00Z", []string{"2026-11-01 01:30"}},
		{"asked as the clock is set back", "2026-11-01T06:00:00Z", "2026-11-02T06:31:00Z", []string{"2026-11-01 01:30"}},
		{"asked in the hour, the second time", "2026-11-01T06:10:00Z", "2026-11-02T06:31:00Z", []string{"2026-11-01 01:30"}},
		{"asked behind the second coming of the slot", "2026-11-01T06:31:00Z", "2026-11-02T06:31:00Z", nil},
		{"asked behind the hour", "2026-11-01T07:00:00Z", "2026-11-02T06:31:00Z", nil},
		{"a window between the two comings", "2026-11-01T05:40:00Z", "2026-11-01T06:30:00Z", nil},
		{"a window that ends before the hour", "2026-11-01T04:00:00Z", "2026-11-01T05:30:00Z", nil},
		{"asked as the clock goes forward", "2026-03-08T07:00:00Z", "2026-03-09T06:31:00Z", nil},
	} {
		if got := slotsOf(parse(t, "30 1 * * *", "America/New_York").ClockChanges(instant(t, c.from), instant(t, c.until), 50)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func slotsOf(changes []Change) []string {
	var slots []string
	for _, c := range changes {
		slots = append(slots, c.Slot)
	}
	return slots
}

// Every schedule of the probe cases, asked around each change of its clock in a year: the notes are what a look at
// every minute of the wall clock finds.
func TestClockChangesOnEveryProbeCase(t *testing.T) {
	asked, noted, least := map[string]bool{}, 0, 1000
	cases := probeCases(t)
	if testing.Short() { // for make mutants, which runs this hundreds of times
		cases, least = cases[:len(cases)/10], 100
	}
	for _, row := range cases {
		if asked[row[0]+row[1]] {
			continue
		}
		asked[row[0]+row[1]] = true
		s, onTheWall := parse(t, row[0], row[1]), parse(t, row[0], "UTC")
		for _, set := range clockSets(s.Zone(), instant(t, "2025-10-20T00:00:00Z"), instant(t, "2026-10-30T00:00:00Z")) {
			for _, before := range []time.Duration{5 * time.Hour, 10 * time.Minute, 0, -10 * time.Minute} {
				from, until := set.Add(-before), set.Add(24*time.Hour)
				got, want := slotsOf(s.ClockChanges(from, until, 10_000)), watchClock(onTheWall, s.Zone(), set, from, until)
				if noted += len(want); !slices.Equal(got, want) {
					t.Errorf("%q in %s from %s: %v, want %v", row[0], row[1], from, got, want)
				}
			}
		}
	}
	if noted < least {
		t.Errorf("only %d slots are removed or repeated", noted)
	}
}

// clockSets is the instants at which a zone's clock is set within a window and the three hours around it.
func clockSets(zone *time.Location, from, until time.Time) []time.Time {
	var sets []time.Time
	until = until.Add(3 * time.Hour)
	for at := from.Add(-3 * time.Hour).In(zone); at.Before(until); {
		_, end := at.ZoneBounds()
		switch {
		case end.IsZero():
			return sets
		case !end.After(at): // beyond the stored table, 31 December of a leap year lies behind the end of its own stretch
			at = at.Add(24 * time.Hour)
			continue
		}
		if _, before := at.Zone(); end.Before(until) && before != offsetOf(end) {
			sets = append(sets, end)
		}
		at = end
	}
	return sets
}

func offsetOf(t time.Time) int {
	_, offset := t.Zone()
	return offset
}

// watchClock looks at the wall clock minute by minute around a change: which slots of a window does it leave out, or show
// twice?
func watchClock(onTheWall Schedule, zone *time.Location, set, from, until time.Time) []string {
	const around = 130 * time.Minute // no clock of the file is set by more than two hours
	inWindow := func(at time.Time) bool { return !at.Before(from) && at.Before(until) }
	wallOf := func(at time.Time) time.Time { return at.Add(time.Duration(offsetOf(at.In(zone))) * time.Second).UTC() }
	shown := map[time.Time][]time.Time{}
	for at := set.Add(-2 * around); at.Before(set.Add(2 * around)); at = at.Add(time.Minute) {
		shown[wallOf(at)] = append(shown[wallOf(at)], at)
	}
	var slots []string
	for wall := wallOf(set.Add(-around)); wall.Before(wallOf(set.Add(around))); wall = wall.Add(time.Minute) {
		at := shown[wall]
		noted := len(at) == 0 && inWindow(set) || len(at) == 2 && slices.ContainsFunc(at, inWindow)
		if noted && len(onTheWall.Between(wall, wall.Add(time.Minute), 1)) == 1 {
			slots = append(slots, wall.Format("2006-01-02 15:04"))
		}
	}
	return slots
}
