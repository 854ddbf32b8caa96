package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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

// ownCluster is a database server of the test's own, which it may configure and end.
type ownCluster struct {
	*postgres.Cluster
	db  *sql.DB
	url string
	dir string
}

func newCluster(t *testing.T) ownCluster {
	t.Helper()
	dir := filepath.Join(pgtest.Folder(t), "cluster")
	cluster, err := postgres.StartCluster(t.Context(), postgres.Options{Dir: dir, Log: slog.New(slog.DiscardHandler), Throwaway: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	db, err := postgres.Open(t.Context(), cluster.URL("rouse"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return ownCluster{cluster, db, cluster.URL("rouse"), dir}
}

// statementLog is a database server that writes every statement it gets into its log.
type statementLog struct {
	ownCluster
	t *testing.T
}

func newStatementLog(t *testing.T) statementLog {
	t.Helper()
	l := statementLog{newCluster(t), t}
	for _, change := range []string{`ALTER SYSTEM SET log_statement = 'all'`, `SELECT pg_reload_conf()`} {
		if _, err := l.db.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l statementLog) text(from int) string {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, "server.log"))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text[from:])
}

func (l statementLog) size() int                       { return len(l.text(0)) }
func (l statementLog) count(from int, part string) int { return strings.Count(l.text(from), part) }

func (l statementLog) await(from int, part string, n int) {
	l.t.Helper()
	eventually(l.t, fmt.Sprintf("%d times %q in the server's log", n, part), patience, func() bool { return l.count(from, part) >= n })
}

// wantClean judges the log of a program that was shut down: its parts ended in their order, the database last, nothing
// used it afterwards, and nothing follows the line that completes it.
func (p *program) wantClean(code int) {
	p.t.Helper()
	text := strings.TrimSpace(p.log.String())
	lines := strings.Split(text, "\n")
	if code != 0 || strings.Contains(text, "database is closed") || strings.Contains(text, "panic") || !strings.Contains(lines[len(lines)-1], "msg=stopped") {
		p.t.Errorf("exit %d:\n%s", code, text)
	}
	p.wantOrder()
}

// wantOrder is part of wantClean: what was ended when. The program must have been started with --log-level debug.
func (p *program) wantOrder() {
	p.t.Helper()
	text, last := p.log.String(), -1
	for _, part := range []string{"intake", "loops", `"live runs"`, "connections", "executor", "events", "database", `"data folder"`} {
		at := strings.Index(text, "msg=ended part="+part)
		if at <= last {
			p.t.Errorf("%s ended out of order:\n%s", part, text)
		}
		last = at
	}
	if before, after, _ := strings.Cut(text, "msg=ended part=loops"); strings.Contains(before, "part=database") || strings.Contains(after, "loop=") {
		p.t.Errorf("a loop went on after its end:\n%s", text)
	}
}

// S3. The program has work in every loop: people wake agents all the time, and schedules are due in each tick.
func busyShutdown(t *testing.T) {
	data := pgtest.Installed(t)
	p := start(t, data, nil, "--log-level", "debug", "--drain", "1s")
	j := newJourney(p)
	address, _ := databaseOf(t, data)
	db, err := postgres.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	var agents []string
	for i := range 4 {
		agents = append(agents, j.agent(fmt.Sprint("echo ", i), map[string]any{"echo": map[string]any{}}))
	}
	o := office{j, newWorkshop(t), house{db: db}}
	var routines []string
	for i, agent := range agents {
		routines = append(routines, o.routine(map[string]any{"name": fmt.Sprint("busy ", i), "assigneeId": agent, "triggers": []any{each("* * * * *")}}))
	}
	var crowd sync.WaitGroup
	crowd.Go(func() { // until it is refused: the shutdown has begun
		var err error
		for i := 0; err == nil; i++ {
			err = p.knock(agents[i%len(agents)])
		}
	})
	for _, routine := range routines {
		o.elapsed(routine, time.Now().UTC().Truncate(time.Minute))
	}
	for _, routine := range routines {
		o.awaitFires(routine, 1)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	code := p.end(syscall.SIGTERM)
	crowd.Wait()
	p.wantClean(code)
}

// knock wakes an agent, whatever the answer; the error is that there was none, or that the server ends.
func (p *program) knock(agent string) error {
	body, err := json.Marshal(map[string]any{"query": wakeAgent, "variables": map[string]any{"id": agent}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+p.owner)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		return errors.Join(errors.New("the server ends"), resp.Body.Close())
	}
	return resp.Body.Close()
}

// R6. Nothing was ever woken: all loops wait for their next beat. The program has a database server of its own, which
// ends with it.
func idleShutdown(t *testing.T) {
	data := pgtest.Installed(t)
	p := start(t, data, nil, "--log-level", "debug")
	database := clusterPID(t, data)
	p.wantClean(p.end(syscall.SIGINT))
	if left := living([]int{database}); len(left) > 0 {
		t.Errorf("the database server runs on: %v", left)
	}
}

// S8. The crash meets a run at work and three behind it. What was at work is tried again, which its attempts show (SPEC S8.4).
func restart(t *testing.T) {
	o := openOffice(t)
	a := o.worker("worker")
	o.hold(a)
	var ids []string
	for i := range 4 {
		_, made := o.create(map[string]any{"title": fmt.Sprint("Piece ", i), "assigneeId": a})
		ids = append(ids, made.WakeupRequests[0].ID)
	}
	o.wantWake(a, 1, "TASK_ASSIGNED", "Piece 0")
	o = o.endAndStart(t, syscall.SIGKILL, func() { o.letGo(a) })
	for i, id := range ids {
		o.wantEnd(id, "FINISHED", "")
		want := "SUCCEEDED"
		if i == 0 {
			want = "ABANDONED SUCCEEDED"
		}
		if run := o.program.run(o.wakeup(id).Run.ID); run.attempts() != want || run.SessionID == "" {
			t.Errorf("wake %d: %+v", i, run)
		}
	}
	if n := len(o.woken(a)); n != 5 {
		t.Errorf("%d launches, want one for each and one more for the run that the crash met", n)
	}
}

// R8. The workspace has no office workflow; nobody signals the queue after the start.
func queuedRunsSurvive(t *testing.T) {
	o := openOffice(t, "--drain", "0s")
	o.settle(map[string]any{"officeWorkflowId": nil})
	a := o.worker("worker")
	o.hold(a)
	first := o.wake(a)
	o.wantWake(a, 1, "USER")
	task, _ := o.create(map[string]any{"title": "Card", "workflowId": o.board("Board"), "assigneeId": a})
	var queued struct{ WakeupRequest wakeView }
	o.change("queueRun", "wakeupRequest { id status }", map[string]any{"taskId": task}, &queued)
	if queued.WakeupRequest.Status != "QUEUED" {
		t.Errorf("%+v", queued)
	}
	o = o.endAndStart(t, syscall.SIGTERM, func() {
		var status string
		if err := o.db.QueryRowContext(t.Context(), `SELECT string_agg(status::text, ' ') FROM runs`).Scan(&status); err != nil || status != "QUEUED QUEUED" {
			t.Errorf("after the shutdown the runs are %s, %v", status, err)
		}
		o.letGo(a)
	})
	o.wantEnd(queued.WakeupRequest.ID, "FINISHED", "")
	o.wantWake(a, 3, "TASK_ASSIGNED", "Card", task)
	if view := o.end(first); view.attempts() != "INTERRUPTED SUCCEEDED" {
		t.Errorf("%+v", view)
	}
}

// blockade holds locks that passes of the loops need.
type blockade struct {
	t  *testing.T
	tx *sql.Tx
}

func block(t *testing.T, db *sql.DB, locks string, args ...any) blockade {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // if it was not lifted, the test has failed
	if _, err := tx.ExecContext(t.Context(), locks, args...); err != nil {
		t.Fatal(err)
	}
	return blockade{t, tx}
}

func (b blockade) lift() {
	b.t.Helper()
	if err := b.tx.Commit(); err != nil {
		b.t.Fatal(err)
	}
}

// blocked counts the connections to a database that wait for a lock.
func blocked(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	const query = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// beginShutdown asks a program to end and waits until it only waits for its loops.
func (p *program) beginShutdown() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, "the end of the intake", patience, func() bool { return strings.Contains(p.log.String(), "part=intake") })
}

// wantWaiting says that the shutdown has not gone past the loops.
func (p *program) wantWaiting() {
	p.t.Helper()
	if text := p.log.String(); !p.alive() || strings.Contains(text, "part=loops") || strings.Contains(text, "part=database") {
		p.t.Errorf("the shutdown did not wait:\n%s", text)
	}
}

// R7. Both the dispatcher's pass, which wants the table of wakes, and the cron tick, which wants the lane of the agent
// whose routine is due, are blocked by locks of another connection. After ten seconds a pass would be cut off, and the
// shutdown go on (docs/operations.md); the locks are lifted long before, but nothing here depends on it.
func blockedShutdown(t *testing.T) {
	o := openOffice(t, "--log-level", "debug")
	a := o.worker("scheduled")
	trigger, slot := daily()
	routine := o.routine(map[string]any{"name": "Due", "assigneeId": a, "triggers": []any{trigger}})
	lane := block(t, o.db, `SELECT 1 FROM agent_lanes WHERE agent_id = $1 FOR UPDATE`, a)
	o.elapsed(routine, slot)
	eventually(t, "the blocked tick", patience, func() bool { return blocked(t, o.db) >= 1 })
	table := block(t, o.db, `LOCK TABLE wakeup_requests IN ACCESS EXCLUSIVE MODE`)
	eventually(t, "the blocked pass of the queue", patience, func() bool { return blocked(t, o.db) >= 2 })
	o.beginShutdown()
	o.wantWaiting()
	table.lift()
	o.wantWaiting()
	lane.lift()
	o.wantClean(o.program.wait())
	o.wantWhole(1)
}

// wantWhole says of the database's n schedules that each has fired wholly or not at all.
func (o office) wantWhole(n int) {
	o.t.Helper()
	var triggers, torn int
	const query = `
SELECT count(*), count(*) FILTER (WHERE (t.next_run_at > clock_timestamp()) <> EXISTS (SELECT 1 FROM routine_runs r JOIN wakeup_requests q ON q.routine_run_id = r.id WHERE r.trigger_id = t.id))
FROM routine_triggers t WHERE kind = 'SCHEDULE'`
	if err := o.db.QueryRowContext(o.t.Context(), query).Scan(&triggers, &torn); err != nil || triggers != n || torn != 0 {
		o.t.Errorf("%d schedules, %d fired in part, %v", triggers, torn, err)
	}
}

// P2. The tick has schedules of four agents to fire, whose lanes are all held: it waits for one after the other.
func blockedTick(t *testing.T) {
	o := openOffice(t, "--log-level", "debug")
	var lanes []blockade
	var routines []string
	trigger, slot := daily()
	for i := range 4 {
		a := o.worker(fmt.Sprint("scheduled ", i))
		routines = append(routines, o.routine(map[string]any{"name": fmt.Sprint("Due ", i), "assigneeId": a, "triggers": []any{trigger}}))
		lanes = append(lanes, block(t, o.db, `SELECT 1 FROM agent_lanes WHERE agent_id = $1 FOR UPDATE`, a))
	}
	for _, routine := range routines {
		o.elapsed(routine, slot)
	}
	eventually(t, "the blocked tick", patience, func() bool { return blocked(t, o.db) >= 1 })
	o.beginShutdown()
	for _, lane := range lanes {
		o.wantWaiting()
		lane.lift()
	}
	o.wantClean(o.program.wait())
	o.wantWhole(4)
}

// P5. The order is looked at in every other shutdown too. Here the database goes away under a live run, so that the run
// cannot be handed back: the loops are joined and everything else is ended all the same, and the exit code is not 0.
func failedShutdown(t *testing.T) {
	cluster := newCluster(t)
	h := house{cluster.db, cluster.url, pgtest.Folder(t)}
	o := furnish(office{newJourney(h.start(t, "--log-level", "debug", "--drain", "0s")), newWorkshop(t), h})
	a := o.worker("held")
	o.hold(a)
	o.wake(a)
	_, run, _ := o.awaitWake(a, 1)
	if err := cluster.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	code := o.program.end(syscall.SIGTERM)
	o.wantOrder()
	text := strings.TrimSpace(o.log.String())
	if last := text[strings.LastIndex(text, "\n")+1:]; code != 1 || !strings.HasPrefix(last, "rouse: live runs: ") || strings.Contains(text, "database is closed") {
		t.Errorf("exit %d:\n%s", code, text)
	}
	if left := processesOf(t, run); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}
