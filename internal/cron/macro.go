package cron

import (
	"fmt"
	"strings"
	"time"
)

// macros are the names that other programs take instead of five fields, and the five fields.
var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// macro refuses an expression that begins with "@", and says what to write instead.
func macro(fields []string) error {
	name := strings.ToLower(fields[0])
	written := strings.Join(fields, " ")
	instead := macros[name]
	if name == "@every" && len(fields) > 1 {
		instead = every(fields[1])
	}
	switch {
	case instead != "":
		return invalid("%q is not supported: write the five fields, here %q", written, instead)
	case name == "@reboot":
		return invalid("%q is not supported: a schedule follows the clock; fire the routine by hand or by webhook when something starts", written)
	}
	return invalid("%q is not supported: write the five fields, e.g. \"0 0 * * *\" for every midnight", written)
}

// every is the five fields that come closest to an interval, "" when there are none: a slot must come at the same minutes of
// every hour, or at the same hours of every day.
func every(interval string) string {
	d, err := time.ParseDuration(interval)
	minutes, hours := int(d/time.Minute), int(d/time.Hour)
	switch {
	case err != nil || d < time.Minute || d%time.Minute != 0:
		return ""
	case minutes == 1:
		return "* * * * *"
	case minutes < 60 && 60%minutes == 0:
		return fmt.Sprintf("*/%d * * * *", minutes)
	case d == time.Hour:
		return "0 * * * *"
	case d == 24*time.Hour:
		return "0 0 * * *"
	case d%time.Hour == 0 && hours < 24 && 24%hours == 0:
		return fmt.Sprintf("0 */%d * * *", hours)
	}
	return ""
}
