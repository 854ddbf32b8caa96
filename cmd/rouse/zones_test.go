package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/cron"
)

// zonesVariable makes the test program a process on a machine that has no zone files.
const zonesVariable = "ROUSE_TEST_ZONES"

// withoutZoneFiles lets this process open no file any more, so that no zone file of the machine can be read, and computes a
// slot in each zone.
func withoutZoneFiles(zones []string) int {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{}); err != nil {
		fmt.Println("forbid to open files:", err)
		return 1
	}
	if f, err := os.Open("/"); err == nil {
		fmt.Println("a file can be opened:", f.Close())
		return 1
	}
	for _, zone := range zones {
		schedule, err := cron.Parse("30 8 * * *", zone)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(zone, schedule.Next(time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)).UTC().Format(time.RFC3339))
	}
	return 0
}

// Time zone data is built in: schedules are computed where the machine has none. The child is this test program, which links
// what the program links (it is the same package); that the program has the data too is looked up in its bytes.
func TestSchedulesAreComputedOnAMachineWithoutZoneFiles(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = []string{zonesVariable + "=UTC America/New_York Antarctica/Troll Australia/Lord_Howe", "ZONEINFO=/nowhere"}
	out, err := child.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, want := range []string{"UTC 2026-07-01T08:30:00Z", "America/New_York 2026-07-01T12:30:00Z", "Antarctica/Troll 2026-07-01T06:30:00Z", "Australia/Lord_Howe 2026-07-01T22:00:00Z"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the child says %s, want %s in it", out, want)
		}
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if zones := bytes.Count(program, []byte("TZif2")); zones < 300 {
		t.Errorf("the program has %d built-in zones", zones)
	}
}
