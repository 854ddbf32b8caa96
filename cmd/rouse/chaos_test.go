package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
)

// chaosPlan is how much happens: runs of echo agents, processes killed with SIGKILL, and immediate restarts of PostgreSQL.
type chaosPlan struct {
	runs, kills, restarts int
	limit                 time.Duration
}

// fullChaos asks for the long form, `make chaos`.
const fullChaos = "ROUSE_CHAOS_FULL"

func planChaos() chaosPlan {
	if os.Getenv(fullChaos) != "" {
		return chaosPlan{runs: 20_000, kills: 90, restarts: 3, limit: 60 * time.Minute}
	}
	return chaosPlan{runs: 500, kills: 10, restarts: 1, limit: 5 * time.Minute}
}

const (
	chaosProcesses = 4
	chaosAgents    = 40
	chaosCeiling   = 24
	chaosBeat      = 150 * time.Millisecond // between two kills
	mostRepeats    = 0.01
)

// TestChaos lets four processes work on one database while one of them is killed each 150 ms and the database is
// restarted at once now and then. All wakes are launched and end; few are launched twice; no capacity and no ceiling is
// exceeded at any instant that is looked at; and nothing is left over. No run fails because its processes were killed: what
// was lost waits 10 s, then a minute, so that it meets no more than two or three kills of some minutes (SPEC S8.4).
func TestChaos(t *testing.T) {
	plan := planChaos()
	c := newChaos(t)
	c.prepare(plan)
	began := time.Now()
	stopWatching := c.watch()
	for i := range chaosProcesses {
		c.spawn(i)
	}
	c.riot(plan)
	c.tend(plan, began)
	looks := stopWatching()
	for _, p := range c.processes {
		p.end(syscall.SIGTERM)
	}
	c.check(plan)
	t.Logf("%d runs in %v, %d kills, %d restarts of the database, looked at %d times", plan.runs, time.Since(began).Round(time.Second), c.killed, plan.restarts, looks)
	if looks == 0 {
		t.Error("nobody looked")
	}
}

type chaos struct {
	*testing.T
	dir       string
	env       []string
	cluster   *postgres.Cluster
	db        *sql.DB
	processes [chaosProcesses]*program
	killed    int
}

func newChaos(t *testing.T) *chaos {
	c := &chaos{T: t, dir: pgtest.Folder(t)}
	c.startDatabase()
	t.Cleanup(func() {
		if err := c.cluster.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c.env = []string{"ROUSE_DATABASE_URL=" + c.cluster.URL("rouse"), "ROUSE_SECRET_KEY=" + strings.Repeat("5a6b7c8d", 8), "ROUSE_LEASE=10s"}
	db, err := postgres.Open(t.Context(), c.cluster.URL("rouse"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c.db = db
	return c
}

func (c *chaos) startDatabase() {
	c.Helper()
	cluster, err := postgres.StartCluster(c.Context(), postgres.Options{Dir: filepath.Join(c.dir, "cluster"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.Fatal(err)
	}
	c.cluster = cluster
}

// restartDatabase ends the server as a crash does, without a checkpoint, and starts it again.
func (c *chaos) restartDatabase() {
	c.Helper()
	if err := syscall.Kill(c.cluster.PID(), syscall.SIGQUIT); err != nil {
		c.Fatal(err)
	}
	select {
	case <-c.cluster.Done():
	case <-time.After(patience):
		c.Fatal("the database server does not end")
	}
	c.startDatabase()
}

// prepare makes agents with one to three sessions and queues the wakes, each in a scope of its own.
func (c *chaos) prepare(plan chaosPlan) {
	c.Helper()
	first := start(c, filepath.Join(c.dir, "0"), c.env)
	j := newJourney(first)
	var agents []string
	for i := range chaosAgents {
		agents = append(agents, j.agent(fmt.Sprint("echo ", i), map[string]any{"echo": map[string]any{}}))
	}
	first.end(syscall.SIGTERM)
	c.sql(`UPDATE workspaces SET coalescing_window_ms = 0`)
	c.sql(`UPDATE workspace_lanes SET max_running = $1 WHERE workspace_id = $2`, chaosCeiling, j.workspace)
	c.sql(`UPDATE agent_lanes l SET max_sessions = 1 + n % 3 FROM (SELECT agent_id, row_number() OVER (ORDER BY agent_id) AS n FROM agent_lanes) x WHERE x.agent_id = l.agent_id`)
	queueWakes(c, c.db, j.workspace, agents, plan.runs)
}

func (c *chaos) sql(query string, args ...any) {
	c.Helper()
	if _, err := c.db.ExecContext(c.Context(), query, args...); err != nil {
		c.Fatalf("%s: %v", query, err)
	}
}

// spawn starts a process without waiting for it.
func (c *chaos) spawn(i int) {
	c.processes[i] = launch(c, c.env, "serve", "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(c.dir, fmt.Sprint(i)))
}

// riot kills one process at work each beat and, evenly spread, the database.
func (c *chaos) riot(plan chaosPlan) {
	c.Helper()
	beat := time.NewTicker(chaosBeat)
	defer beat.Stop()
	restarts := 0
	for c.killed < plan.kills {
		<-beat.C
		if i, ready := c.victim(); ready {
			c.end(c.processes[i])
			c.spawn(i)
			c.killed++
		}
		if restarts < plan.restarts && c.killed*(plan.restarts+1) > (restarts+1)*plan.kills {
			c.restartDatabase()
			restarts++
		}
		c.revive()
	}
}

// victim is a process that is at work: on a slow machine the others would be killed before they took a run.
func (c *chaos) victim() (i int, ready bool) {
	for _, i := range rand.Perm(chaosProcesses) {
		if p := c.processes[i]; p.alive() && strings.Contains(p.out.String(), "API") {
			return i, true
		}
	}
	return 0, false
}

// end kills a process; one that had ended by itself must not have been at work.
func (c *chaos) end(p *program) {
	c.Helper()
	c.checkAlive(p)
	if p.alive() {
		p.end(syscall.SIGKILL)
	}
}

// checkAlive fails when a process that was ready has ended by itself; one that found no database to start with may.
func (c *chaos) checkAlive(p *program) {
	c.Helper()
	if !p.alive() && strings.Contains(p.out.String(), "API") {
		c.Errorf("a process ended by itself:\n%s", p.log)
	}
}

// revive starts those again that found no database, as a supervisor would.
func (c *chaos) revive() {
	for i, p := range c.processes {
		if !p.alive() {
			c.checkAlive(p)
			c.spawn(i)
		}
	}
}

// tend keeps the processes up until all has ended.
func (c *chaos) tend(plan chaosPlan, began time.Time) {
	c.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		<-look.C
		c.revive()
		var open int
		if err := c.db.QueryRowContext(c.Context(), `SELECT count(*) FROM wakeup_requests WHERE finished_at IS NULL`).Scan(&open); err != nil {
			c.Fatal(err)
		}
		if open == 0 {
			return
		}
		if time.Since(began) > plan.limit {
			c.Errorf("%d of %d wakes have not ended after %v", open, plan.runs, plan.limit)
			return
		}
	}
}

// watch looks from outside, in one snapshot at a time, whether a bound is exceeded.
func (c *chaos) watch() (stop func() (looks int)) {
	const exceeded = `
SELECT 'agent ' || l.agent_id || ' has more live runs than sessions' FROM agent_lanes l
WHERE (SELECT count(*) FROM runs r WHERE r.agent_id = l.agent_id AND r.status = 'CLAIMED') > l.max_sessions
UNION ALL
SELECT 'workspace ' || w.workspace_id || ' has more live runs than its ceiling' FROM workspace_lanes w
WHERE (SELECT count(*) FROM agent_lanes l JOIN runs r ON r.agent_id = l.agent_id AND r.status = 'CLAIMED' WHERE l.workspace_id = w.workspace_id) > w.max_running
LIMIT 1`
	ctx, cancel := context.WithCancel(c.Context())
	var wg sync.WaitGroup
	looks := 0
	wg.Go(func() {
		again := time.NewTicker(50 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
			var what string
			switch err := c.db.QueryRowContext(ctx, exceeded).Scan(&what); err {
			case nil:
				c.Error(what)
				return
			case sql.ErrNoRows:
				looks++
			} // else the database is away
		}
	})
	return func() int { cancel(); wg.Wait(); return looks }
}

// check reads what came of it.
func (c *chaos) check(plan chaosPlan) {
	c.Helper()
	for what, query := range map[string]string{
		"runs have not ended well":              `SELECT count(*) FROM runs WHERE status <> 'FINISHED' OR outcome <> 'processed'`,
		"runs failed by crashes (SPEC S8.4)":    `SELECT count(*) FROM runs WHERE error_code = 'LEASE_LOST' OR status = 'FAILED'`,
		"wakes were in no prompt":               `SELECT count(*) FROM wakeup_requests WHERE delivered_at IS NULL OR run_id IS NULL`,
		"leases are left":                       `SELECT count(*) FROM attempt_leases`,
		"attempts have no end":                  `SELECT count(*) FROM run_attempts WHERE finished_at IS NULL`,
		"agents' counts or heads are left":      `SELECT count(*) FROM agent_lanes WHERE running <> 0 OR head_id IS NOT NULL`,
		"workspaces' counts are left":           `SELECT count(*) FROM workspace_lanes WHERE running <> 0`,
		"runs never launched":                   `SELECT count(*) FROM runs r WHERE NOT EXISTS (SELECT 1 FROM run_events e WHERE e.run_id = r.id AND e.kind = 'LAUNCHED')`,
		"runs have other than one good attempt": `SELECT count(*) FROM runs r WHERE 1 <> (SELECT count(*) FROM run_attempts a WHERE a.run_id = r.id AND a.status = 'SUCCEEDED')`,
	} {
		if n := c.count(query); n != 0 {
			c.Errorf("%d %s", n, what)
		}
	}
	if n := c.count(`SELECT count(*) FROM runs`); n != plan.runs {
		c.Errorf("%d wakes became %d runs", plan.runs, n)
	}
	c.tellEnds()
	repeats := c.count(`SELECT count(*) FROM (SELECT 1 FROM run_events WHERE kind = 'LAUNCHED' GROUP BY run_id HAVING count(*) > 1) x`)
	share := float64(repeats) / float64(plan.runs)
	c.Logf("launched more than once: %d, %.2f %%", repeats, 100*share)
	if os.Getenv(fullChaos) != "" && share >= mostRepeats { // in the short form there are too few runs for each kill
		c.Errorf("%.2f %% of the runs were launched more than once, want less than %.0f %%", 100*share, 100*mostRepeats)
	}
}

// tellEnds says how runs that did not finish ended: what became of them, how often they were lost and how often launched.
func (c *chaos) tellEnds() {
	c.Helper()
	const query = `
SELECT format('%s %s, lost %s times, launched %s times: %s', status, end_reason, abandonments, launches, count(*)) FROM runs r,
  LATERAL (SELECT count(*) AS launches FROM run_events e WHERE e.run_id = r.id AND e.kind = 'LAUNCHED') l
WHERE status <> 'FINISHED' GROUP BY status, end_reason, abandonments, launches`
	rows, err := c.db.QueryContext(c.Context(), query)
	if err != nil {
		c.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			c.Fatal(err)
		}
		c.Log(line)
	}
	if err := rows.Err(); err != nil {
		c.Fatal(err)
	}
}

func (c *chaos) count(query string) int {
	c.Helper()
	return countIn(c, c.db, query)
}
