package model

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT10M": 10 * time.Minute, "PT0S": 0, "P1D": 24 * time.Hour, "P1W": 168 * time.Hour, "P1DT12H": 36 * time.Hour,
		"PT1H30M": 90 * time.Minute, "PT0.5S": 500 * time.Millisecond, "PT90S": 90 * time.Second, "PT1.5H": 90 * time.Minute,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v", text, got, err)
		}
	}
}

func TestParseDurationRefuses(t *testing.T) {
	for _, text := range []string{
		"", "P", "PT", "10M", "PT10", "P1M", "P1Y", "PT1D", "P1H", "PT1M1H", "PT1.5H1M", "PT1.S.S", "-PT1S", "PT-1S", "P1DT",
		"PT1S ", "pt1s", "PT1e9S", "PT99999999999999999999S", "PTT1S", "600", "PT1M1M",
	} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"PT0S": 0, "PT10M": 10 * time.Minute, "PT1H0.5S": time.Hour + 500*time.Millisecond, "-PT1M30S": -90 * time.Second,
		"PT25H": 25 * time.Hour, "PT5S": 5 * time.Second, "PT4.56S": 4560 * time.Millisecond, "PT10S": 10 * time.Second,
		"PT0.001S": time.Millisecond, "PT1M0.1S": time.Minute + 100*time.Millisecond, "-PT59.999S": -59999 * time.Millisecond,
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestEveryMillisecondOfAMinuteIsWrittenWithThreeDecimalsAtMost(t *testing.T) {
	for ms := range time.Minute.Milliseconds() {
		d := time.Duration(ms) * time.Millisecond
		text := FormatDuration(d)
		if again, err := ParseDuration(text); err != nil || again != d || len(text) > len("PT59.999S") {
			t.Fatalf("%v is written %s and read again %v, %v", d, text, again, err)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"PT10M", "P1DT12H", "PT0.5S", "P", "PT1M1H"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			return
		}
		if again, err := ParseDuration(FormatDuration(d)); err != nil || again != d.Round(time.Millisecond) {
			t.Errorf("ParseDuration(%q) = %v, written and read again %v, %v", s, d, again, err)
		}
	})
}
