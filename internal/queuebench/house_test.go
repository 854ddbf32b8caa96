package queuebench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgprofile"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/migrations"
	"rouse.dev/rouse/internal/xid"
)

// house is a store on a durable cluster, with a workspace.
type house struct {
	testing.TB
	*store.Store
	db        *sql.DB
	url       string
	workspace xid.ID
	owner     store.Owner
	cluster   *postgres.Cluster
}

type deaf struct{}

func (deaf) Publish(...event.Event) {}

const lease = time.Hour

// newHouse starts a cluster with the program's own settings, which flush every commit to the disk.
func newHouse(b *testing.B) *house {
	b.Helper()
	ctx := context.Background()
	log := slog.New(slog.DiscardHandler)
	cluster := startCluster(ctx, b, log)
	b.Cleanup(func() {
		if err := cluster.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	h := &house{TB: b, cluster: cluster, url: cluster.URL("rouse"), owner: store.Owner{ID: xid.New("prc"), Host: "here", BootID: "boot", PID: 1, Started: 1}}
	var err error
	if h.db, err = postgres.Open(ctx, h.url); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.db.Close() })
	h.ok(postgres.Migrate(ctx, h.db, migrations.FS, log))
	h.Store = store.New(h.db, store.Options{Events: deaf{}, Counters: metrics.New(), Log: log, Jitter: func() float64 { return 0 }})
	h.ok(h.Activate(ctx))
	h.workspace = h.newWorkspace("bench")
	return h
}

// startCluster starts a cluster that counts its statements, if a profile is wanted.
func startCluster(ctx context.Context, b *testing.B, log *slog.Logger) *postgres.Cluster {
	b.Helper()
	options := postgres.Options{Dir: filepath.Join(pgtest.Folder(b), "cluster"), Log: log}
	cluster, err := postgres.StartCluster(ctx, options)
	if err == nil && pgprofile.Wanted() {
		if err = errors.Join(cluster.Stop(ctx), pgprofile.Preload(filepath.Join(options.Dir, "data"))); err == nil {
			cluster, err = postgres.StartCluster(ctx, options)
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	return cluster
}

// profile prints which statements the server spent its time on while f did n things.
func (h *house) profile(f func() (n int64)) {
	h.Helper()
	ctx := context.Background()
	if !pgprofile.Wanted() {
		f()
		return
	}
	h.ok(pgprofile.Begin(ctx, h.db))
	n := f()
	table, err := pgprofile.Top(ctx, h.db, float64(n), 30)
	h.ok(err)
	fmt.Println(table)
}

func (h *house) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) sql(query string, args ...any) {
	h.Helper()
	if _, err := h.db.ExecContext(context.Background(), query, args...); err != nil {
		h.Fatalf("%s: %v", query, err)
	}
}

// newWorkspace has no window: a wake is due at once.
func (h *house) newWorkspace(name string) xid.ID {
	h.Helper()
	made, err := h.CreateWorkspace(context.Background(), store.CreateWorkspace{Name: name})
	h.ok(err)
	h.sql(`UPDATE workspaces SET coalescing_window_ms = 0 WHERE id = $1`, made.ID)
	return made.ID
}

func (h *house) newAgent(workspace xid.ID, name string, sessions int) xid.ID {
	h.Helper()
	no := false
	made, err := h.CreateAgent(context.Background(), store.CreateAgent{WorkspaceID: workspace, Name: name, Role: domain.AgentRoleWorker,
		MaxConcurrentSessions: sessions, SkipIdleWakeups: &no, Executor: &domain.ExecutorSpec{Echo: &domain.EchoSpec{}}})
	h.ok(err)
	return made.ID
}

// fill gives an agent n queued runs, each in a scope of its own, older than all others by age, with their requests.
func (h *house) fill(agent xid.ID, n int, age time.Duration) {
	h.Helper()
	const runs = `
INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, requested_at)
SELECT 'run_' || md5($1 || n), workspace_id, agent_id, 'cau_' || n, 'task:' || n, 'SELF', 'EVENT', 'QUEUED', clock_timestamp() - make_interval(secs => $3) + n * interval '1 microsecond'
FROM agent_lanes, generate_series(1, $2::int) n WHERE agent_id = $1`
	h.sql(runs, agent, n, age.Seconds())
	const requests = `
INSERT INTO wakeup_requests (id, workspace_id, agent_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status, run_id,
  recovered, resends, hops, retry_count)
SELECT replace(id, 'run_', 'wkp_'), workspace_id, agent_id, causation_id, scope, source, wake_class, false, 'bench', '{"reason": "bench"}', 'QUEUED', id, false, 0, 0, 0
FROM runs WHERE agent_id = $1 AND status = 'QUEUED'`
	h.sql(requests, agent)
	h.fixHeads()
}

// fixHeads makes lanes agree with runs that were inserted beside the store.
func (h *house) fixHeads() {
	h.Helper()
	h.sql(`
UPDATE agent_lanes l SET head_at = r.requested_at, head_id = r.id FROM agent_lanes x JOIN LATERAL (
  SELECT requested_at, id FROM runs WHERE agent_id = x.agent_id AND status = 'QUEUED' AND parked_reason IS NULL ORDER BY requested_at, id LIMIT 1) r ON true
WHERE l.agent_id = x.agent_id AND l.head_id IS DISTINCT FROM r.id`)
}

// settle is what a server does by itself after a while: vacuum, statistics, a checkpoint.
func (h *house) settle() {
	h.Helper()
	h.sql(`VACUUM ANALYZE`)
	h.sql(`CHECKPOINT`)
}

// timing is a series of durations.
type timing []time.Duration

func (s *timing) since(began time.Time) { *s = append(*s, time.Since(began)) }

// at is the p-th percentile in milliseconds.
func (s timing) at(p int) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return float64(sorted[min(len(sorted)-1, len(sorted)*p/100)].Microseconds()) / 1000
}

// pgbench runs PostgreSQL's own benchmark for some seconds and returns its transactions in a second and how long one took.
func (h *house) pgbench(seconds, clients int) (rate, latencyMs float64) {
	h.Helper()
	var exists bool
	h.ok(h.db.QueryRowContext(context.Background(), `SELECT to_regclass('pgbench_accounts') IS NOT NULL`).Scan(&exists))
	if !exists {
		pgtest.FillPgbench(h, h.url)
	}
	return pgtest.Pgbench(h, h.url, seconds, clients)
}

// report drops the benchmark's own ns/op, which would mean nothing here.
func report(b *testing.B, figures map[string]float64) {
	b.ReportMetric(0, "ns/op")
	for unit, value := range figures {
		b.ReportMetric(value, unit)
	}
}

// claimMany times claims of one run each, and puts all back afterwards.
func (h *house) claimMany(n int) (times timing) {
	h.Helper()
	ctx := context.Background()
	var taken []store.Claimed
	for range n {
		began := time.Now()
		claimed, err := h.Claim(ctx, h.owner, 1, lease)
		times.since(began)
		h.ok(err)
		if len(claimed) != 1 {
			h.Fatalf("claimed %d runs", len(claimed))
		}
		taken = append(taken, claimed...)
	}
	for _, c := range taken {
		h.ok(h.HandBack(ctx, c.Attempt, store.Unfinished{}))
	}
	return times
}

func (h *house) String() string { return fmt.Sprint(h.url) }
