package queuebench

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// monthOfCycles is what the benchmark of retention stands for: a month of a busy workspace.
const monthOfCycles = 1_000_000

// BenchmarkRetention: many cycles with retention on, in eight parts: ROUSE_BENCH_CYCLES in all (20,000 unless set), and no longer than
// ROUSE_BENCH_MINUTES (15). A part ends with its share of the cycles or of the time. What should not grow from the second part to the
// last: the bytes on disk, and the server's processor time for a claim. "of-a-month" is how much of a month's million was done.
func BenchmarkRetention(b *testing.B) {
	const parts = 8
	all, length := numberOf(b, "ROUSE_BENCH_CYCLES", 20_000), time.Duration(numberOf(b, "ROUSE_BENCH_MINUTES", 15))*time.Minute
	for b.Loop() {
		h := newHouse(b)
		agents := h.others(40, 0)
		h.sql(`ALTER TABLE workspaces DROP CONSTRAINT workspaces_recovery_lookback_hours`) // an hour is the least, and would keep
		h.sql(`UPDATE workspaces SET recovery_lookback_hours = 0`)                         // all that the benchmark makes
		stop := h.pruneOn()
		var bytes, claims [parts]float64
		var done int64
		var busy time.Duration // without what is measured between the parts
		for i := range parts {
			share := time.Duration(i + 1)
			for began := time.Now(); done < int64(all*(i+1)/parts) && busy < length*share/parts; began = time.Now() {
				ended, _ := h.cycle(agents, 32, 2*time.Second)
				busy += time.Since(began)
				done += ended
			}
			bytes[i], claims[i] = h.size(), h.claimCost(agents)
			b.Logf("%d cycles: %.1f MB, %d runs kept, %.2f ms of the server for a claim", done, bytes[i]/1e6, h.kept(), claims[i])
		}
		removed := stop()
		report(b, map[string]float64{"cycles": float64(done), "of-a-month": float64(done) / monthOfCycles, "runs-removed": float64(removed.Runs), "MB": bytes[parts-1] / 1e6,
			"bytes-last/second-part": bytes[parts-1] / bytes[1], "claim-cpu-last/second-part": claims[parts-1] / claims[1]})
	}
}

// numberOf is a number from the environment.
func numberOf(b *testing.B, variable string, otherwise int) int {
	b.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("%s is %q, want a number", variable, text)
	}
	return n
}

// pruneOn removes what is older than five seconds until it is stopped, as the retention loop does at greater ages.
func (h *house) pruneOn() (stop func() domain.Removed) {
	ctx, cancel := context.WithCancel(context.Background())
	total := make(chan domain.Removed)
	go func() {
		var sum domain.Removed
		for tick := time.NewTicker(time.Second); ctx.Err() == nil; <-tick.C {
			for more := true; more; {
				removed, again, err := h.Prune(context.Background(), domain.Retention{History: 5 * time.Second})
				h.check(err)
				sum, more = sum.Plus(removed), again && err == nil
			}
		}
		total <- sum
	}()
	return func() domain.Removed {
		cancel()
		return <-total
	}
}

// size is what the database takes on disk, in bytes.
func (h *house) size() (bytes float64) {
	h.Helper()
	h.ok(h.db.QueryRowContext(context.Background(), `SELECT pg_database_size(current_database())`).Scan(&bytes))
	return bytes
}

func (h *house) kept() (runs int) {
	h.Helper()
	h.ok(h.db.QueryRowContext(context.Background(), `SELECT count(*) FROM runs`).Scan(&runs))
	return runs
}

// claimCost is the server's processor time for one claim, in milliseconds: five times each agent is woken, and then the
// runs are claimed one after the other.
func (h *house) claimCost(agents []xid.ID) (ms float64) {
	h.Helper()
	ctx := context.Background()
	const rounds = 5
	for range rounds {
		for _, agent := range agents {
			_, err := h.Wake(ctx, store.Wake{WorkspaceID: h.workspace, AgentID: agent, UserID: "ann"})
			h.ok(err)
			_, err = h.Route(ctx, agent)
			h.ok(err)
		}
		var taken []store.Claimed
		ms += h.serverCPU(func() {
			for range agents {
				claimed, err := h.Claim(ctx, h.owner, 1, lease)
				h.ok(err)
				taken = append(taken, claimed...)
			}
		})
		if len(taken) != len(agents) {
			h.Fatalf("%d runs were claimed, want %d", len(taken), len(agents))
		}
		for _, c := range taken {
			h.ok(h.Finish(ctx, c.Attempt, store.Success{}))
		}
	}
	return ms / float64(rounds*len(agents))
}
