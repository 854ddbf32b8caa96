package cron

import (
	"fmt"
	"os"
	"testing"
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
