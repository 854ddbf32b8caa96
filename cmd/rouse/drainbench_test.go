package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
)

// BenchmarkDrain: 1,000 fires of lightweight routines of 64 echo agents, eight sessions each, wait while no scheduler runs; a
// server comes and works them off, 64 at a time. By the database's clock, from the first start to the last end. Baseline: pgbench
// with eight clients on the same durable cluster, before and after. With ROUSE_BENCH_PROFILE=1 it prints the statements of a run.
func BenchmarkDrain(b *testing.B) {
	const agents, fires = 64, 1000
	for b.Loop() {
		data := filepath.Join(pgtest.Folder(b), "data")
		keeper := startProfiled(b, data, "--standby") // its cluster is there before the server and after it
		address, env := databaseOf(b, data)
		db := open(b, address)
		pgtest.FillPgbench(b, address)
		before, _ := pgtest.Pgbench(b, address, 5, 8)

		newJourney(keeper).fireMany(agents, fires)
		beginProfile(b, db)
		cluster := processorTimes(b, databaseProcesses(b, data)...)
		profiles, profiled := profileEnv(b)
		server := start(b, pgtest.Folder(b), append(profiled, env...), "--workers", fmt.Sprint(agents))
		endProfiles := profile(b, profiles, "drain", 3*time.Second)
		waitForNone(b, db, `SELECT count(*) FROM routine_runs WHERE completed_at IS NULL`)
		cluster = processorTimes(b, databaseProcesses(b, data)...) - cluster
		used := processorTimes(b, server.cmd.Process.Pid)
		endProfile(b, db, fires)
		endProfiles()
		server.end(syscall.SIGTERM)

		after, _ := pgtest.Pgbench(b, address, 5, 8)
		seconds := drained(b, db, fires)
		rate, baseline := fires/seconds, (before+after)/2
		report(b, map[string]float64{"runs/s": rate, "pgbench-8-tps": baseline, "runs/pgbench": rate / baseline,
			"server-cpu-ms/run": 1000 * used.Seconds() / fires, "database-cpu-ms/run": 1000 * cluster.Seconds() / fires})
		keeper.end(syscall.SIGTERM)
	}
}

// fireMany makes agents with a routine each, and fires the routines in turn.
func (j journey) fireMany(agents, fires int) {
	j.t.Helper()
	routines := make([]string, agents)
	for i := range routines {
		var agent struct {
			CreateAgent struct{ Agent struct{ ID string } }
		}
		j.request(createAgent, map[string]any{"in": map[string]any{"workspaceId": j.workspace, "name": fmt.Sprint("echo ", i), "role": "WORKER", "cooldown": "PT0S",
			"skipIdleWakeups": false, "maxConcurrentSessions": 8, "executor": map[string]any{"echo": map[string]any{}}}}, &agent)
		var routine struct {
			CreateRoutine struct{ Routine struct{ ID string } }
		}
		j.request(createRoutine, map[string]any{"in": map[string]any{"workspaceId": j.workspace, "name": fmt.Sprint("routine ", i), "description": "Look around.",
			"assigneeId": agent.CreateAgent.Agent.ID, "concurrencyPolicy": "ALWAYS_ENQUEUE"}}, &routine)
		routines[i] = routine.CreateRoutine.Routine.ID
	}
	for i := range fires {
		var out any
		j.request(fireRoutine, map[string]any{"id": routines[i%agents]}, &out)
	}
}

// waitForNone waits until a query that counts finds none. It looks seldom, because what it waits for is measured.
func waitForNone(b *testing.B, db *sql.DB, query string) {
	b.Helper()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for deadline := time.After(10 * time.Minute); ; {
		if countIn(b, db, query) == 0 {
			return
		}
		select {
		case <-look.C:
		case <-deadline:
			b.Fatalf("it does not end: %s", query)
		}
	}
}

// drained is how long the runs took, from the first start to the last end.
func drained(b *testing.B, db *sql.DB, runs int) (seconds float64) {
	b.Helper()
	var finished int
	const query = `SELECT count(*), extract(epoch FROM max(finished_at) - min(started_at)) FROM runs WHERE status = 'FINISHED' AND routine_id IN (SELECT id FROM routines WHERE name LIKE 'routine %')`
	if err := db.QueryRowContext(b.Context(), query).Scan(&finished, &seconds); err != nil {
		b.Fatal(err)
	}
	if finished != runs {
		b.Fatalf("%d runs have finished, want %d", finished, runs)
	}
	return seconds
}
