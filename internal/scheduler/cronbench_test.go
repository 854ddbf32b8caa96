package scheduler

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store"
)

type deaf struct{}

func (deaf) Publish(...event.Event) {}

// 10,000 schedules of 100 agents come due at one instant: one tick fires them and routes what they sent (the aim is 20 s on
// two cores).
func BenchmarkTickOfTenThousandDueTriggers(b *testing.B) {
	const agents, routines = 100, 100
	db := pgtest.New(b)
	s := store.New(db, store.Options{Events: deaf{}, Counters: metrics.New(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Jitter: func() float64 { return 0 }})
	ok := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	workspace, err := s.CreateWorkspace(b.Context(), store.CreateWorkspace{Name: "Bench"})
	ok(err)
	for i := range agents {
		agent, err := s.CreateAgent(b.Context(), store.CreateAgent{WorkspaceID: workspace.ID, Name: fmt.Sprint("agent ", i), Role: domain.AgentRoleWorker, MaxConcurrentSessions: 1})
		ok(err)
		for j := range routines {
			_, err := s.CreateRoutine(b.Context(), store.CreateRoutine{WorkspaceID: workspace.ID, Name: fmt.Sprint("routine ", i, " ", j), Description: "Look around, {{date}}.", AssigneeID: agent.ID,
				ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap, CatchUpMax: 25,
				Triggers: []store.TriggerSpec{{Kind: domain.TriggerKindSchedule, Cron: "* * * * *", Enabled: true}}})
			ok(err)
		}
	}
	for b.Loop() {
		b.StopTimer()
		_, err := db.ExecContext(b.Context(), `TRUNCATE routine_runs, wakeup_requests, runs, activities CASCADE`)
		ok(err)
		_, err = db.ExecContext(b.Context(), `UPDATE routine_triggers SET next_run_at = date_trunc('minute', clock_timestamp())`)
		ok(err)
		b.StartTimer()
		c := &cronTick{store: s, counters: metrics.New(), dispatch: func() {}}
		for again := true; again; again = c.after != (store.DueTrigger{}) {
			_, err := c.runOnce(b.Context(), make(chan struct{}))
			ok(err)
		}
		b.StopTimer()
		var fired, routed int
		ok(db.QueryRowContext(b.Context(), `SELECT (SELECT count(*) FROM routine_runs), (SELECT count(*) FROM wakeup_requests WHERE run_id IS NOT NULL)`).Scan(&fired, &routed))
		if fired < agents*routines || routed < agents*routines {
			b.Fatalf("%d fired, %d routed", fired, routed)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N), "s/tick")
	b.ReportMetric(float64(b.Elapsed())/float64(time.Millisecond)/float64(b.N)/(agents*routines), "ms/trigger")
}
