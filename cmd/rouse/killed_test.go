package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// kills is how often the server is killed in each of these tests, and what stands in its queue; ROUSE_KILLS=20 asks for the long form.
func kills() (times, queued int) {
	if n, err := strconv.Atoi(os.Getenv("ROUSE_KILLS")); err == nil {
		return n, 2000
	}
	return 3, 200
}

// tell sends a mutation to a server that may be killed meanwhile; what came of it is looked up afterwards.
func (p *program) tell(query string, variables map[string]any) {
	p.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		p.t.Error(err)
		return
	}
	req, err := http.NewRequest(http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+p.owner)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // it was killed
	}
	_, _ = io.Copy(io.Discard, resp.Body) // may be cut
	_ = resp.Body.Close()
}

// killedWhile kills the server at some moment while something is done, and starts it again.
func (o office) killedWhile(longest time.Duration, do func()) office {
	o.t.Helper()
	var done sync.WaitGroup
	done.Go(do)
	<-time.After(rand.N(longest)) // the moment is what is tried
	o.program.end(syscall.SIGKILL)
	done.Wait()
	o.journey = journey{o.house.start(o.t), o.workspace}
	return o
}

// wantNone says that queries count nothing.
func (o office) wantNone(when string, queries map[string]string) {
	o.t.Helper()
	for what, query := range queries {
		if n := o.count(query); n != 0 {
			o.t.Errorf("%s: %d %s", when, n, what)
		}
	}
}

// torn is what no moment may show.
var torn = map[string]string{
	"open wakes stand in a run that has ended": `SELECT count(*) FROM wakeup_requests q JOIN runs r ON r.id = q.run_id WHERE q.finished_at IS NULL AND r.finished_at IS NOT NULL`,
	"open runs have no wake":                   `SELECT count(*) FROM runs r WHERE r.finished_at IS NULL AND NOT EXISTS (SELECT 1 FROM wakeup_requests q WHERE q.run_id = r.id)`,
	"runs have several good attempts":          `SELECT count(*) FROM (SELECT 1 FROM run_attempts WHERE status = 'SUCCEEDED' GROUP BY run_id HAVING count(*) > 1) x`,
}

// A server is killed while it pauses and resumes an agent with a long queue. Afterwards all is done, once.
func TestKilledWhileAnAgentIsPaused(t *testing.T) {
	t.Parallel()
	underRaceDetector(t)
	times, queued := kills()
	o := openOffice(t)
	a := o.agent("echo", map[string]any{"echo": map[string]any{}})
	o.queueMany(a, queued)
	for i := range times {
		mutation := []string{"pauseAgent", "resumeAgent"}[i%2]
		o = o.killedWhile(300*time.Millisecond, func() {
			o.tell(`mutation($id: ID!) { `+mutation+`(input: {agentId: $id}) { userErrors { message } } }`, map[string]any{"id": a})
		})
		o.wantNone(fmt.Sprint("after kill ", i+1, " in ", mutation), torn)
	}
	o.tell(`mutation($id: ID!) { resumeAgent(input: {agentId: $id}) { userErrors { message } } }`, map[string]any{"id": a})
	eventually(t, "all to end", 5*time.Minute, func() bool {
		return o.count(`SELECT count(*) FROM wakeup_requests WHERE status <> 'FINISHED'`) == 0
	})
	o.wantNone("at the end", torn)
	o.wantNone("at the end", map[string]string{
		"wakes reached no agent":      `SELECT count(*) FROM wakeup_requests WHERE delivered_at IS NULL`,
		"leases are left":             `SELECT count(*) FROM attempt_leases`,
		"counts or heads are left":    `SELECT count(*) FROM agent_lanes WHERE running <> 0 OR head_id IS NOT NULL`,
		"runs failed or lost a lease": `SELECT count(*) FROM runs WHERE status = 'FAILED' OR error_code = 'LEASE_LOST'`,
	})
}

// A server is killed while schedules of heavy routines fire. No fire is half made, none is lost, none is made twice.
func TestKilledDuringATickOfHeavyFires(t *testing.T) {
	t.Parallel()
	times, _ := kills()
	o := openOffice(t)
	const routines = 60
	a := o.agent("echo", map[string]any{"echo": map[string]any{}})
	trigger, slot := daily()
	for i := range routines {
		o.routine(map[string]any{"name": fmt.Sprint("Heavy ", i), "assigneeId": a, "taskTemplate": map[string]any{"title": "A task"},
			"concurrencyPolicy": "ALWAYS_ENQUEUE", "triggers": []any{trigger}})
	}
	halves := map[string]string{
		"fires made a task that is not there": `SELECT count(*) FROM routine_runs WHERE status = 'TASK_CREATED' AND task_id IS NULL`,
		"fires were left where they came in":  `SELECT count(*) FROM routine_runs WHERE status = 'RECEIVED'`,
		"tasks have no fire":                  `SELECT count(*) FROM tasks t WHERE NOT EXISTS (SELECT 1 FROM routine_runs r WHERE r.task_id = t.id)`,
		"tasks woke nobody":                   `SELECT count(*) FROM tasks t WHERE NOT EXISTS (SELECT 1 FROM wakeup_requests q WHERE q.task_id = t.id)`,
		"tasks have several fires":            `SELECT count(*) FROM (SELECT 1 FROM routine_runs WHERE task_id IS NOT NULL GROUP BY task_id HAVING count(*) > 1) x`,
	}
	for i := range times {
		slot = slot.AddDate(0, 0, -1)
		o = o.killedWhile(1500*time.Millisecond, func() { o.sql(`UPDATE routine_triggers SET next_run_at = $1 WHERE kind = 'SCHEDULE'`, slot) })
		o.wantNone(fmt.Sprint("after kill ", i+1), halves)
		eventually(t, "all to fire", patience, func() bool {
			return o.count(`SELECT count(*) FROM routine_triggers WHERE kind = 'SCHEDULE' AND next_run_at <= clock_timestamp()`) == 0
		})
		if n := o.count(`SELECT count(*) FROM routine_runs WHERE scheduled_for = $1`, slot); n != routines {
			t.Errorf("kill %d: %d fires of %d", i+1, n, routines)
		}
		o.wantNone(fmt.Sprint("after fires ", i+1), halves)
	}
}
