package cron

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

func parsed(t *testing.T, expression, zone string) Schedule {
	t.Helper()
	s, err := Parse(expression, zone)
	if err != nil {
		t.Fatalf("%s in %s: %v", expression, zone, err)
	}
	return s
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// What a schedule is in words, at the edges of each form.
func TestExplainAtItsEdges(t *testing.T) {
	for expression, want := range map[string]string{
		"*/2 * * * *":            "every 2 minutes",
		"0,30,45 * * * *":        "at minute 0, 30 and 45 of every hour",
		"*/2 5-20 * * *":         "every 2 minutes of hour 5 to 20 every day",
		"* 5-20 * * *":           "every minute of hour 5 to 20 every day",
		"0 */2 * * *":            "every 2 hours every day",
		"0 0,4,8,12,16,20 * * *": "at 00:00, 04:00, 08:00, 12:00, 16:00 and 20:00 every day",
		"0 0-9 * * *":            "at minute 0 of hour 0 to 9 every day",
		"15 */3 * * *":           "at minute 15 of hour 0, 3, 6, 9, 12, 15, 18 and 21 every day",
		"0 9 1-31 * 1":           "at 09:00 every day",
		"0 9 1 * 0-6":            "at 09:00 every day",
		"5 * 1 * *":              "at minute 5 of every hour on day 1 of the month",
		"5 * * * 1":              "at minute 5 of every hour on Monday",
		"5 9 1 * *":              "at 09:05 on day 1 of the month",
		"5 9 * * 1":              "at 09:05 on Monday",
	} {
		if got := parsed(t, expression, "UTC").Explain(); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
	for name, c := range map[string]struct {
		set    uint64
		values int
		want   int
	}{
		"every value": {allMinutes, 60, 1}, "halves": {1 | 1<<30, 60, 30}, "the first alone": {1, 60, 0}, "without the first": {1<<5 | 1<<10, 60, 0},
		"not to the end": {1 | 1<<30 | 1<<45, 60, 0}, "what does not divide": {1 | 1<<59, 60, 0},
	} {
		if got := stepOf(c.set, c.values); got != c.want {
			t.Errorf("the step of %s is %d, want %d", name, got, c.want)
		}
	}
}

// What a refused field is told: what the field takes, and how the same is written.
func TestWhatARefusedFieldIsTold(t *testing.T) {
	for expression, want := range map[string]string{
		"x * * * *":                      `minute: "x" is not allowed: use 0 to 59, * for all, a range like 0-2, a list like 0,2 or a step like */2`,
		"0 0 x * *":                      `day of month: "x" is not allowed: use 1 to 31, * for all, a range like 1-3, a list like 1,3 or a step like */2`,
		"0 0 * x *":                      `month: "x" is not allowed: use 1 to 12 or JAN to DEC, * for all, a range like 1-3, a list like 1,3 or a step like */2`,
		"0 0 * * x":                      `day of week: "x" is not allowed: use 0 to 7 (0 and 7 are Sunday) or SUN to SAT, * for all, a range like 0-2, a list like 0,2 or a step like */2`,
		"*/61 * * * *":                   `minute: the step of "*/61" is not allowed: use 1 to 60`,
		"*/0 * * * *":                    `minute: the step of "*/0" is not allowed: use 1 to 60`,
		"0 0 */32 * *":                   `day of month: the step of "*/32" is not allowed: use 1 to 31`,
		"0 0 5-0 * *":                    `day of month: "5-0" is not allowed`,
		"0 0 * 9-2 *":                    `month: a range rises, and "9-2" falls: write one that goes over the end as "9-12,1-2"`,
		"0 0 * 11-2/2 *":                 `month: a range rises, and "11-2/2" falls: write one that goes over the end as "11,1"`,
		"0 0 * * 7-0":                    `day of week: a range rises, and "7-0" falls: write one that goes over the end as "0"`,
		"0 0 * * FRI-1":                  `day of week: a range rises, and "FRI-1" falls: write one that goes over the end as "FRI-SAT,SUN-MON"`,
		"0 0 * * 5-MON":                  `day of week: a range rises, and "5-MON" falls: write one that goes over the end as "FRI-SAT,SUN-MON"`,
		"@daily 1h":                      `write the five fields, here "0 0 * * *"`,
		"@every 90s":                     `write the five fields, e.g.`,
		"@every 24h":                     `here "0 0 * * *"`,
		"@every 12h":                     `here "0 */12 * * *"`,
		"@every 25h":                     `write the five fields, e.g.`,
		"@reboot":                        `a schedule follows the clock; fire the routine by hand`,
		"@every x":                       `write the five fields, e.g.`,
		"@never":                         `write the five fields, e.g.`,
		"*/99999999999999999999 * * * *": `use 1 to 60`,
	} {
		if _, err := Parse(expression, "UTC"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", expression, err, want)
		}
	}
	for _, expression := range []string{"*/60 * * * *", "*/1 * * * *", "0 0 */31 * *", "0 0 * * */1", "0 0 * * 1-5/1", "0 0 * * SAT-SUN"} {
		parsed(t, expression, "UTC")
	}
	if got := parsed(t, "0 9 * * 1-5", "UTC").Explain(); got != "at 09:00 on Monday to Friday" {
		t.Errorf("1-5 is %s", got)
	}
	longest := "00 0 * * 1" + strings.Repeat(",1", (maxExpression-10)/2)
	if _, err := Parse(longest, "UTC"); err != nil || len(longest) != maxExpression {
		t.Errorf("an expression of the greatest length, %d: %v", len(longest), err)
	}
	for _, zone := range []string{"localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin", "Factory", "Local", ""} {
		if _, err := Parse("0 0 * * *", zone); err == nil {
			t.Errorf("the zone %q is taken, which is no place of its own", zone)
		}
	}
}

// SPEC S4.5: exactly as many slots as are fired leave none missed; a cursor of another age counts from fifty years ago; and the
// newest are found at the far end of a gap.
func TestElapsedAtItsEdges(t *testing.T) {
	hourly := parsed(t, "0 * * * *", "UTC")
	if got := hourly.Elapsed(at("2026-01-01T00:00:00Z"), at("2026-01-01T02:30:00Z"), 3); len(got.Slots) != 3 || got.Missed != (domain.Missed{}) {
		t.Errorf("three slots, of which three fire: %+v", got)
	}
	yearly := parsed(t, "0 0 1 1 *", "UTC")
	if got := yearly.Elapsed(at("1900-01-01T00:00:00Z"), at("2026-06-01T00:00:00Z"), 1); got.Missed.Since.Year() != 1977 {
		t.Errorf("a cursor of 1900 misses since %v, want 1977", got.Missed.Since)
	}
	january := parsed(t, "* * * 1 *", "UTC")
	for _, limit := range []int{1, 2, 25} {
		got := january.Elapsed(at("2026-01-05T00:00:00Z"), at("2026-12-31T00:00:00Z"), limit)
		if len(got.Slots) != limit || !got.Missed.Truncated || !got.Slots[limit-1].Equal(at("2026-01-31T23:59:00Z")) {
			t.Errorf("the newest %d of January, in December: %+v", limit, got)
		}
	}
	if got := hourly.Between(at("2026-01-01T00:00:00Z"), at("2026-01-02T00:00:00Z"), 0); len(got) != 0 {
		t.Errorf("none of a day are %v", got)
	}
}

// SPEC S4.10: each minute that a change removes is one, the instant is that of the change, and a window of the change alone has it.
func TestClockChangesAtTheirEdges(t *testing.T) {
	every := parsed(t, "* 2 * * *", "America/New_York")
	change := at("2026-03-08T07:00:00Z")
	var slots []string
	for _, c := range every.ClockChanges(change, change.Add(time.Second), 3) {
		slots = append(slots, c.Slot)
		if !c.At.Equal(change) || c.Before != "02:00" || c.After != "03:00" || c.Repeated {
			t.Errorf("%+v", c)
		}
	}
	if want := []string{"2026-03-08 02:00", "2026-03-08 02:01", "2026-03-08 02:02"}; !slices.Equal(slots, want) {
		t.Errorf("the minutes that are removed are %v, want %v", slots, want)
	}
	if got := parsed(t, "1 12 * * *", "America/New_York").Between(at("1883-11-18T05:00:00Z"), at("1883-11-19T05:00:00Z"), 10); len(got) != 1 {
		t.Errorf("12:01 came twice as the first clock of New York was set back, and fired at %v", got)
	}
}
