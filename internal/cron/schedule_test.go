package cron

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

func parse(t testing.TB, expression, zone string) Schedule {
	t.Helper()
	s, err := Parse(expression, zone)
	if err != nil {
		t.Fatalf("parse %q in %s: %v", expression, zone, err)
	}
	return s
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	t.Fatalf("no instant: %q", text)
	return time.Time{}
}

func spell(slots []time.Time) string {
	var texts []string
	for _, s := range slots {
		texts = append(texts, s.Format("2006-01-02T15:04:05Z"))
	}
	return strings.Join(texts, " ")
}

// probeCases is the rows of the probe file: expression, zone, start, and the slots that follow, as far as the row goes.
func probeCases(t *testing.T) [][]string {
	t.Helper()
	name := "testdata/cron_cases.csv"
	if other := os.Getenv("ROUSE_TEST_CRON_CASES"); other != "" { // a larger file of the same kind
		name = other
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader := csv.NewReader(file)
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 500 {
		t.Errorf("only %d rows", len(rows))
	}
	for i, row := range rows {
		for row[len(row)-1] == "" {
			row = row[:len(row)-1]
		}
		rows[i] = row
	}
	return rows[1:]
}

// SPEC S4.2: the probe cases, whole.
func TestNextOnEveryProbeCase(t *testing.T) {
	rows, wrong := probeCases(t), 0
	for _, row := range rows {
		if got := follow(t, parse(t, row[0], row[1]), row); got != "" {
			wrong++
			t.Error(got)
		}
	}
	t.Logf("%d rows, %d wrong", len(rows), wrong)
}

// follow walks a schedule over the slots of a row, and says where they part.
func follow(t *testing.T, s Schedule, row []string) string {
	t.Helper()
	at := instant(t, row[2])
	for _, want := range row[3:] {
		if at = s.Next(at); !at.Equal(instant(t, want)) {
			return fmt.Sprintf("%q in %s after %s: got %s, want %s", row[0], row[1], row[2], spell([]time.Time{at}), want)
		}
	}
	return ""
}

// The days of the week of the probe cases, written in all ways that mean the same.
func TestNextOnEveryProbeCaseInOtherWords(t *testing.T) {
	other := map[string][]string{
		"*":   {"SUN-SAT", "MON-SUN", "1-SUN", "0-7", "mon-fri,SAT-SUN", "MON-THU,FRI-SUN"},
		"0":   {"SUN", "7", "SUN-SUN", "7-SUN", "7-7", "0-0"},
		"SUN": {"0", "7", "sun-sun"},
		"1-5": {"MON-FRI", "1-FRI", "mon-5"},
		"1":   {"MON", "mon-MON"},
		"5":   {"FRI"},
	}
	walked := 0
	for _, row := range probeCases(t) {
		fields := strings.Fields(row[0])
		for _, days := range other[fields[4]] {
			if fields[4] == "*" && fields[2] != "*" { // they are ORed unless one begins with "*"
				continue
			}
			fields[4], walked = days, walked+1
			if got := follow(t, parse(t, strings.Join(fields, " "), row[1]), row); got != "" {
				t.Errorf("with %s: %s", days, got)
			}
		}
	}
	if walked < 1000 {
		t.Errorf("only %d walks", walked)
	}
}

// SPEC S4.2: fields, names, ranges, lists, steps, the OR of days, and clock changes.
func TestNext(t *testing.T) {
	for _, c := range []struct{ name, expression, zone, after, want string }{
		{"C1 every minute", "* * * * *", "UTC", "2026-04-25T10:30:00Z", "2026-04-25T10:31:00Z"},
		{"C2 once a day", "0 9 * * *", "UTC", "2026-04-25T10:00:00Z", "2026-04-26T09:00:00Z"},
		{"C3 Monday as a number", "0 9 * * 1", "UTC", "2026-04-25T10:00:00Z", "2026-04-27T09:00:00Z"},
		{"C3 Monday as a name", "0 9 * * MON", "UTC", "2026-04-25T10:00:00Z", "2026-04-27T09:00:00Z"},
		{"C3 a range of names", "0 9 * * mon-fri", "UTC", "2026-04-25T10:00:00Z", "2026-04-27T09:00:00Z"},
		{"C3 a list of names in any case", "0 9 * * Mon,WED,fri", "UTC", "2026-04-25T10:00:00Z", "2026-04-27T09:00:00Z"},
		{"C4 a step", "*/15 * * * *", "UTC", "2026-04-25T10:00:00Z", "2026-04-25T10:15:00Z"},
		{"C5 a zone", "0 9 * * *", "America/New_York", "2026-04-25T12:00:00Z", "2026-04-25T13:00:00Z"},
		{"C6 a month by name", "0 0 1 jan *", "UTC", "2026-04-25T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"C6 a list of months", "0 0 1 Feb,Apr,Jun *", "UTC", "2026-04-25T00:00:00Z", "2026-06-01T00:00:00Z"},
		{"C7 the 13th or a Friday", "0 0 13 * 5", "UTC", "2025-12-31T23:59:00Z",
			"2026-01-02T00:00:00Z 2026-01-09T00:00:00Z 2026-01-13T00:00:00Z 2026-01-16T00:00:00Z 2026-01-23T00:00:00Z"},
		{"C8 a removed slot is skipped", "0 2 * * *", "America/New_York", "2026-03-07T17:00:00Z", "2026-03-09T06:00:00Z"},
		{"C9 a repeated slot fires once", "30 1 * * *", "America/New_York", "2026-10-31T16:00:00Z", "2026-11-01T05:30:00Z 2026-11-02T06:30:00Z"},
		{"C10 two repeated slots fire once each", "0,30 1 * * *", "America/New_York", "2026-10-31T16:00:00Z",
			"2026-11-01T05:00:00Z 2026-11-01T05:30:00Z 2026-11-02T06:00:00Z"},
		{"C11 London in autumn", "30 1 * * *", "Europe/London", "2026-10-24T11:00:00Z", "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"C12 half an hour forward", "30 1 * * *", "Australia/Lord_Howe", "2026-10-03T01:30:00Z", "2026-10-03T15:00:00Z 2026-10-04T14:30:00Z"},
		{"C13 half an hour forward, two slots", "0,30 1 * * *", "Australia/Lord_Howe", "2026-10-03T01:30:00Z", "2026-10-03T14:30:00Z 2026-10-03T15:00:00Z"},
		{"C14 noon after half an hour forward", "0 12 * * *", "Australia/Lord_Howe", "2026-10-03T01:30:00Z", "2026-10-04T01:00:00Z"},
		{"C14 noon after half an hour back", "0 12 * * *", "Australia/Lord_Howe", "2026-04-04T01:00:00Z", "2026-04-05T01:30:00Z"},
		{"C201 midnight in UTC", "0 0 * * *", "UTC", "2026-06-01T10:00:00Z", "2026-06-02T00:00:00Z"},
		{"C201 midnight in Berlin", "0 0 * * *", "Europe/Berlin", "2026-06-01T10:00:00Z", "2026-06-01T22:00:00Z"},
		{"C201 midnight in Kolkata", "0 0 * * *", "Asia/Kolkata", "2026-06-01T10:00:00Z", "2026-06-01T18:30:00Z"},
		{"7 is Sunday", "0 0 * * 7", "UTC", "2026-04-25T00:00:00Z", "2026-04-26T00:00:00Z 2026-05-03T00:00:00Z"},
		{"a range that ends on 7", "0 0 * * 5-7", "UTC", "2026-04-20T00:00:00Z",
			"2026-04-24T00:00:00Z 2026-04-25T00:00:00Z 2026-04-26T00:00:00Z 2026-05-01T00:00:00Z"},
		{"a stepped range that ends on 7", "0 0 * * 1-7/3", "UTC", "2026-04-26T12:00:00Z", "2026-04-27T00:00:00Z 2026-04-30T00:00:00Z 2026-05-03T00:00:00Z"},
		{"a name that ends on 7", "0 0 * * sat-7", "UTC", "2026-04-20T00:00:00Z", "2026-04-25T00:00:00Z 2026-04-26T00:00:00Z 2026-05-02T00:00:00Z"},
		{"Saturday to Sunday", "0 0 * * SAT-SUN", "UTC", "2026-04-20T00:00:00Z", "2026-04-25T00:00:00Z 2026-04-26T00:00:00Z 2026-05-02T00:00:00Z"},
		{"Friday to Sunday", "0 0 * * fri-sun", "UTC", "2026-04-20T00:00:00Z", "2026-04-24T00:00:00Z 2026-04-25T00:00:00Z 2026-04-26T00:00:00Z 2026-05-01T00:00:00Z"},
		{"Monday to Sunday in steps", "0 0 * * MON-SUN/3", "UTC", "2026-04-26T12:00:00Z", "2026-04-27T00:00:00Z 2026-04-30T00:00:00Z 2026-05-03T00:00:00Z"},
		{"a number to Sunday", "0 0 * * 6-SUN", "UTC", "2026-04-20T00:00:00Z", "2026-04-25T00:00:00Z 2026-04-26T00:00:00Z 2026-05-02T00:00:00Z"},
		{"Sunday to Monday", "0 0 * * SUN-MON", "UTC", "2026-04-20T12:00:00Z", "2026-04-26T00:00:00Z 2026-04-27T00:00:00Z 2026-05-03T00:00:00Z"},
		{"Sunday to Sunday", "0 0 * * SUN-SUN", "UTC", "2026-04-20T12:00:00Z", "2026-04-26T00:00:00Z 2026-05-03T00:00:00Z"},
		{"a day of month that begins with * narrows the week", "0 0 */2 * 1", "UTC", "2026-04-01T12:00:00Z", "2026-04-13T00:00:00Z 2026-04-27T00:00:00Z 2026-05-11T00:00:00Z"},
		{"a day of week that begins with * narrows the month", "0 0 1 * */2", "UTC", "2026-01-15T00:00:00Z", "2026-02-01T00:00:00Z 2026-03-01T00:00:00Z 2026-08-01T00:00:00Z"},
		{"a list that does not begin with * but holds it is every day", "0 0 13 * 5,*", "UTC", "2026-04-01T12:00:00Z", "2026-04-02T00:00:00Z"},
		{"29 February waits for a leap year", "0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"29 February on a Sunday, across 2100", "0 0 29 2 */7", "UTC", "2072-03-01T00:00:00Z", "2088-02-29T00:00:00Z"},
		{"Apia had no 30 December 2011", "0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-29T22:00:00Z 2011-12-30T22:00:00Z"},
		{"Troll sets its clock two hours back", "30 1 * * *", "Antarctica/Troll", "2026-10-24T12:00:00Z", "2026-10-24T23:30:00Z 2026-10-26T01:30:00Z"},
		{"the last day of a leap year beyond the stored table", "59 23 * * *", "America/New_York", "2040-12-30T12:00:00Z",
			"2040-12-31T04:59:00Z 2041-01-01T04:59:00Z 2041-01-02T04:59:00Z"},
		{"a fraction of a second after a slot is after it", "* * * * *", "UTC", "2026-04-25T10:30:00.000000001Z", "2026-04-25T10:31:00Z"},
		{"a fraction of a second before a slot is before it", "* * * * *", "UTC", "2026-04-25T10:29:59.999999999Z", "2026-04-25T10:30:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := strings.Fields(c.want)
			if got := spell(parse(t, c.expression, c.zone).NextN(instant(t, c.after), len(want))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNoonIsNeverLost(t *testing.T) { // C15
	for _, zone := range []string{"Australia/Lord_Howe", "Pacific/Chatham"} {
		s := parse(t, "0 12 * * *", zone)
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, s.Zone())
		if got := len(s.Between(from, from.AddDate(1, 0, 0), 1000)); got != 365 {
			t.Errorf("%s: %d noons in 2026", zone, got)
		}
	}
}

// SPEC S4.2: what is refused, with a message that names the field.
func TestParseRefuses(t *testing.T) {
	const invalid, never, zone = domain.UserErrorCodeInvalid, domain.UserErrorCodeCronNeverFires, domain.UserErrorCodeUnknownTimeZone
	for _, c := range []struct {
		name, expression, zone string
		code                   domain.UserErrorCode
		says                   string
	}{
		{"C16 30 February", "0 0 30 2 *", "UTC", never, "day of month"},
		{"C202 the 31st of short months", "0 0 31 4,6,9,11 *", "UTC", never, "day of month"},
		{"30 February on some days of the week", "0 0 30 2 */2", "UTC", never, "day of month"},
		{"C17 a word", "invalid", "UTC", invalid, "five"},
		{"C17 a cow", "* * * * MOO", "UTC", invalid, "day of week"},
		{"C17 a weekday among the months", "* * * MON *", "UTC", invalid, "month"},
		{"C17 an unknown zone", "* * * * *", "Not/AZone", zone, "Not/AZone"},
		{"C17 CRON_TZ", "CRON_TZ=America/New_York 30 1 * * *", "UTC", invalid, "time zone"},
		{"C17 TZ", "TZ=Asia/Tokyo 0 9 * * *", "UTC", invalid, "time zone"},
		{"TZ without a space", "TZ=0", "UTC", invalid, "time zone"},
		{"C17 nothing", "", "UTC", invalid, "empty"},
		{"blanks", " \t ", "UTC", invalid, "empty"},
		{"six fields", "0 0 9 * * *", "UTC", invalid, "6 fields"},
		{"four fields", "0 9 * *", "UTC", invalid, "4 fields"},
		{"a letter behind a number", "5x * * * *", "UTC", invalid, "minute"},
		{"minute 60", "60 * * * *", "UTC", invalid, "minute: \"60\" is not allowed: use 0 to 59"},
		{"hour 24", "0 24 * * *", "UTC", invalid, "hour: \"24\" is not allowed: use 0 to 23"},
		{"day 0", "0 0 0 * *", "UTC", invalid, "day of month"},
		{"day 32", "0 0 32 * *", "UTC", invalid, "day of month"},
		{"month 13", "0 0 1 13 *", "UTC", invalid, "month"},
		{"weekday 8", "0 0 * * 8", "UTC", invalid, "day of week"},
		{"a range of hours over midnight", "0 22-2 * * *", "UTC", invalid, `hour: a range rises, and "22-2" falls: write one that goes over the end as "22-23,0-2"`},
		{"a range of hours to midnight", "0 23-0 * * *", "UTC", invalid, `as "23,0"`},
		{"a range of minutes over the hour, in steps", "50-10/5 * * * *", "UTC", invalid, `as "50,55,0,5,10"`},
		{"a range of days of the month over its end", "0 0 28-3 * *", "UTC", invalid, `as "28-31,1-3"`},
		{"a range of months over the new year", "0 0 1 NOV-feb *", "UTC", invalid, `as "NOV-DEC,JAN-FEB"`},
		{"a range of days over Sunday", "0 0 * * 5-1", "UTC", invalid, `as "5-6,0-1"`},
		{"a range of names over Sunday", "0 0 * * FRI-MON", "UTC", invalid, `as "FRI-SAT,SUN-MON"`},
		{"a range of names over Sunday, in steps", "0 0 * * THU-TUE/2", "UTC", invalid, `as "THU,SAT,MON"`},
		{"a range from Saturday to Sunday as 0", "0 0 * * 6-0", "UTC", invalid, `as "6,0"`},
		{"a range from Sunday as 7", "0 0 * * 7-2", "UTC", invalid, `as "0-2"`},
		{"a range whose end is no value", "0 0 * * 5-9", "UTC", invalid, `day of week: "5-9" is not allowed: use 0 to 7`},
		{"a range that falls and whose start is no value", "0 24-2 * * *", "UTC", invalid, `hour: "24-2" is not allowed: use 0 to 23`},
		{"step 0", "*/0 * * * *", "UTC", invalid, "step"},
		{"a step longer than the field", "*/61 * * * *", "UTC", invalid, "step"},
		{"a step too large for a number", "*/99999999999999999999 * * * *", "UTC", invalid, "step"},
		{"two steps", "*/2/3 * * * *", "UTC", invalid, "minute"},
		{"a sign", "+5 * * * *", "UTC", invalid, "minute"},
		{"an empty item", "1,,2 * * * *", "UTC", invalid, "minute"},
		{"only a comma", ", * * * *", "UTC", invalid, "minute"},
		{"a star in a range", "*-5 * * * *", "UTC", invalid, "minute"},
		{"a question mark", "0 0 ? * *", "UTC", invalid, "day of month"},
		{"the last day", "0 0 L * *", "UTC", invalid, "day of month"},
		{"a macro", "@daily", "UTC", invalid, "five fields"},
		{"a duration", "@every 5m", "UTC", invalid, "five fields"},
		{"other digits", "٣ * * * *", "UTC", invalid, "minute"},
		{"very long", strings.Repeat("1,", 300) + "1 * * * *", "UTC", invalid, "characters"},
		{"no zone", "* * * * *", "", zone, "IANA"},
		{"C203 the machine's zone", "* * * * *", "Local", zone, "Local"},
		{"a zone with leap seconds", "* * * * *", "right/UTC", zone, "right/UTC"},
		{"a path", "* * * * *", "../etc/passwd", zone, "passwd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.expression, c.zone)
			var refused *Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %v", err)
			}
			if refused.Code != c.code || !strings.Contains(refused.Message, c.says) {
				t.Errorf("got %s: %s", refused.Code, refused.Message)
			}
		})
	}
}

func TestRareSchedulesAreFast(t *testing.T) { // C202: 10 ms each; the median, because a loaded machine holds up one or the other
	s := parse(t, "0 0 29 2 *", "America/New_York")
	const rounds = 50
	var took []time.Duration
	for i := range rounds {
		began := time.Now()
		if s.Next(time.Date(2000+i, 3, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
			t.Fatal("no slot")
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if median := took[rounds/2]; median > 10*time.Millisecond {
		t.Errorf("%s each", median)
	}
}

func TestZeroScheduleNeverFires(t *testing.T) {
	if got := (Schedule{}).Next(time.Unix(0, 0)); !got.IsZero() {
		t.Errorf("got %s", got)
	}
}

// Neither RFC 3339 nor the API can write an instant behind year 9999: there the slots end, in any zone.
func TestSlotsEndWithYear9999(t *testing.T) {
	for zone, offset := range map[string]time.Duration{"UTC": 0, "Pacific/Kiritimati": 14 * time.Hour, "America/New_York": -5 * time.Hour} {
		s := parse(t, "0 * * * *", zone)
		end := time.Date(9999, 12, 31, 21, 30, 0, 0, time.UTC)
		got := s.NextN(end, 50)
		if len(got) != 2 || !got[1].Equal(time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)) {
			t.Errorf("%s (%s): %v", zone, offset, got)
		}
		if next := s.Next(got[1]); !next.IsZero() {
			t.Errorf("%s: then comes %s", zone, next)
		}
		if next := s.Next(time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC)); !next.IsZero() {
			t.Errorf("%s: behind the end comes %s", zone, next)
		}
		if notes := s.ClockChanges(end, end.AddDate(50, 0, 0), 50); len(notes) > 50 {
			t.Errorf("%s: %d notes", zone, len(notes))
		}
	}
}
