//go:build unix

package remote

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

var duration = regexp.MustCompile(`^P(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$`)

// parseDuration reads a length of time as the API writes it: ISO 8601 with days, hours, minutes and seconds.
func parseDuration(text string) (time.Duration, error) {
	parts := duration.FindStringSubmatch(text)
	if parts == nil || text == "P" {
		return 0, fmt.Errorf("the server sent %q as a length of time: is it a newer version than this worker?", text)
	}
	var d time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute} {
		n, _ := strconv.Atoi("0" + parts[i+1]) // digits, by the form
		d += time.Duration(n) * unit
	}
	seconds, _ := strconv.ParseFloat("0"+parts[4], 64) // digits, by the form
	return d + time.Duration(seconds*float64(time.Second)), nil
}
