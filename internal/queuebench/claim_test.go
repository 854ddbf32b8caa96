package queuebench

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// others gives h some agents with room and enough to do.
func (h *house) others(n, runs int) (agents []xid.ID) {
	h.Helper()
	for i := range n {
		agent := h.newAgent(h.workspace, fmt.Sprint("other ", i), 50)
		h.fill(agent, runs, time.Minute)
		agents = append(agents, agent)
	}
	return agents
}

// BenchmarkBusyHead: a claim while the oldest queued runs, 1,000 to 100,000 of them, all belong to one agent that is busy.
func BenchmarkBusyHead(b *testing.B) {
	for b.Loop() {
		h := newHouse(b)
		busy := h.newAgent(h.workspace, "busy", 1)
		h.others(20, 20)
		h.fill(busy, 1, 2*time.Hour)
		if claimed, err := h.Claim(context.Background(), h.owner, 1, lease); err != nil || claimed[0].AgentID != busy {
			b.Fatalf("%v, %v", claimed, err)
		}
		figures := map[string]float64{}
		queued := 0
		for _, depth := range []int{1_000, 10_000, 100_000} {
			h.fillMore(busy, queued, depth)
			queued = depth
			h.settle()
			h.claimMany(50) // plans are made
			var times timing
			figures[fmt.Sprintf("cpu-ms-%dk", depth/1000)] = h.serverCPU(func() { times = h.claimMany(300) }) / 300
			figures[fmt.Sprintf("p50-ms-%dk", depth/1000)] = times.at(50)
		}
		_, alone := h.pgbench(3, 1)
		figures["p50-100k/1k"] = figures["p50-ms-100k"] / figures["p50-ms-1k"]
		figures["pgbench-1-ms"] = alone
		figures["p50-100k/pgbench-1"] = figures["p50-ms-100k"] / alone
		report(b, figures)
	}
}

// fillMore raises an agent's queue to n runs.
func (h *house) fillMore(agent xid.ID, have, n int) {
	h.Helper()
	h.sql(`
INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, requested_at)
SELECT 'run_' || md5($1 || 'more' || n), workspace_id, agent_id, 'cau_' || n, 'more:' || n, 'SELF', 'EVENT', 'QUEUED', clock_timestamp() - interval '1 hour' + n * interval '1 microsecond'
FROM agent_lanes, generate_series($2::int, $3::int) n WHERE agent_id = $1`, agent, have+1, n)
	h.fixHeads()
}

// BenchmarkFullWorkspace: a claim in one workspace while another, which is full, has 10,000 lanes in front of it; and
// while 10,000 lanes of its own workspace are in their cooldown.
func BenchmarkFullWorkspace(b *testing.B) {
	for b.Loop() {
		h := newHouse(b)
		h.others(20, 20)
		h.settle()
		h.claimMany(50)
		before := h.claimMany(300).at(50)
		full := h.newWorkspace("full")
		h.sql(`UPDATE workspace_lanes SET max_running = 1, running = 1 WHERE workspace_id = $1`, full)
		h.crowd(full)
		h.settle()
		h.claimMany(50)
		behind := h.claimMany(300).at(50)
		h.sql(`UPDATE agent_lanes SET workspace_id = $2, eligible_at = clock_timestamp() + interval '1 hour' WHERE workspace_id = $1`, full, h.workspace)
		h.settle()
		h.claimMany(50)
		cooling := h.claimMany(300).at(50)
		report(b, map[string]float64{"p50-ms-alone": before, "p50-ms-full": behind, "delay-ms-full": behind - before, "delay-ms-cooling": cooling - before})
	}
}

// crowd gives a workspace 10,000 agents with a due run each, older than all others.
func (h *house) crowd(workspace xid.ID) {
	h.Helper()
	h.sql(`
INSERT INTO agents (id, workspace_id, name, role, skip_idle_wakeups) SELECT 'agt_' || lpad(n::text, 26, '0'), $1, 'crowd ' || n, 'WORKER', false FROM generate_series(1, 10000) n`, workspace)
	h.sql(`
INSERT INTO agent_lanes (agent_id, workspace_id, status, max_sessions, cooldown_ms) SELECT id, workspace_id, 'IDLE', 1, 0 FROM agents WHERE workspace_id = $1`, workspace)
	h.sql(`
INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, requested_at)
SELECT replace(id, 'agt_', 'run_'), workspace_id, id, 'cau', 'taskless', 'SELF', 'EVENT', 'QUEUED', clock_timestamp() - interval '3 hours' FROM agents WHERE workspace_id = $1`, workspace)
	h.fixHeads()
}

// BenchmarkHistory: a claim with an empty history and with 1,000,000 runs that ended, and their requests.
func BenchmarkHistory(b *testing.B) {
	const ended = 1_000_000
	for b.Loop() {
		h := newHouse(b)
		agents := h.others(20, 20)
		h.settle()
		h.claimMany(50)
		before := h.claimMany(300).at(50)
		h.sql(`
INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, requested_at, claimed_at, started_at, finished_at, attempt)
SELECT 'run_' || md5('old' || n), $1, ($2::text[])[1 + n % 20], 'cau_' || n, 'task:' || n, 'SELF', 'EVENT', 'FINISHED', 'processed',
  at, at, at, at, 1 FROM generate_series(1, $3::int) n, LATERAL (SELECT clock_timestamp() - interval '1 day' + n * interval '1 millisecond' AS at) x`, h.workspace, array(agents), ended)
		h.sql(`
INSERT INTO wakeup_requests (id, workspace_id, agent_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, run_id,
  recovered, resends, hops, retry_count, delivered_at, finished_at)
SELECT replace(id, 'run_', 'wkp_'), workspace_id, agent_id, causation_id, scope, source, wake_class, false, 'bench', '{"reason": "bench"}', 'FINISHED', id, false, 0, 0, 0, finished_at, finished_at
FROM runs WHERE status = 'FINISHED'`)
		h.settle()
		h.claimMany(50)
		after := h.claimMany(300).at(50)
		report(b, map[string]float64{"p50-ms-empty": before, "p50-ms-1M": after, "p50-1M/empty": after / before})
	}
}

// BenchmarkMerges is C312: 2,000 requests merged into one run, each routed alone: the last ones against the first.
func BenchmarkMerges(b *testing.B) {
	const merges = 2_000
	ctx := context.Background()
	for b.Loop() {
		h := newHouse(b)
		agent := h.newAgent(h.workspace, "merged", 1)
		var times timing
		var cpu [4]float64 // by quarter
		merge := func() {
			_, err := h.Wake(ctx, store.Wake{WorkspaceID: h.workspace, AgentID: agent, UserID: "ann"})
			h.ok(err)
			began := time.Now()
			_, err = h.Route(ctx, agent)
			times.since(began)
			h.ok(err)
		}
		for i := range cpu {
			cpu[i] = h.serverCPU(func() {
				for range merges / len(cpu) {
					merge()
				}
			})
		}
		first, last := times[1:201].at(50), times[merges-200:].at(50)
		report(b, map[string]float64{"p50-ms-first-200": first, "p50-ms-last-200": last, "last/first": last / first, "cpu-last/second-quarter": cpu[3] / cpu[1]})
	}
}

// BenchmarkMemory: the heap of a process that claims and ends runs, with 100 and with 100,000 queued.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		h := newHouse(b)
		agent := h.newAgent(h.workspace, "long queue", 50)
		h.fill(agent, 100, time.Hour)
		few := h.heapAfterClaims()
		h.fillMore(agent, 100, 100_000)
		h.settle()
		many := h.heapAfterClaims()
		report(b, map[string]float64{"heap-MB-100": few, "heap-MB-100k": many, "heap-100k/100": many / few})
	}
}

// heapAfterClaims is the greatest live heap, in MB, seen after passes of claims, routes and repair.
func (h *house) heapAfterClaims() (most float64) {
	h.Helper()
	for range 5 {
		h.claimMany(20)
		_, err := h.Repair(context.Background())
		h.ok(err)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, float64(m.HeapAlloc)/1e6)
	}
	return most
}
