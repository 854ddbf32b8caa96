package cron

import (
	"strconv"
	"strings"
	"testing"
)

// SPEC S4.2: five fields only.
func TestAMacroIsRefusedWithTheFiveFieldsThatItMeans(t *testing.T) {
	for given, want := range map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
		"@hourly": "0 * * * *", "@Hourly": "0 * * * *", "@every 1m": "* * * * *", "@every 5m": "*/5 * * * *", "@every 60m": "0 * * * *", "@every 1h": "0 * * * *",
		"@every 6h": "0 */6 * * *", "@every 24h": "0 0 * * *",
	} {
		_, err := Parse(given, "UTC")
		if err == nil || !strings.Contains(err.Error(), "here "+strconv.Quote(want)) {
			t.Errorf("C17 %s: %v, want %q in it", given, err, want)
		}
		if _, err := Parse(want, "UTC"); err != nil {
			t.Errorf("what is suggested for %s is refused: %v", given, err)
		}
	}
	for _, given := range []string{"@reboot", "@every 7m", "@every 90m", "@every 10s", "@every", "@every x", "@", "@fortnightly", "@every 5h", "@every -5m"} {
		_, err := Parse(given, "UTC")
		if err == nil || strings.Contains(err.Error(), "here ") || !strings.Contains(err.Error(), "not supported") {
			t.Errorf("C17 %s: %v", given, err)
		}
	}
}
