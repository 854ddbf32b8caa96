package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
)

// The figures of docs/performance.md, measured on the built program from outside. Machines differ and are shared: each
// benchmark also reports a baseline of the same run, to which its figures are compared.

// sample is a series of durations.
type sample []time.Duration

func (s *sample) since(began time.Time) { *s = append(*s, time.Since(began)) }

// at is the p-th percentile, in milliseconds.
func (s sample) at(p int) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return float64(sorted[min(len(sorted)-1, len(sorted)*p/100)].Microseconds()) / 1000
}

// report drops the benchmark's own ns/op, which would mean nothing here.
func report(b *testing.B, figures map[string]float64) {
	b.ReportMetric(0, "ns/op")
	for unit, value := range figures {
		b.ReportMetric(value, unit)
	}
}

// BenchmarkLifecycle: first start in an empty folder, start again, memory at rest, stop. Baseline: initdb alone.
func BenchmarkLifecycle(b *testing.B) {
	var first, later, stop, initdb sample
	var memory float64
	for b.Loop() {
		initdb = append(initdb, makeCluster(b))
		folder := filepath.Join(pgtest.Folder(b), "data")
		began := time.Now()
		p := start(b, folder, nil)
		first.since(began)
		began = time.Now()
		p.end(syscall.SIGTERM)
		stop.since(began)
		began = time.Now()
		p = start(b, folder, nil)
		later.since(began)
		memory = max(memory, resident(b, p))
		p.end(syscall.SIGTERM)
	}
	report(b, map[string]float64{
		"first-start-ms": first.at(50), "later-start-ms": later.at(50), "stop-ms": stop.at(50), "idle-MB": memory,
		"initdb-ms": initdb.at(50), "first-start/initdb": first.at(50) / initdb.at(50),
	})
}

// makeCluster times PostgreSQL's own part of a first start.
func makeCluster(b *testing.B) time.Duration {
	binaries, err := postgres.FindBinaries()
	if err != nil {
		b.Fatal(err)
	}
	folder := pgtest.Folder(b)
	command := exec.Command(filepath.Join(binaries.Dir, "initdb"), "-D", filepath.Join(folder, "data"), "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
	if info, err := os.Stat(folder); err == nil && os.Geteuid() == 0 {
		owner := info.Sys().(*syscall.Stat_t)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
		if owner.Uid == 0 {
			if err := os.Chmod(folder, 0o777); err != nil {
				b.Fatal(err)
			}
			command.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		}
	}
	began := time.Now()
	if out, err := command.CombinedOutput(); err != nil {
		b.Fatalf("initdb: %v: %s", err, out)
	}
	return time.Since(began)
}

// resident is the memory of the program's process, in MB, once it has had nothing to do for a moment.
func resident(b testing.TB, p *program) float64 { return memoryOf(b, p, "VmRSS:") }

// memoryOf is a line about the memory of the program's process, in MB: VmRSS: is what it has, VmHWM: the most that it had.
func memoryOf(b testing.TB, p *program, name string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Fatalf("memory is read from /proc, which is not here: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			kb, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb / 1024
		}
	}
	b.Fatal("no " + name)
	return 0
}

// BenchmarkWakeToLaunch: 500 wakes of an idle echo agent, one after the other, by the database's clock: from the request
// to the session of its launch. Baseline: one committed insert on the same database.
func BenchmarkWakeToLaunch(b *testing.B) {
	const wakes = 500
	folder := filepath.Join(pgtest.Folder(b), "data")
	p := start(b, folder, nil)
	j := newJourney(p)
	agent := j.agent("echo", map[string]any{"echo": map[string]any{}})
	db := j.database(folder)
	var commits sample
	for b.Loop() {
		for range wakes {
			run := j.wake(agent)
			waitFor(b, db, `SELECT status = 'FINISHED' FROM runs WHERE id = $1`, run)
		}
		commits = baseline(b, db, wakes)
	}
	p50, p99 := percentiles(b, db, `
SELECT extract(epoch FROM e.occurred_at - q.requested_at) * 1000 FROM run_events e JOIN wakeup_requests q ON q.run_id = e.run_id
JOIN agents a ON a.id = q.agent_id WHERE e.kind = 'SESSION_RECORDED' AND a.name = 'echo' AND q.workspace_id = $1`, j.workspace)
	report(b, map[string]float64{"wake-to-launch-p50-ms": p50, "wake-to-launch-p99-ms": p99, "commit-p50-ms": commits.at(50), "p50/commit": p50 / commits.at(50)})
}

// BenchmarkLineToSocket: from the moment an agent's process prints a line to its arrival at a WebSocket client. Baseline:
// the same through a pipe alone.
func BenchmarkLineToSocket(b *testing.B) {
	const script = `i=0; while [ $i -lt 100 ]; do date +%s%N; sleep 0.02; i=$((i+1)); done`
	p := start(b, filepath.Join(pgtest.Folder(b), "data"), nil)
	j := newJourney(p)
	agent := j.script("clock", script)
	var arrivals, pipe sample
	for b.Loop() {
		s := p.subscribe(p.owner, followRun, map[string]any{"id": j.wake(agent)})
		for {
			var out struct{ RunEvents item }
			if !s.data(&out) {
				break
			}
			if out.RunEvents.Typename == "RunLogLine" && out.RunEvents.Stream == "STDOUT" {
				arrivals = append(arrivals, age(b, out.RunEvents.Text))
			}
		}
		pipe = append(pipe, throughPipe(b, script)...)
	}
	report(b, map[string]float64{"line-to-socket-p50-ms": arrivals.at(50), "line-to-socket-p99-ms": arrivals.at(99), "pipe-p50-ms": pipe.at(50)})
}

func throughPipe(b *testing.B, script string) (ages sample) {
	command := exec.Command("/bin/sh", "-c", script)
	command.Stdout = writerFunc(func(p []byte) {
		now := time.Now()
		for text := range strings.Lines(string(p)) {
			ages = append(ages, now.Sub(instant(b, text)))
		}
	})
	if err := command.Run(); err != nil {
		b.Fatal(err)
	}
	return ages
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func age(b *testing.B, nanoseconds string) time.Duration { return time.Since(instant(b, nanoseconds)) }

func instant(b *testing.B, nanoseconds string) time.Time {
	n, err := strconv.ParseInt(strings.TrimSpace(nanoseconds), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Unix(0, n)
}

// database connects to the private cluster of a running program.
func (j journey) database(folder string) *sql.DB {
	j.t.Helper()
	address, ok := postgres.RunningURL(filepath.Join(folder, "postgres"), "")
	if !ok {
		j.t.Fatal("the program's cluster is not found")
	}
	return open(j.t, address)
}

func open(t testing.TB, address string) *sql.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func waitFor(b *testing.B, db *sql.DB, query string, args ...any) {
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for done := false; !done; <-look.C {
		if err := db.QueryRowContext(ctx, query, args...).Scan(&done); err != nil {
			b.Fatal(err)
		}
	}
}

// baseline times single committed inserts.
func baseline(b *testing.B, db *sql.DB, n int) (commits sample) {
	if _, err := db.ExecContext(b.Context(), `CREATE TABLE IF NOT EXISTS benchmark_baseline (n bigint)`); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		began := time.Now()
		if _, err := db.ExecContext(b.Context(), `INSERT INTO benchmark_baseline VALUES ($1)`, i); err != nil {
			b.Fatal(err)
		}
		commits.since(began)
	}
	return commits
}

func percentiles(b *testing.B, db *sql.DB, query string, args ...any) (p50, p99 float64) {
	err := db.QueryRowContext(b.Context(), `
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ms), percentile_cont(0.99) WITHIN GROUP (ORDER BY ms) FROM (`+query+`) AS s (ms)`, args...).Scan(&p50, &p99)
	if err != nil {
		b.Fatal(err)
	}
	return p50, p99
}
