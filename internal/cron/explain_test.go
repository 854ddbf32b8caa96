package cron

import "testing"

func TestExplain(t *testing.T) {
	for expression, want := range map[string]string{
		"* * * * *":         "every minute",
		"*/5 * * * *":       "every 5 minutes",
		"0 9 * * *":         "at 09:00 every day",
		"0 9 * * 1-5":       "at 09:00 on Monday to Friday",
		"30 8,17 * * *":     "at 08:30 and 17:30 every day",
		"0 0 1 jan *":       "at 00:00 on day 1 of the month in January",
		"0 0 13 * 5":        "at 00:00 on day 13 of the month or on Friday",
		"0 0 */2 * 1":       "at 00:00 on day 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29 and 31 of the month if it is a Monday",
		"0 */2 * * *":       "every 2 hours every day",
		"5,35 * * * *":      "at minute 5 and 35 of every hour",
		"*/15 9-17 * * 1-5": "every 15 minutes of hour 9 to 17 on Monday to Friday",
		"* 9-17 * * *":      "every minute of hour 9 to 17 every day",
		"7,9 9-17 * * *":    "at minute 7 and 9 of hour 9 to 17 every day",
		"0 0 * * 7":         "at 00:00 on Sunday",
		"0 0 * 2,4 *":       "at 00:00 every day in February and April",
		"0 0 13 * 5,*":      "at 00:00 every day",
		"*/7 * * * *":       "at minute 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour",
		"0 0 1,2,3,15 * *":  "at 00:00 on day 1 to 3 and 15 of the month",
		"0 * * * *":         "at minute 0 of every hour",
		"59 23 29 2 *":      "at 23:59 on day 29 of the month in February",
	} {
		if got := parse(t, expression, "UTC").Explain(); got != want {
			t.Errorf("%q: %q, want %q", expression, got, want)
		}
	}
	if got := (Schedule{}).Explain(); got != "never" {
		t.Errorf("the zero schedule fires %q", got)
	}
}
