package cron

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestMain lets the tests read the zones of testdata (the tz database 2025c): governments change the rules of their zones
// for years to come, and machines have different versions of them.
func TestMain(m *testing.M) {
	if err := os.Setenv("ZONEINFO", "testdata/zoneinfo.zip"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// C203: a schedule follows its own zone, wherever the server runs.
func TestTheMachinesZoneDoesNotMatter(t *testing.T) {
	was := time.Local
	defer func() { time.Local = was }()
	s := parse(t, "30 8 * * *", "America/New_York")
	want := s.NextN(instant(t, "2026-03-06T12:00:00Z"), 5)
	for _, name := range []string{"Asia/Tokyo", "Pacific/Apia", "America/New_York", "Antarctica/Troll"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		time.Local = zone
		if got := s.NextN(instant(t, "2026-03-06T12:00:00Z").In(zone), 5); spell(got) != spell(want) {
			t.Errorf("on a machine in %s: %s, want %s", name, spell(got), spell(want))
		}
		if _, err := Parse("30 8 * * *", "Local"); err == nil {
			t.Error("the machine's zone is taken")
		}
	}
}
