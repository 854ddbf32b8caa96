package store

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"
)

// backlogLength is how long the queue of BenchmarkLongBacklog is.
func backlogLength(b *testing.B) int {
	text := os.Getenv("ROUSE_BENCH_BACKLOG")
	if text == "" {
		return 100_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatalf("ROUSE_BENCH_BACKLOG: %v", err)
	}
	return n
}

// BenchmarkLongBacklog measures an agent with a long queue that is paused, resumed and deleted: how long each answer takes, how
// long all steps, and how long the wake of another agent waits for its claim meanwhile. Run it with -benchtime 1x.
func BenchmarkLongBacklog(b *testing.B) {
	n := backlogLength(b)
	ctx := context.WithoutCancel(b.Context())
	for b.Loop() {
		w := newWorld(b)
		agent, other := w.agent("long"), w.agent("other", func(a *CreateAgent) { a.Cooldown = 0 })
		w.queued(agent, n)
		w.sql(`ANALYZE`)
		took := func(what string, f func()) {
			began := time.Now()
			f()
			b.ReportMetric(float64(time.Since(began).Microseconds())/1000, what+"_ms")
		}
		var slowest time.Duration
		beside := func() { // another agent's wake, to its end
			w.wake(other)
			began := time.Now()
			c := w.claimOne()
			slowest = max(slowest, time.Since(began))
			w.start(c)
			w.finish(c)
		}
		steps := func(over func() bool) {
			for i := 0; !over(); i++ {
				w.ok(w.SettleBacklog(ctx))
				w.route(agent)
				if i%50 == 0 {
					beside()
				}
			}
		}
		took("pause", func() { w.pause(agent) })
		beside()
		took("settling_all", func() { steps(func() bool { return w.queuedOf(agent) == 0 }) })
		took("resume", func() { w.resume(agent) })
		w.sql(`UPDATE agent_lanes SET eligible_at = '2126-01-01Z' WHERE agent_id = $1`, agent) // its own runs stay
		took("sending_all_again", func() {
			steps(func() bool {
				return one[bool](w, `SELECT resend_from IS NULL FROM agent_lanes WHERE agent_id = $1`, agent)
			})
		})
		took("delete", func() { w.ok(w.DeleteAgent(ctx, w.workspace, agent)) })
		took("clearing_all", func() { steps(func() bool { return w.queuedOf(agent) == 0 }) })
		b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest_claim_beside_ms")
		w.sound()
	}
}
