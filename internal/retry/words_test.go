package retry

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// resetOf is what ResetAt reads of a sentence behind words of a limit; "" for nothing.
func resetOf(now time.Time, zone *time.Location, sentence string) string {
	at, ok := ResetAt(now, "rate limit, "+sentence, zone)
	if !ok {
		return ""
	}
	return at.Format(time.RFC3339Nano)
}

func TestEachSpellingOfAUnitIsRead(t *testing.T) {
	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	for spellings, unit := range map[string]time.Duration{
		"ms millisecond milliseconds": time.Millisecond, "s sec secs second seconds": time.Second, "m min mins minute minutes": time.Minute,
		"h hr hrs hour hours": time.Hour, "d day days": 24 * time.Hour,
	} {
		for _, spelling := range strings.Fields(spellings) {
			for _, written := range []string{spelling, strings.ToUpper(spelling)} {
				for _, sentence := range []string{"retry after 2 " + written, "try again in 2 " + written, "try again in 2" + written} {
					if got, want := resetOf(now, nil, sentence), now.Add(2*unit).Format(time.RFC3339Nano); got != want {
						t.Errorf("%q: %s, want %s", sentence, got, want)
					}
				}
			}
		}
	}
}

func TestTimesOfDayAreReadAsPeopleWriteThem(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, now, sentence, want string
		zone                      *time.Location
	}{
		{"24 hours", "2026-01-15T10:00:00Z", "resets at 17:45", "2026-01-15T17:45:00Z", nil},
		{"the last hour of the day", "2026-01-15T10:00:00Z", "resets at 23:59", "2026-01-15T23:59:00Z", nil},
		{"midnight", "2026-01-15T10:00:00Z", "resets at 00:00", "2026-01-16T00:00:00Z", nil},
		{"there is no hour 24", "2026-01-15T10:00:00Z", "resets at 24:00", "", nil},
		{"there is no minute 60", "2026-01-15T10:00:00Z", "resets at 17:60", "", nil},
		{"an hour alone is no time", "2026-01-15T10:00:00Z", "resets at 17", "", nil},
		{"one o'clock in the morning", "2026-01-15T00:30:00Z", "resets at 1am", "2026-01-15T01:00:00Z", nil},
		{"there is no hour 0 before noon", "2026-01-15T10:00:00Z", "resets at 0:30 am", "", nil},
		{"there is no hour 13 after noon", "2026-01-15T10:00:00Z", "resets at 13:30 pm", "", nil},
		{"GMT", "2026-07-15T10:00:00Z", "resets at 17:45 GMT", "2026-07-15T17:45:00Z", berlin},
		{"Z", "2026-07-15T10:00:00Z", "resets at 17:45 Z", "2026-07-15T17:45:00Z", berlin},
		{"UTC, whatever the machine's zone", "2026-07-15T10:00:00Z", "resets at 17:45 (UTC)", "2026-07-15T17:45:00Z", berlin},
		{"the machine's zone", "2026-07-15T10:00:00Z", "resets at 17:45", "2026-07-15T15:45:00Z", berlin},
		{"a zone by its name", "2026-07-15T10:00:00Z", "resets at 17:45 (Asia/Tokyo)", "2026-07-16T08:45:00Z", berlin},
		{"a zone that is none", "2026-07-15T10:00:00Z", "resets at 17:45 (Middle/Earth)", "", berlin},
		{"an abbreviation that is not known", "2026-07-15T10:00:00Z", "resets at 17:45 XYZ", "", berlin},
		{"another word of the sentence", "2026-07-15T10:00:00Z", "resets at 17:45 today", "2026-07-15T15:45:00Z", berlin},
		{"a time that this day's clocks skip is tomorrow's", "2026-03-28T23:30:00Z", "resets at 2:30 am", "2026-03-30T00:30:00Z", berlin},
		{"one that tomorrow's clocks skip is the day after's", "2026-03-28T10:00:00Z", "resets at 2:30 am", "2026-03-30T00:30:00Z", berlin},
		{"half an hour can be skipped, too", "2026-10-03T14:00:00Z", "resets at 2:15 am (Australia/Lord_Howe)", "2026-10-04T15:15:00Z", nil},
		{"half a minute ago is still believed", "2026-01-15T10:00:20Z", "resets at 10:00", "2026-01-15T10:00:00Z", nil},
		{"longer ago is tomorrow", "2026-01-15T10:00:30Z", "resets at 10:00", "2026-01-16T10:00:00Z", nil},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := resetOf(now, c.zone, c.sentence); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestAbbreviationsOfZonesAreRead(t *testing.T) {
	for name, zones := range map[string]string{
		"America/Los_Angeles": "PST PDT PT", "America/Denver": "MST MDT MT", "America/Chicago": "CST CDT CT", "America/New_York": "EST EDT ET",
		"Europe/Berlin": "CET CEST", "Europe/London": "BST", "Asia/Tokyo": "JST",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Date(2026, 7, 15, 3, 0, 0, 0, zone)
		for _, word := range strings.Fields(zones) {
			if got, want := resetOf(now, nil, "resets at 9:15 am "+word), time.Date(2026, 7, 15, 9, 15, 0, 0, zone).UTC().Format(time.RFC3339); got != want {
				t.Errorf("%s: %s, want %s", word, got, want)
			}
		}
	}
}

func TestEveryMonthAndWeekdayIsRead(t *testing.T) {
	for month := time.January; month <= time.December; month++ {
		now := time.Date(2026, month, 10, 10, 0, 0, 0, time.UTC)
		for _, name := range []string{month.String(), month.String()[:3], month.String()[:3] + "."} {
			for _, sentence := range []string{"resets on %s 12, 9:15 pm", "resets %s 12th at 21:15", "resets on %s 12, 2026, 21:15"} {
				if got, want := resetOf(now, nil, fmt.Sprintf(sentence, name)), time.Date(2026, month, 12, 21, 15, 0, 0, time.UTC).Format(time.RFC3339); got != want {
					t.Errorf(sentence+": %s, want %s", name, got, want)
				}
			}
		}
	}
	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC) // a Thursday
	for i := range 7 {
		at := time.Date(2026, 1, 15+i, 21, 15, 0, 0, time.UTC)
		if got, want := resetOf(now, nil, "resets on "+at.Weekday().String()+" at 9:15 pm"), at.Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, want %s", at.Weekday(), got, want)
		}
	}
	if got := resetOf(now, nil, "resets on Thursday at 9:15 am"); got != "2026-01-22T09:15:00Z" {
		t.Errorf("this weekday's time that is past: %s", got)
	}
	if got := resetOf(now, nil, "resets on Friday at 9:75 am"); got != "" {
		t.Errorf("a weekday with a time that is none: %s", got)
	}
}

func TestDatesThatAreNoneOrAnotherYearsAreNotRead(t *testing.T) {
	for name, c := range map[string]struct{ now, sentence, want string }{
		"the turn of the year":                         {"2026-12-30T10:00:00Z", "resets on Jan 2, 9:15 am", "2027-01-02T09:15:00Z"},
		"a year that is past":                          {"2026-01-10T10:00:00Z", "resets on Jan 12, 2025, 9:15 am", ""},
		"a year that is given is not the next":         {"2026-12-30T10:00:00Z", "resets on Jan 2, 2026, 9:15 am", ""},
		"a day that the month has not":                 {"2026-02-27T10:00:00Z", "resets on Feb 30, 9:15 am", ""},
		"a time that the day's clocks skip":            {"2026-03-28T10:00:00Z", "resets on Mar 29, 2:30 am (Europe/Berlin)", ""},
		"a half hour that they skip":                   {"2026-10-03T10:00:00Z", "resets on Oct 4, 2:15 am (Australia/Lord_Howe)", ""},
		"a word that begins like a month":              {"2026-01-10T10:00:00Z", "resets on Janus 12, 9:15 am", ""},
		"September in four letters":                    {"2026-09-10T10:00:00Z", "resets on Sept 12, 9:15 am", "2026-09-12T09:15:00Z"},
		"a date with a time that is none":              {"2026-01-10T10:00:00Z", "resets on Jan 12, 29:15", ""},
		"nine days are too far":                        {"2026-01-10T10:00:00Z", "try again in 9 days", ""},
		"eight days are believed":                      {"2026-01-10T10:00:00Z", "try again in 8 days", "2026-01-18T10:00:00Z"},
		"a number that is beyond all":                  {"2026-01-10T10:00:00Z", "retry after " + strings.Repeat("9", 400) + " seconds", ""},
		"Unix time of twelve digits is milliseconds":   {"1990-01-01T00:00:00Z", "reset: 631152000123", "1990-01-01T00:00:00.123Z"},
		"Unix time that is no number":                  {"2026-01-10T10:00:00Z", "reset: 12345678901234", ""},
		"a parsed part is not undone by a strange one": {"2026-01-10T10:00:00Z", "try again in 2 hours 5 bananas", "2026-01-10T12:00:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := resetOf(now, nil, c.sentence); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A reset counts when it stands near the words of a limit.
func TestAResetFarFromTheWordsOfALimitIsNoneOfIts(t *testing.T) {
	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	for distance, want := range map[int]bool{reach: true, reach + 1: false} {
		between := strings.Repeat(".", distance)
		for _, words := range []string{"rate limit" + between + "resets at 17:45", "resets at 17:45" + between + "rate limit"} {
			if _, ok := ResetAt(now, words, nil); ok != want {
				t.Errorf("%d characters away it is taken: %t", distance, ok)
			}
		}
	}
}

// Of a long message the beginning and the end are read.
func TestTheMiddleOfALongMessageIsNotRead(t *testing.T) {
	whole := strings.Repeat("x", longest)
	if got := clip(whole); got != whole {
		t.Errorf("of the most bytes that are read %d are left", len(got))
	}
	if got := clip(whole + "y"); len(got) != longest+1 || got[longest/2] != '\n' || !strings.HasSuffix(got, "xy") {
		t.Errorf("of one byte more %d are left", len(got))
	}
}

// A jitter that is no number is none, and a wait of a nanosecond is one.
func TestTheEdgesOfAPlan(t *testing.T) {
	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	if got := Plan(now, Counts{}, Evidence{Words: "crash"}, math.NaN()); got.At.Sub(now) != 2*time.Minute {
		t.Errorf("with a jitter that is no number it waits %v", got.At.Sub(now))
	}
	if got := Plan(now, Counts{}, Evidence{After: 1}, 0); !got.RateLimited {
		t.Error("a service that wants to be left alone for a nanosecond is not heard")
	}
}
