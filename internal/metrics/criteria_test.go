package metrics_test

import (
	"encoding/json"
	"expvar"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// TestCountersOfTheLoop names the tests of counters by the criteria that they prove.
func TestCountersOfTheLoop(t *testing.T) {
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.3 every counter of a workspace's event carries the workspace", func(t *testing.T) {
		c := metrics.New()
		hops(c, "wsp_1")
		for _, line := range scrape(t, c) {
			ofProcess := strings.HasPrefix(line, "rouse_cron_ticks") || strings.HasPrefix(line, "rouse_queue_passes") || strings.Contains(line, "_timestamp_seconds")
			if !ofProcess && !strings.Contains(line, `workspace="wsp_1"`) {
				t.Errorf("%s names no workspace", line)
			}
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.5 a workspace reads its own counters alone", TestAWorkspaceReadsItsOwnCountersAlone)
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.6 the newest tick and the start of the process are published", TestProcessFacts)
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.7 expvar shows what Prometheus shows, under the same names", TestPrometheusAndExpvarShowTheSame)
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.8 what has no workspace is the process's, and in no workspace's values", func(t *testing.T) {
		TestUnattributedCountsAreTheProcesss(t)
		c := metrics.New()
		c.RunClaimed("")
		c.RunClaimed("wsp_1")
		if got := c.Workspace("wsp_1").RunsClaimed; got != 1 {
			t.Errorf("the workspace reads %d claims, want its own", got)
		}
		if got := c.Process().Unattributed["rouse_runs_claimed_total"]; got != 1 {
			t.Errorf("the process reads %d unattributed claims", got)
		}
		var shown map[string]int64
		if err := json.Unmarshal([]byte(expvar.Get("rouse_runs_claimed_total").String()), &shown); err != nil || shown[`workspace="unattributed"`] != 1 {
			t.Errorf("expvar shows %v, %v", shown, err)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-003.9 failures that persist nothing have counters of their own", func(t *testing.T) {
		c := metrics.New()
		ws := xid.ID("wsp_1")
		c.LaunchWithoutSession(ws)
		c.SessionWriteFailed(ws)
		c.LastRunAtWriteFailed(ws)
		c.LivenessReadFailed(ws)
		got := c.Workspace(ws)
		if got.LaunchesWithoutSession != 1 || got.SessionWriteFailures != 1 || got.LastRunAtWriteFailures != 1 || got.LivenessReadFailures != 1 ||
			got.AgentLaunches != 0 || got.RunsClaimed != 0 || got.TriggersClaimed != 0 {
			t.Errorf("counted %+v", got)
		}
	})
}
