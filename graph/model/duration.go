package model

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// MarshalDuration writes an ISO 8601 duration in hours, minutes and seconds, e.g. PT1H30M.
func MarshalDuration(d time.Duration) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(FormatDuration(d))) })
}

// UnmarshalDuration reads an ISO 8601 duration; see ParseDuration.
func UnmarshalDuration(v any) (time.Duration, error) {
	s, ok := v.(string)
	if !ok {
		return 0, errors.New("a Duration is a text in quotes: send ISO 8601, e.g. \"PT10M\"")
	}
	return ParseDuration(s)
}

// FormatDuration writes d as ISO 8601 with milliseconds at the finest; zero is PT0S.
func FormatDuration(d time.Duration) string {
	d = d.Round(time.Millisecond)
	if d == 0 {
		return "PT0S"
	}
	var b strings.Builder
	if d < 0 {
		b.WriteByte('-')
	}
	b.WriteString("PT")
	part := func(n int64, unit string) {
		if n = max(n, -n); n != 0 {
			b.WriteString(strconv.FormatInt(n, 10) + unit)
		}
	}
	part(int64(d/time.Hour), "H")
	part(int64(d%time.Hour/time.Minute), "M")
	if ms := (d % time.Minute).Abs().Milliseconds(); ms != 0 {
		text := fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
		b.WriteString(strings.TrimRight(strings.TrimRight(text, "0"), ".") + "S")
	}
	return b.String()
}

// units of a duration, in the order in which they may follow each other. Weeks and days stand before the T.
var units = []struct {
	letter byte
	inTime bool
	length time.Duration
}{
	{'W', false, 7 * 24 * time.Hour}, {'D', false, 24 * time.Hour},
	{'H', true, time.Hour}, {'M', true, time.Minute}, {'S', true, time.Second},
}

// ParseDuration reads an ISO 8601 duration of weeks, days (of 24 hours), hours, minutes and seconds, of which the last
// part may have a fraction: PT10M, P1DT12H, PT0.5S. Months, years and negative lengths are refused.
func ParseDuration(s string) (time.Duration, error) {
	rest, ok := strings.CutPrefix(s, "P")
	if !ok || rest == "" {
		return 0, badDuration(s)
	}
	var total time.Duration
	inTime, next, parts := false, 0, 0
	for rest != "" {
		if rest[0] == 'T' && !inTime {
			inTime, rest = true, rest[1:]
			if rest == "" {
				return 0, badDuration(s)
			}
			continue
		}
		digits := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if digits <= 0 {
			return 0, badDuration(s)
		}
		for next < len(units) && (units[next].letter != rest[digits] || units[next].inTime != inTime) {
			next++
		}
		if next == len(units) {
			return 0, badDuration(s)
		}
		n, err := strconv.ParseFloat(rest[:digits], 64)
		fraction := strings.Contains(rest[:digits], ".")
		rest = rest[digits+1:]
		if err != nil || fraction && rest != "" || n*float64(units[next].length)+float64(total) > math.MaxInt64/2 {
			return 0, badDuration(s)
		}
		total += time.Duration(math.Round(n * float64(units[next].length)))
		next++
		parts++
	}
	if parts == 0 {
		return 0, badDuration(s)
	}
	return total, nil
}

func badDuration(s string) error {
	return fmt.Errorf("%q is not a Duration: want ISO 8601 without months and years, e.g. PT10M or P1DT12H", clip(s))
}
