package cron

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// walk finds slots the slow way: every minute is looked at on the wall clock, and a wall-clock time that was shown in
// the two days before is a repetition.
func walk(matches func(time.Time) bool, zone *time.Location, from, until time.Time) []time.Time {
	var slots []time.Time
	seen := map[int64]bool{}
	for at := from.Add(-48 * time.Hour); at.Before(until); at = at.Add(time.Minute) {
		local := at.In(zone)
		_, offset := local.Zone()
		shown := at.Unix() + int64(offset)
		if !seen[shown] && matches(local) && !at.Before(from) {
			slots = append(slots, at.UTC())
		}
		seen[shown] = true
	}
	return slots
}

// guess makes a random expression, and a function that says of a wall-clock time whether it matches.
func guess(random *rand.Rand) (string, func(time.Time) bool) {
	minute, minutes := guessField(random, 0, 59, "*", "0", "30", "0,30", "*/15", "15,45", "*/30", "59")
	hour, hours := guessField(random, 0, 23, "*", "1", "2", "0-3", "*/6", "23", "0,1,2,3", "12")
	dom, doms := guessField(random, 1, 31, "*", "*", "*", "1-15", "13", "*/2", "28-31")
	month, months := guessField(random, 1, 12, "*", "*", "3,10", "4-9")
	dow, dows := guessField(random, 0, 6, "*", "*", "*", "0", "1-5", "*/3")
	either := dom[0] != '*' && dow[0] != '*'
	matches := func(t time.Time) bool {
		day := doms[t.Day()] && dows[int(t.Weekday())]
		if either {
			day = doms[t.Day()] || dows[int(t.Weekday())]
		}
		return minutes[t.Minute()] && hours[t.Hour()] && months[int(t.Month())] && day
	}
	return strings.Join([]string{minute, hour, dom, month, dow}, " "), matches
}

func guessField(random *rand.Rand, low, high int, choices ...string) (string, map[int]bool) {
	text := choices[random.IntN(len(choices))]
	set := map[int]bool{}
	for item := range strings.SplitSeq(text, ",") {
		from, to, step := low, high, 1
		if n, _ := fmt.Sscanf(item, "*/%d", &step); n == 0 && item != "*" {
			if n, _ = fmt.Sscanf(item, "%d-%d", &from, &to); n == 1 {
				to = from
			}
		}
		for v := from; v <= to; v += step {
			set[v] = true
		}
	}
	return text, set
}

// Every zone here changes its clock in its own way; the windows are around those changes.
func TestSlotsAgreeWithAMinuteWalk(t *testing.T) {
	random, expressions := rand.New(rand.NewPCG(7, 11)), 60
	if testing.Short() { // for make mutants, which runs this hundreds of times
		expressions = 3
	}
	for _, c := range []struct{ zone, around string }{
		{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
		{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
		{"Pacific/Chatham", "2026-04-04T14:00:00Z"},
		{"Pacific/Chatham", "2026-09-26T14:00:00Z"},
		{"Pacific/Apia", "2011-12-30T10:00:00Z"},      // a day is left out
		{"Pacific/Kwajalein", "1993-08-21T12:00:00Z"}, // so is this one
		{"Africa/Casablanca", "2026-02-15T02:00:00Z"},
		{"Africa/Casablanca", "2026-03-22T02:00:00Z"},
		{"America/St_Johns", "2006-10-29T02:31:00Z"}, // one minute past midnight
		{"America/St_Johns", "2026-03-08T05:30:00Z"},
		{"America/New_York", "2026-03-08T07:00:00Z"},
		{"America/New_York", "2026-11-01T06:00:00Z"},
		{"Antarctica/Troll", "2026-03-29T01:00:00Z"}, // two hours
		{"Antarctica/Troll", "2026-10-25T01:00:00Z"},
		{"America/Havana", "2026-11-01T05:00:00Z"},
		{"Asia/Beirut", "2026-03-28T22:00:00Z"}, // midnight is left out
		{"Asia/Gaza", "2026-10-24T00:00:00Z"},
		{"Europe/Dublin", "2026-10-25T01:00:00Z"},
		{"America/New_York", "2093-11-01T06:00:00Z"}, // beyond the stored table
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		around := instant(t, c.around)
		from, until := around.Add(-50*time.Hour), around.Add(60*time.Hour)
		for range expressions {
			expression, matches := guess(random)
			s := parse(t, expression, c.zone)
			want := walk(matches, zone, from, until)
			if got := s.Between(from, until, 100_000); !slices.EqualFunc(got, want, time.Time.Equal) {
				t.Fatalf("%q in %s around %s:\ngot  %s\nwant %s", expression, c.zone, c.around, spell(got), spell(want))
			}
		}
	}
}

// In every zone and at every start: slots rise, match their own schedule again, and no wall-clock time comes twice.
func FuzzSlots(f *testing.F) {
	f.Add("@every 5m", "UTC", int64(0))
	f.Add("@hourly", "", int64(0))
	for _, zone := range []string{"UTC", "Australia/Lord_Howe", "Pacific/Apia", "America/Juneau", "Africa/Monrovia"} {
		f.Add("*/7 0-3 * * *", zone, int64(1_300_000_000))
		f.Add("0 0 29 2 *", zone, int64(-3_225_223_727))
	}
	f.Fuzz(func(t *testing.T, expression, zone string, start int64) {
		s, err := Parse(expression, zone)
		if err != nil {
			if refused := (*Error)(nil); !errors.As(err, &refused) || refused.Message == "" || refused.Code == "" {
				t.Fatalf("%q in %q is refused as %#v", expression, zone, err)
			}
			return
		}
		after := time.Unix(start%(1<<33), 0)
		seen := map[string]bool{}
		for _, slot := range s.NextN(after, 40) {
			if !slot.After(after) {
				t.Fatalf("%q in %s: %s is not after %s", expression, zone, slot, after)
			}
			shown := slot.In(s.Zone()).Format(time.DateTime)
			if seen[shown] || !strings.HasSuffix(shown, ":00") {
				t.Fatalf("%q in %s: %s shows %s again, or not a whole minute", expression, zone, slot, shown)
			}
			seen[shown] = true
			if next := s.Next(after); !next.Equal(slot) {
				t.Fatalf("%q in %s: after %s come %s and %s", expression, zone, after, next, slot)
			}
			after = slot
		}
	})
}

// The day that Alaska repeated when it changed its owner, with an offset that has seconds.
func TestARepeatedDayFiresOnce(t *testing.T) {
	s := parse(t, "0 12 * * *", "America/Juneau")
	seen := map[string]int{}
	for _, slot := range s.NextN(time.Date(1867, 10, 14, 0, 0, 0, 0, time.UTC), 8) {
		seen[slot.In(s.Zone()).Format(time.DateTime)]++
	}
	for shown, times := range seen {
		if times != 1 {
			t.Errorf("%s fired %d times", shown, times)
		}
	}
	if len(seen) != 8 {
		t.Errorf("got %v", seen)
	}
}
