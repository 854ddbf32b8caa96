package queuebench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

func array(agents []xid.ID) any {
	texts := make([]string, len(agents))
	for i, a := range agents {
		texts[i] = string(a)
	}
	return pq.Array(texts)
}

// BenchmarkCycles: wakes from their cause to their end as the program makes them, without an agent's work. A number of clients
// wake and route, one claimer takes batches, twice as many workers start and finish, with a busy head of 10,000 runs.
func BenchmarkCycles(b *testing.B) {
	for _, clients := range []int{1, 8, 32, 100} {
		b.Run(fmt.Sprintf("%d-in-flight", clients), func(b *testing.B) {
			for b.Loop() {
				measureCycles(b, clients)
			}
		})
	}
}

func measureCycles(b *testing.B, clients int) {
	const length = 8 * time.Second
	h := newHouse(b)
	agents := h.others(100+2*clients, 0)
	busy := h.newAgent(h.workspace, "busy", 1)
	h.fill(busy, 10_000, 2*time.Hour)
	if claimed, err := h.Claim(context.Background(), h.owner, 1, lease); err != nil || len(claimed) != 1 {
		b.Fatalf("%v, %v", claimed, err)
	}
	h.settle()
	h.pgbench(1, 8)
	first, transaction := h.pgbenchCPU(5)
	h.cycle(agents, clients, length) // plans are made, and the connections warm
	h.finishQueued()
	since := h.written()
	before := h.cpu()
	var ended int64
	var took time.Duration
	h.profile(func() int64 {
		ended, took = h.cycle(agents, clients, length)
		return ended
	})
	used := h.cpu().sub(before)
	wrote := h.perCycle(since, ended)
	last, _ := h.pgbench(5, 8)
	cycles, rate := float64(ended)/took.Seconds(), (first+last)/2
	server, client := ms(used.server)/float64(ended), ms(used.client)/float64(ended)
	report(b, wrote)
	report(b, map[string]float64{"cycles/s": cycles, "pgbench-8-tps": rate, "cycles/pgbench": cycles / rate,
		"server-cpu-ms/cycle": server, "client-cpu-ms/cycle": client, "server-cpu-ms/pgbench": ms(transaction.server), "client-cpu-ms/pgbench": ms(transaction.client),
		"cpu-pgbench/cycle": ms(transaction.server+transaction.client) / (server + client)})
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// cycle runs the queue for a while with so many clients, and returns how many runs ended.
func (h *house) cycle(agents []xid.ID, clients int, length time.Duration) (ended int64, took time.Duration) {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	began := time.Now()
	var wg sync.WaitGroup
	var done atomic.Int64
	slots := make(chan struct{}, 2*clients) // taken by attempts under way
	work := make(chan store.Claimed, 2*clients)
	more := make(chan struct{}, 1)
	idle := make(chan xid.ID, len(agents)) // agents without a wake: each wake becomes a run of its own
	for _, agent := range agents {
		idle <- agent
	}
	signal := func() {
		select {
		case more <- struct{}{}:
		default:
		}
	}
	background := context.Background()
	for i := range clients {
		wg.Go(func() {
			for {
				var agent xid.ID
				select {
				case agent = <-idle:
				case <-ctx.Done():
					return
				}
				made, err := h.Wake(background, store.Wake{WorkspaceID: h.workspace, AgentID: agent, UserID: fmt.Sprint("user ", i)})
				h.check(err)
				if !made.Routed {
					_, err = h.Route(background, agent)
					h.check(err)
				}
				signal()
			}
		})
	}
	for range 2 * clients {
		go func() {
			for c := range work {
				if c.Launch == nil {
					h.Errorf("run %s was claimed and not started", c.RunID)
				}
				h.check(h.Finish(background, c.Attempt, store.Success{Summary: "done"}))
				done.Add(1)
				idle <- c.AgentID
				<-slots
				signal()
			}
		}()
	}
	wg.Go(func() {
		defer close(work)
		for ctx.Err() == nil {
			free := cap(slots) - len(slots)
			if free > 0 {
				claimed, err := h.Claim(background, h.owner, free, lease)
				h.check(err)
				for _, c := range claimed {
					slots <- struct{}{}
					work <- c
				}
				if len(claimed) > 0 {
					continue
				}
			}
			select {
			case <-more:
			case <-ctx.Done():
			}
		}
	})
	wg.Wait()
	ended, took = done.Load(), time.Since(began)
	for len(slots) > 0 {
		time.Sleep(time.Millisecond)
	}
	return ended, took
}

// finishQueued claims and ends what a former round has left, so that each wake of the next one makes a run of its own.
func (h *house) finishQueued() {
	h.Helper()
	ctx := context.Background()
	for {
		claimed, err := h.Claim(ctx, h.owner, 64, lease)
		h.ok(err)
		if len(claimed) == 0 {
			return
		}
		for _, c := range claimed {
			h.ok(h.Finish(ctx, c.Attempt, store.Success{Summary: "done"}))
		}
	}
}

// check is ok for other goroutines than the benchmark's.
func (h *house) check(err error) {
	if err != nil {
		h.Error(err)
	}
}

// BenchmarkIdleLatency: from the call that wakes an idle agent to the commit of its run's claim, claimed on a signal as
// the dispatcher does it; beside it one committed transaction of pgbench.
func BenchmarkIdleLatency(b *testing.B) {
	const wakes = 500
	ctx := context.Background()
	for b.Loop() {
		h := newHouse(b)
		agent := h.newAgent(h.workspace, "idle", 1)
		var times timing
		for i := range wakes + 50 {
			began := time.Now()
			made, err := h.Wake(ctx, store.Wake{WorkspaceID: h.workspace, AgentID: agent, UserID: "ann"})
			h.ok(err)
			if !made.Routed {
				_, err = h.Route(ctx, agent)
				h.ok(err)
			}
			claimed, err := h.Claim(ctx, h.owner, 16, lease)
			if i >= 50 {
				times.since(began)
			}
			h.ok(err)
			h.ok(h.Finish(ctx, claimed[0].Attempt, store.Success{}))
		}
		_, alone := h.pgbench(3, 1)
		report(b, map[string]float64{"p50-ms": times.at(50), "p99-ms": times.at(99), "pgbench-1-ms": alone, "p50/pgbench-1": times.at(50) / alone})
	}
}
