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

// reach is how far from the words of a limit its end is looked for, in bytes.
const reach = 200

// limitWords recognises rate limits, with blanks of any kind. 429 must be a word of its own, so that neither "1429 ms" nor "lines
// 418-429" counts. The last line is what widely used agents say without any word of the others.
var limitWords = regexp.MustCompile(`(?i)(?:\b|_)rate[ _-]?limit|(?:^|[^\w.,-])429(?:[^\w.-]|\.(?:\D|$)|$)|too[ _-]many[ _-]requests|quota[ _-]exceeded|\b(?:usage|session|weekly|daily)[ _-]limit` +
	`|exhausted.{0,60}?(?:quota|capacity)|(?:quota|capacity).{0,60}?exhausted|resource[ _-]exhausted|exceeded your (?:current |daily )?quota` +
	`|\b(?:5|five)-hour limit|hit your limit`)

// IsRateLimit says whether the words of an error speak of a rate limit.
func IsRateLimit(words string) bool { return limitWords.MatchString(plain(words)) }

// The forms in which messages name the end of a limit, each with its reader. What has no zone is read in the one that is given.
var resets = []struct {
	form *regexp.Regexp
	read func(now time.Time, zone *time.Location, match []string) (time.Time, bool)
}{
	{regexp.MustCompile(`(?i)(?:resets?(?:[_ -]?(?:time|at))?["']?\s*[:=]|limit reached\s*\|)\s*["']?([0-9]{9,13})\b`), readUnix},
	{regexp.MustCompile(`(?i)(?:resets?(?:[_ -]?(?:time|at|on))?|\b(?:try again|retry|until)(?: at| after| on)?)["']?\s*[:=]?\s*["']?([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2}))`), readInstant},
	{regexp.MustCompile(`(?i)\b(?:retry[ _-]?after|resets?(?:[_ -]?(?:time|at|on))?|(?:try again|retry)(?: at| on)?)["']?\s*[:=]?\s*["']?(` +
		`[a-z]{6,9}, [0-9]{2}-[a-z]{3}-[0-9]{2} [0-9:]{8} gmt|[a-z]{3}, [0-9]{2} [a-z]{3} [0-9]{4} [0-9:]{8} gmt|[a-z]{3} [a-z]{3} [ 0-9]?[0-9] [0-9:]{8} [0-9]{4})`), readHTTPDate},
	{regexp.MustCompile(`(?i)\b(?:retry[ _-]?after(?:[ _-]?seconds)?|resets?_in(?:_seconds)?|retry[ _-]?delay)["']?\s*[:= ]\s*["']?([0-9]+(?:\.[0-9]+)?)(?:[ \t]*([a-z]+))?`), readDelay},
	{regexp.MustCompile(`(?i)\b(?:(?:try again|retry|retrying|resets?) in|resets? after)\s+((?:[0-9]+(?:\.[0-9]+)?\s*[a-z]+(?:\s*,?\s*(?:and\s+)?)?)+)`), readDelays},
	{regexp.MustCompile(named + `([a-z]{3,9})\.? ([0-9]{1,2})(?:st|nd|rd|th)?(?:,? ([0-9]{4}))?(?:,| at)? ` + clock), readDate},
	{regexp.MustCompile(named + `(mon|tues|wednes|thurs|fri|satur|sun)day,?(?: at)? ` + clock), readWeekday},
	{regexp.MustCompile(`(?i)\b(?:resets? (?:at )?|(?:try again|retry) at )` + clock), readClock},
}

// named is what stands before a date, clock a time of day with its half and its zone: four groups.
const (
	named = `(?i)\b(?:resets?|try again|retry|until|available)(?: again)?(?: at| on)?:? (?:on )?`
	clock = `([0-9]{1,2})(?::([0-9]{2}))?(?::[0-9]{2})?(?:\s*([ap])\.?m\b\.?)?(?:\s*\(?([A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*)\)?)?`
)

// ResetAt reads from the words of an error when the limit ends, in UTC. Forms are "resets at 4:00 AM" (in zone unless
// it names one), "Retry-After: 120" or with an HTTP date, "try again in 5 minutes", "reset_time: 1752624000" and
// "resets Dec 3, 5:36am (Europe/Berlin)". It is false when no such form stands near the words of a limit, when the end
// is past, margin included, and when it is too far away to be believed.
func ResetAt(now time.Time, words string, zone *time.Location) (time.Time, bool) {
	if zone == nil {
		zone = time.UTC
	}
	words = plain(words)
	limits := limitWords.FindAllStringIndex(words, 50)
	for _, r := range resets {
		for _, at := range r.form.FindAllStringSubmatchIndex(words, 50) {
			if !near(limits, at) {
				continue
			}
			reset, ok := r.read(now, zone, groups(words, at))
			if ok && reset.Add(margin).After(now) && !reset.After(now.Add(farthest)) {
				return reset.UTC(), true
			}
		}
	}
	return time.Time{}, false
}

// near says whether a match is within reach of one of the limits.
func near(limits [][]int, match []int) bool {
	for _, l := range limits {
		if match[0]-l[1] <= reach && l[0]-match[1] <= reach {
			return true
		}
	}
	return false
}

// groups are the texts of a match and its groups.
func groups(words string, match []int) []string {
	out := make([]string, len(match)/2)
	for i := range out {
		if match[2*i] >= 0 {
			out[i] = words[match[2*i]:match[2*i+1]]
		}
	}
	return out
}

var blanks = regexp.MustCompile(`\s+`)

// plain is a message within its bounds, its line breaks and other blanks as one blank each.
func plain(message string) string { return blanks.ReplaceAllString(clip(message), " ") }

func clip(message string) string {
	if len(message) <= longest {
		return message
	}
	return message[:longest/2] + "\n" + message[len(message)-longest/2:]
}

// readUnix reads seconds, or with 12 or more digits milliseconds, since 1970.
func readUnix(_ time.Time, _ *time.Location, match []string) (time.Time, bool) {
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

func readInstant(_ time.Time, _ *time.Location, match []string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, strings.ToUpper(match[1]))
	return at, err == nil
}

// readHTTPDate reads the three forms of a date that HTTP has, all of them in GMT.
func readHTTPDate(_ time.Time, _ *time.Location, match []string) (time.Time, bool) {
	for _, form := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		if at, err := time.Parse(form, strings.ToUpper(match[1])); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// readDelay reads a number of seconds, or of the unit that follows it.
func readDelay(now time.Time, _ *time.Location, match []string) (time.Time, bool) {
	unit, known := units[strings.ToLower(match[2])]
	if !known {
		unit = time.Second // the next word belongs to the sentence
	}
	return after(now, match[1], unit)
}

var amount = regexp.MustCompile(`(?i)([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)`)

// readDelays reads amounts with units, one after the other: "1 hour and 5 minutes", "6m0s".
func readDelays(now time.Time, _ *time.Location, match []string) (time.Time, bool) {
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

// readClock reads a time of day, of today or, when that is past, of tomorrow.
func readClock(now time.Time, zone *time.Location, match []string) (time.Time, bool) {
	hour, minute, zone, ok := readTime(match[1:], zone)
	if !ok {
		return time.Time{}, false
	}
	return nextDay(now, zone, hour, minute, 0, 1, 2) // a clock change may remove the time of one day
}

// readWeekday reads a time of day of the next day of that name, today included.
func readWeekday(now time.Time, zone *time.Location, match []string) (time.Time, bool) {
	hour, minute, zone, ok := readTime(match[2:], zone)
	if !ok {
		return time.Time{}, false
	}
	ahead := (weekdays[strings.ToLower(match[1])] - int(now.In(zone).Weekday()) + 7) % 7
	return nextDay(now, zone, hour, minute, ahead, ahead+7)
}

var weekdays = map[string]int{"sun": 0, "mon": 1, "tues": 2, "wednes": 3, "thurs": 4, "fri": 5, "satur": 6}

// readDate reads a time of day of a date; without a year it is the next one.
func readDate(now time.Time, zone *time.Location, match []string) (time.Time, bool) {
	month, known := months[strings.ToLower(match[1][:3])]
	day, _ := strconv.Atoi(match[2]) // two digits at most
	hour, minute, zone, ok := readTime(match[4:], zone)
	if !known || !ok || !strings.HasPrefix(strings.ToLower(month.String()), strings.ToLower(strings.TrimSuffix(match[1], "t"))) {
		return time.Time{}, false
	}
	first, last := now.In(zone).Year(), now.In(zone).Year()+1
	if match[3] != "" {
		first, _ = strconv.Atoi(match[3]) // four digits
		last = first
	}
	for year := first; year <= last; year++ {
		at := time.Date(year, month, day, hour, minute, 0, 0, zone)
		if at.Add(margin).After(now) && at.Day() == day && at.Hour() == hour && at.Minute() == minute {
			return at, true
		}
	}
	return time.Time{}, false
}

var months = map[string]time.Month{"jan": time.January, "feb": time.February, "mar": time.March, "apr": time.April, "may": time.May, "jun": time.June,
	"jul": time.July, "aug": time.August, "sep": time.September, "oct": time.October, "nov": time.November, "dec": time.December}

// nextDay is the first of the days ahead on which the time of day is there and not past.
func nextDay(now time.Time, zone *time.Location, hour, minute int, ahead ...int) (time.Time, bool) {
	local := now.In(zone)
	for _, days := range ahead {
		at := time.Date(local.Year(), local.Month(), local.Day()+days, hour, minute, 0, 0, zone)
		if at.Add(margin).After(now) && at.Hour() == hour && at.Minute() == minute {
			return at, true
		}
	}
	return time.Time{}, false
}

// readTime reads the groups of clock: hour, minute, half of the day, zone. Without minutes it must have AM or PM, else "resets 5 of
// 10" would be a time.
func readTime(match []string, otherwise *time.Location) (hour, minute int, zone *time.Location, ok bool) {
	hour, _ = strconv.Atoi(match[0]) // two digits at most
	minute, _ = strconv.Atoi(match[1])
	half := strings.ToLower(match[2])
	if match[1] == "" && half == "" || minute > 59 || hour > 23 || half != "" && (hour < 1 || hour > 12) {
		return 0, 0, nil, false
	}
	switch half {
	case "a":
		hour %= 12
	case "p":
		hour = hour%12 + 12
	}
	zone, ok = zoneNamed(match[3], otherwise)
	return hour, minute, zone, ok
}

// abbreviations of zones in the messages of agents, which IANA does not name so.
var abbreviations = map[string]string{
	"PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "PT": "America/Los_Angeles",
	"MST": "America/Denver", "MDT": "America/Denver", "MT": "America/Denver",
	"CST": "America/Chicago", "CDT": "America/Chicago", "CT": "America/Chicago",
	"EST": "America/New_York", "EDT": "America/New_York", "ET": "America/New_York",
	"CET": "Europe/Berlin", "CEST": "Europe/Berlin", "BST": "Europe/London", "JST": "Asia/Tokyo",
}

// zoneNamed is the zone of the word behind a time of day: the other one when there is none or an ordinary word. It is false for
// what looks like a zone and is not known, since a guess could be half a day off.
func zoneNamed(word string, otherwise *time.Location) (*time.Location, bool) {
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
	return otherwise, word == "" || word != upper
}
