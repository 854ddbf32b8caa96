package store

import (
	"encoding/json"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// fires writes n ended fires of a routine, a minute apart, the newest so many minutes ago.
func (w *world) firesOf(routine xid.ID, n, ago int, status domain.RoutineRunStatus, reason string) {
	w.Helper()
	w.sql(`INSERT INTO routine_runs (id, workspace_id, causation_id, routine_id, source, status, skip_reason, variables, missed_ticks, missed_truncated, dispatch_fingerprint, started_at, completed_at)
SELECT 'rrn_' || $2 || '_' || $5 || '_' || g, $1, 'cau', $2, 'CRON', $3, NULLIF($4, '')::end_reason, '{}', 0, false, '', at, at
FROM generate_series(0, $6 - 1) g, LATERAL (SELECT clock_timestamp() - make_interval(mins => $5 + g) AS at) x`, w.workspace, routine, status, reason, ago, n)
}

func (w *world) healthOf(routine xid.ID) *reads.RoutineHealth {
	w.Helper()
	found, err := w.RoutineHealth(w.Context(), []xid.ID{routine})
	return must(w, found, err)[routine]
}

func TestHealthCountsFiresInARow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	type fires struct {
		n, ago int
		status domain.RoutineRunStatus
		reason string
	}
	const done, failed, skipped, coalesced = domain.RoutineRunStatusDone, domain.RoutineRunStatusFailed, domain.RoutineRunStatusSkipped, domain.RoutineRunStatusCoalesced
	for name, row := range map[string]struct {
		history         []fires
		failures, skips int
		reason          domain.EndReason
		succeeded       bool
	}{
		"one that never fired":                           {nil, 0, 0, "", false},
		"failures since the last that ended well":        {[]fires{{2, 10, failed, ""}, {1, 20, done, ""}, {5, 30, failed, ""}}, 2, 0, "", true},
		"skipped fires between failures break no row":    {[]fires{{1, 10, skipped, "IDLE_SKIPPED"}, {1, 20, failed, ""}, {1, 30, skipped, "IDLE_SKIPPED"}, {1, 40, failed, ""}}, 2, 1, "IDLE_SKIPPED", false},
		"the newest skip says why":                       {[]fires{{1, 10, skipped, "BACKLOG_FULL"}, {3, 20, skipped, "IDLE_SKIPPED"}, {1, 30, done, ""}}, 0, 4, "BACKLOG_FULL", true},
		"a merged fire is no skip":                       {[]fires{{1, 10, coalesced, ""}, {3, 20, skipped, "IDLE_SKIPPED"}}, 0, 0, "", false},
		"long rows are counted to the bound, no further": {[]fires{{150, 10, skipped, "IDLE_SKIPPED"}, {150, 300, failed, ""}}, reads.HealthFires, reads.HealthFires, "IDLE_SKIPPED", false},
		"one that works again has neither in a row":      {[]fires{{1, 10, done, ""}, {9, 20, failed, ""}, {9, 40, skipped, "IDLE_SKIPPED"}}, 0, 0, "", true},
		"many merged fires hide no failure before them":  {[]fires{{200, 10, coalesced, ""}, {3, 300, failed, ""}}, 3, 0, "", false},
		"many merged fires hide no good end before them": {[]fires{{200, 10, coalesced, ""}, {1, 300, done, ""}, {3, 310, failed, ""}}, 0, 0, "", true},
	} {
		routine := w.routineOf(agent)
		for _, f := range row.history {
			w.firesOf(routine, f.n, f.ago, f.status, f.reason)
		}
		h := w.healthOf(routine)
		reason := domain.EndReason("")
		if h.SkipReason != nil {
			reason = *h.SkipReason
		}
		if h.Failures != row.failures || h.Skips != row.skips || reason != row.reason || (h.LastSuccessAt != nil) != row.succeeded || h.Held.ID != "" || h.P50 != nil {
			t.Errorf("%s: %+v (%s)", name, h, reason)
		}
	}
}

// The duration and the costs of a routine are those of the runs of its fires; a fire that others are merged into is named with them.
func TestHealthOfFiresThatWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	routine := w.routineOf(w.agent("worker"))
	fire := func() xid.ID {
		made, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: routine})
		w.ok(err)
		return made.ID
	}
	for _, seconds := range []int{10, 60, 20} {
		id := fire()
		w.sql(`UPDATE runs SET status = 'FINISHED', outcome = 'processed', session_id = 's', cost_usd = 0.5, claimed_at = requested_at, started_at = requested_at,
			finished_at = requested_at + make_interval(secs => $2) WHERE id = (SELECT run_id FROM wakeup_requests WHERE routine_run_id = $1)`, id, seconds)
		w.sql(`UPDATE wakeup_requests SET status = 'FINISHED' WHERE routine_run_id = $1`, id)
		w.sql(`UPDATE routine_runs SET status = 'DONE', completed_at = clock_timestamp() WHERE id = $1`, id)
	}
	first := fire()
	fire()
	fire()
	h := w.healthOf(routine)
	run := one[xid.ID](w, `SELECT run_id FROM wakeup_requests WHERE routine_run_id = $1`, first)
	if h.P50 == nil || *h.P50 != 20*time.Second {
		t.Errorf("the duration is %v, want 20s", h.P50)
	}
	if h.Held.ID != first || h.Held.RunID != run || h.Held.Fires != 2 || h.Held.Since.IsZero() {
		t.Errorf("the hold is %+v, want %s with run %s and 2 fires", h.Held, first, run)
	}
	costs, err := w.RoutineCosts(t.Context(), []xid.ID{routine}, time.Now().Add(-time.Hour))
	if c := must(w, costs, err)[routine]; c.Cost.String() != "1.5" && c.Cost.String() != "1.500000" || c.Partial {
		t.Errorf("the costs are %+v", c)
	}
}

// What health reads does not grow with the history of the routine.
func TestHealthReadsNoHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	pages := func(n int) (pages int) {
		t.Helper()
		routine := w.routineOf(agent)
		w.firesOf(routine, n, 10, domain.RoutineRunStatusCoalesced, "")
		w.firesOf(routine, n, 200_000, domain.RoutineRunStatusFailed, "")
		w.firesOf(routine, n, 400_000, domain.RoutineRunStatusDone, "")
		w.sql(`ANALYZE routine_runs`)
		var plan []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		text := one[[]byte](w, `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+reads.RoutineHealthQuery, `{`+string(routine)+`}`, reads.HealthFires, reads.HealthHeld, 50)
		w.ok(json.Unmarshal(text, &plan))
		return plan[0].Plan.Hit + plan[0].Plan.Read
	}
	few, many := pages(300), pages(20_000)
	if many > 2*few+100 {
		t.Errorf("of 900 fires it reads %d pages, of 60,000 it reads %d", few, many)
	}
}
