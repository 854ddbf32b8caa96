package retry

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// longest is how much of a message is looked at, in bytes, half from either end: what agents print has no bound.
const longest = 64 << 10

// limitWords is what rate limits are recognised by; 429 must be a word, so that "1429 ms" is none. The second half is
// what widely used agents and APIs say without any word of the first.
var limitWords = regexp.MustCompile(`(?i)rate[ _-]?limit|\b429\b|too many requests|quota exceeded|usage limit|session limit` +
	`|resource_exhausted|exceeded your (?:current )?quota|\b(?:5|five)-hour limit|weekly limit|hit your limit`)

// IsRateLimit says whether a failure's message speaks of a rate limit.
func IsRateLimit(message string) bool { return limitWords.MatchString(clip(message)) }

// The forms in which messages name the end of a limit, each with its reader.
var resets = []struct {
	form *regexp.Regexp
	read func(now time.Time, match []string) (time.Time, bool)
}{
	{regexp.MustCompile(`(?i)(?:resets?(?:[_ -]?(?:time|at))?["']?\s*[:=]|limit reached\s*\|)\s*["']?([0-9]{9,13})\b`), readUnix},
	{regexp.MustCompile(`(?i)(?:resets?(?:[_ -]?(?:time|at|on))?|\b(?:try again|retry|until)(?: at| after| on)?)["']?\s*[:=]?\s*["']?([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2}))`), readInstant},
	{regexp.MustCompile(`(?i)\b(?:retry[ _-]?after|resets?(?:[_ -]?(?:time|at|on))?|(?:try again|retry)(?: at| on)?)["']?\s*[:=]?\s*["']?(` +
		`[a-z]{6,9}, [0-9]{2}-[a-z]{3}-[0-9]{2} [0-9:]{8} gmt|[a-z]{3}, [0-9]{2} [a-z]{3} [0-9]{4} [0-9:]{8} gmt|[a-z]{3} [a-z]{3} [ 0-9][0-9] [0-9:]{8} [0-9]{4})`), readHTTPDate},
	{regexp.MustCompile(`(?i)\b(?:retry[ _-]?after(?:[ _-]?seconds)?|resets?_in(?:_seconds)?|retry[ _-]?delay)["']?\s*[:= ]\s*["']?([0-9]+(?:\.[0-9]+)?)(?:[ \t]*([a-z]+))?`), readDelay},
	{regexp.MustCompile(`(?i)\b(?:try again|retry|retrying|resets?) in\s+((?:[0-9]+(?:\.[0-9]+)?\s*[a-z]+(?:\s*,?\s*(?:and\s+)?)?)+)`), readDelays},
	{regexp.MustCompile(`(?i)\b(?:resets? (?:at )?|(?:try again|retry) at )([0-9]{1,2})(?::([0-9]{2}))?(?::[0-9]{2})?(?:\s*([ap])\.?m\b\.?)?(?:\s*\(?([A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*)\)?)?`), readClock},
}

// ResetAt is the end of the limit that a message names, in UTC: "resets at 4:00 AM" (UTC unless it names a zone),
// "Retry-After: 120" or with an HTTP date, "try again in 5 minutes", "reset_time: 1752624000". It is false when the message names none that
// can be read, or one that is past, margin included, or further away than is believed.
func ResetAt(now time.Time, message string) (time.Time, bool) {
	message = clip(message)
	for _, r := range resets {
		for _, match := range r.form.FindAllStringSubmatch(message, 20) {
			at, ok := r.read(now, match)
			if ok && at.Add(margin).After(now) && !at.After(now.Add(farthest)) {
				return at.UTC(), true
			}
		}
	}
	return time.Time{}, false
}

func clip(message string) string {
	if len(message) <= longest {
		return message
	}
	return message[:longest/2] + "\n" + message[len(message)-longest/2:]
}

// readUnix reads seconds, or with 12 or more digits milliseconds, since 1970.
func readUnix(_ time.Time, match []string) (time.Time, bool) {
	n, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	at := time.Unix(n, 0)
	if len(match[1]) >= 12 {
		at = time.UnixMilli(n)
	}
	return at, true
}

func readInstant(_ time.Time, match []string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, strings.ToUpper(match[1]))
	return at, err == nil
}

// readHTTPDate reads the three forms of a date that HTTP has, all of them in GMT.
func readHTTPDate(_ time.Time, match []string) (time.Time, bool) {
	for _, form := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		if at, err := time.Parse(form, strings.ToUpper(match[1])); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// readDelay reads a number of seconds, or of the unit that follows it.
func readDelay(now time.Time, match []string) (time.Time, bool) {
	unit, known := units[strings.ToLower(match[2])]
	if !known {
		unit = time.Second // the next word belongs to the sentence
	}
	return after(now, match[1], unit)
}

var amount = regexp.MustCompile(`(?i)([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)`)

// readDelays reads amounts with units, one after the other: "1 hour and 5 minutes", "6m0s".
func readDelays(now time.Time, match []string) (time.Time, bool) {
	at, found := now, false
	for _, part := range amount.FindAllStringSubmatch(match[1], -1) {
		unit, known := units[strings.ToLower(part[2])]
		if !known {
			break
		}
		var ok bool
		if at, ok = after(at, part[1], unit); !ok {
			return time.Time{}, false
		}
		found = true
	}
	return at, found
}

var units = map[string]time.Duration{
	"ms": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
}

func after(now time.Time, number string, unit time.Duration) (time.Time, bool) {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n*float64(unit) > float64(farthest) || math.IsNaN(n) {
		return time.Time{}, false
	}
	return now.Add(time.Duration(math.Round(n * float64(unit)))), true
}

// readClock reads a time of day, of today or, when that is past, of tomorrow, in UTC unless a zone is named. Without
// minutes it must have AM or PM, else "resets 5 of 10" would be a time.
func readClock(now time.Time, match []string) (time.Time, bool) {
	hour, _ := strconv.Atoi(match[1]) // two digits at most
	minute, _ := strconv.Atoi(match[2])
	half := strings.ToLower(match[3])
	if match[2] == "" && half == "" || minute > 59 || hour > 23 || half != "" && (hour < 1 || hour > 12) {
		return time.Time{}, false
	}
	switch half {
	case "a":
		hour %= 12
	case "p":
		hour = hour%12 + 12
	}
	zone, ok := zoneNamed(match[4])
	if !ok {
		return time.Time{}, false
	}
	local := now.In(zone)
	for day := range 3 { // a clock change may remove the time of one day
		at := time.Date(local.Year(), local.Month(), local.Day()+day, hour, minute, 0, 0, zone)
		if at.Add(margin).After(now) && at.Hour() == hour && at.Minute() == minute {
			return at, true
		}
	}
	return time.Time{}, false
}

// abbreviations of zones in the messages of agents, which IANA does not name so.
var abbreviations = map[string]string{
	"PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "PT": "America/Los_Angeles",
	"MST": "America/Denver", "MDT": "America/Denver", "MT": "America/Denver",
	"CST": "America/Chicago", "CDT": "America/Chicago", "CT": "America/Chicago",
	"EST": "America/New_York", "EDT": "America/New_York", "ET": "America/New_York",
	"CET": "Europe/Berlin", "CEST": "Europe/Berlin", "BST": "Europe/London", "JST": "Asia/Tokyo",
}

// zoneNamed is the zone of the word behind a time of day: UTC when there is none or an ordinary word. It is false for
// what looks like a zone and is not known, since a guess could be half a day off.
func zoneNamed(word string) (*time.Location, bool) {
	upper := strings.ToUpper(word)
	if upper == "UTC" || upper == "GMT" || upper == "Z" {
		return time.UTC, true
	}
	if name, ok := abbreviations[word]; ok {
		word = name
	}
	if strings.Contains(word, "/") {
		zone, err := time.LoadLocation(word)
		return zone, err == nil
	}
	return time.UTC, word == "" || word != upper
}
