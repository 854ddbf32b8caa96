package metrics_test

import (
	"encoding/json"
	"expvar"
	"fmt"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// scrape is what Prometheus reads, our own lines alone.
func scrape(t *testing.T, c *metrics.Counters) []string {
	t.Helper()
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var ours []string
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		if strings.HasPrefix(line, "rouse_") {
			ours = append(ours, line)
		}
	}
	return ours
}

func has(lines []string, want string) bool {
	for _, line := range lines {
		if line == want {
			return true
		}
	}
	return false
}

func hops(c *metrics.Counters, ws xid.ID) {
	c.WakeupCreated(ws, domain.WakeupSourceUser)
	c.WakeupCreated(ws, domain.WakeupSourceUser)
	c.WakeupCreated(ws, domain.WakeupSourceComment)
	c.RoutineRun(ws, domain.RoutineRunSourceCron, domain.RoutineRunStatusCoalesced, "")
	c.RoutineRun(ws, domain.RoutineRunSourceCron, domain.RoutineRunStatusEnqueued, "")
	c.TriggerClaimed(ws)
	c.RunClaimed(ws)
	c.AgentLaunched(ws)
	c.LaunchWithoutSession(ws)
	c.SessionWriteFailed(ws)
	c.TerminalRun(ws, domain.TerminalShapeSilentSuccess)
	c.LastRunAtWriteFailed(ws)
	c.LivenessReadFailed(ws)
}

func TestAWorkspaceReadsItsOwnCountersAlone(t *testing.T) {
	c := metrics.New()
	one, two := xid.New("wsp"), xid.New("wsp")
	hops(c, one)
	hops(c, "")
	c.RunClaimed(two)
	got := c.Workspace(one)
	got.Since = time.Time{}
	sum := func(list []metrics.SourceCount) (n int64) {
		for _, x := range list {
			n += x.Count
		}
		return n
	}
	if len(got.WakeupsCreated) != 10 || sum(got.WakeupsCreated) != 3 || len(got.RoutineRuns) != 24 || len(got.TerminalRuns) != 7 {
		t.Errorf("AC-OFFICE-LOOP-LIVENESS-003.5 what has not happened is not listed at 0: %+v", got)
	}
	got.WakeupsCreated = slices.DeleteFunc(got.WakeupsCreated, func(x metrics.SourceCount) bool { return x.Count == 0 })
	got.RoutineRuns = slices.DeleteFunc(got.RoutineRuns, func(x metrics.RoutineRunCount) bool { return x.Count == 0 })
	got.TerminalRuns = slices.DeleteFunc(got.TerminalRuns, func(x metrics.ShapeCount) bool { return x.Count == 0 })
	want := metrics.WorkspaceCounters{
		WakeupsCreated: []metrics.SourceCount{{Source: domain.WakeupSourceComment, Count: 1}, {Source: domain.WakeupSourceUser, Count: 2}},
		RoutineRuns: []metrics.RoutineRunCount{{Source: domain.RoutineRunSourceCron, Status: domain.RoutineRunStatusCoalesced, Count: 1},
			{Source: domain.RoutineRunSourceCron, Status: domain.RoutineRunStatusEnqueued, Count: 1}},
		TerminalRuns:    []metrics.ShapeCount{{Shape: domain.TerminalShapeSilentSuccess, Count: 1}},
		TriggersClaimed: 1, RunsClaimed: 1, AgentLaunches: 1, LaunchesWithoutSession: 1, LastRunAtWriteFailures: 1,
		SessionWriteFailures: 1, LivenessReadFailures: 1,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("counters of the workspace:\n got %+v\nwant %+v", got, want)
	}
	if c.Workspace("").RunsClaimed != 0 {
		t.Error("the unattributed counts were served as a workspace's")
	}
}

func TestUnattributedCountsAreTheProcesss(t *testing.T) {
	c := metrics.New()
	hops(c, "")
	c.RunClaimed(xid.New("wsp"))
	c.Repaired("heads", 3)
	got := c.Process().Unattributed
	for name, want := range map[string]int64{`rouse_wakeups_created_total{source="USER"}`: 2, "rouse_runs_claimed_total": 1,
		`rouse_routine_runs_total{source="CRON",status="COALESCED"}`: 1} {
		if got[name] != want {
			t.Errorf("%s = %d, want %d", name, got[name], want)
		}
	}
	if len(got) != 12 {
		t.Errorf("unattributed: %v", got)
	}
}

func TestPrometheusAndExpvarShowTheSame(t *testing.T) {
	metrics.New()
	c := metrics.New() // the newest counts
	ws := xid.ID("wsp_1")
	hops(c, ws)
	c.RunClaimed("")
	c.Repaired("heads", 2)
	c.Repaired("locks", 0)
	c.CronTick(time.Unix(100, 0))
	c.CronTick(time.Unix(90, 0)) // a clock that stepped back
	c.QueuePass(time.Unix(200, 0))
	c.LoopFailed("dispatch")
	lines := scrape(t, c)
	for _, want := range []string{
		`rouse_wakeups_created_total{source="USER",workspace="wsp_1"} 2`,
		`rouse_routine_runs_total{source="CRON",status="COALESCED",workspace="wsp_1"} 1`,
		`rouse_terminal_runs_total{shape="SILENT_SUCCESS",workspace="wsp_1"} 1`,
		`rouse_runs_claimed_total{workspace="wsp_1"} 1`,
		`rouse_runs_claimed_total{workspace="unattributed"} 1`,
		`rouse_repairs_total{what="heads"} 2`,
		`rouse_cron_ticks_total 2`,
		`rouse_last_cron_tick_timestamp_seconds 100`,
		`rouse_last_queue_pass_timestamp_seconds 200`,
		`rouse_loop_failures_total{loop="dispatch"} 1`,
	} {
		if !has(lines, want) {
			t.Errorf("/metrics lacks %s, it has\n%s", want, strings.Join(lines, "\n"))
		}
	}
	names := make(map[string]bool)
	for _, line := range lines {
		names[line[:strings.IndexAny(line, "{ ")]] = true
	}
	for name := range names {
		if expvar.Get(name) == nil {
			t.Errorf("/debug/vars lacks %s", name)
		}
	}
	var claimed map[string]int64
	if err := json.Unmarshal([]byte(expvar.Get("rouse_runs_claimed_total").String()), &claimed); err != nil {
		t.Fatal(err)
	}
	if claimed[`workspace="wsp_1"`] != 1 || claimed[`workspace="unattributed"`] != 1 {
		t.Errorf("/debug/vars has %v", claimed)
	}
	if got := expvar.Get("rouse_cron_ticks_total").String(); got != "2" {
		t.Errorf("/debug/vars has %s ticks", got)
	}
}

func TestProcessFacts(t *testing.T) {
	c := metrics.New()
	if p := c.Process(); p.StartedAt.IsZero() || p.LastCronTick != nil || p.LastQueuePass != nil || p.CronTicks != 0 {
		t.Errorf("at the start: %+v", p)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.CronTick(at)
	c.QueuePass(at.Add(time.Second))
	if p := c.Process(); !p.LastCronTick.Equal(at) || !p.LastQueuePass.Equal(at.Add(time.Second)) || p.CronTicks != 1 {
		t.Errorf("after a tick and a pass: %+v", p)
	}
}

func TestSeriesAreBoundedAndNothingIsLost(t *testing.T) {
	c := metrics.New()
	last := xid.ID("")
	for i := range 3000 {
		last = xid.ID(fmt.Sprintf("wsp_%d", i))
		c.RunClaimed(last)
	}
	for i := range 1000 {
		c.Repaired(fmt.Sprint(i), 1)
	}
	runs, repairs, rest := 0, 0, 0
	for _, line := range scrape(t, c) {
		switch {
		case strings.HasPrefix(line, "rouse_runs_claimed_total"):
			runs++
		case strings.HasPrefix(line, "rouse_repairs_total"):
			repairs++
		}
		if line == `rouse_runs_claimed_total{workspace="other"} 2000` || line == `rouse_repairs_total{what="other"} 936` {
			rest++
		}
	}
	if runs != 1001 || repairs != 65 || rest != 2 {
		t.Errorf("%d and %d series, %d of 2 sums of the rest", runs, repairs, rest)
	}
	if c.Workspace(last).RunsClaimed != 1 {
		t.Error("a workspace beyond the bound does not see its own counter")
	}
}

func TestCountersAreSafeForManyGoroutines(t *testing.T) {
	c := metrics.New()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				hops(c, "wsp_1")
				c.CronTick(time.Now())
			}
		})
		all.Go(func() {
			for range 5 {
				scrape(t, c)
				c.Workspace("wsp_1")
				c.Process()
			}
		})
	}
	all.Wait()
	if got := c.Workspace("wsp_1").RunsClaimed; got != 1600 {
		t.Errorf("%d runs claimed, want 1600", got)
	}
}

// What alarms are made on is there before it happens; what else is counted, once it happens.
func TestWhatAlarmsAreMadeOnIsShownAtZero(t *testing.T) {
	c := metrics.New()
	c.Know("wsp_quiet")
	lines := scrape(t, c)
	for _, want := range []string{
		`rouse_terminal_runs_total{shape="SILENT_SUCCESS",workspace="wsp_quiet"} 0`,
		`rouse_terminal_runs_total{shape="LAUNCHED_FAILED",workspace="wsp_quiet"} 0`,
		`rouse_terminal_runs_total{shape="UNLAUNCHED_FAILED",workspace="wsp_quiet"} 0`,
		`rouse_terminal_runs_total{shape="UNCLASSIFIED",workspace="wsp_quiet"} 0`,
		`rouse_launches_without_session_total{workspace="wsp_quiet"} 0`,
		`rouse_session_write_failures_total{workspace="wsp_quiet"} 0`,
		`rouse_last_run_at_write_failures_total{workspace="wsp_quiet"} 0`,
		`rouse_liveness_read_failures_total{workspace="wsp_quiet"} 0`,
		`rouse_cron_ticks_total 0`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "rouse_wakeups") || strings.HasPrefix(line, "rouse_runs_claimed")
	}) {
		t.Errorf("what no alarm is made on is shown: %v", lines)
	}
	c.RunClaimed("wsp_quiet")
	if want := `rouse_runs_claimed_total{workspace="wsp_quiet"} 1`; !slices.Contains(scrape(t, c), want) {
		t.Errorf("%s is missing after a claim", want)
	}
}
