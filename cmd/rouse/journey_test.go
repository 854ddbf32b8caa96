package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
)

// Operations of the journey.
const (
	createWorkspace = `mutation($name: String!) { createWorkspace(input: {name: $name}) { workspace { id } userErrors { message } } }`
	createAgent     = `mutation($in: CreateAgentInput!) { createAgent(input: $in) { agent { id } userErrors { message } } }`
	createRoutine   = `mutation($in: CreateRoutineInput!) { createRoutine(input: $in) { routine { id } userErrors { message } } }`
	fireRoutine     = `mutation($id: ID!) { fireRoutine(input: {routineId: $id}) { routineRun { id status } userErrors { message } } }`
	wakeAgent       = `mutation($id: ID!) { wakeAgent(input: {agentId: $id, userId: "tester"}) { wakeupRequest { id status run { id } } userErrors { message } } }`
	cancelRun       = `mutation($id: ID!) { cancelRun(input: {runId: $id}) { run { id } userErrors { message } } }`
	readRun         = `query($id: ID!) { run(id: $id) { id status outcome summary retryCount scheduledRetryAt sessionId attempts { number status error { code message } }
		logs(first: 100) { edges { node { stream text } } } } }`
	watchRun  = `subscription($id: ID!) { runUpdated(runId: $id) { status } }`
	followRun = `subscription($id: ID!) { runEvents(runId: $id, includeLogs: true) { __typename ... on RunEvent { kind attempt } ... on RunLogLine { stream text } } }`
)

// runView is what readRun reads.
type runView struct {
	ID, Status, Outcome, Summary, SessionID string
	RetryCount                              int
	ScheduledRetryAt                        *time.Time
	Attempts                                []struct {
		Number int
		Status string
		Error  *struct{ Code, Message string }
	}
	Logs struct {
		Edges []struct{ Node struct{ Stream, Text string } }
	}
}

func (r runView) lines() []string {
	var out []string
	for _, e := range r.Logs.Edges {
		if e.Node.Stream == "STDOUT" {
			out = append(out, e.Node.Text)
		}
	}
	return out
}

func (r runView) attempts() string {
	var out []string
	for _, a := range r.Attempts {
		out = append(out, a.Status)
	}
	return strings.Join(out, " ")
}

func (p *program) run(id string) runView {
	p.t.Helper()
	var out struct{ Run runView }
	p.request(readRun, map[string]any{"id": id}, &out)
	return out.Run
}

// linesOf are the lines that one attempt of a run printed.
func (p *program) linesOf(run string, attempt int) []string {
	p.t.Helper()
	var out struct{ Run runView }
	p.request(`query($id: ID!, $attempt: Int) { run(id: $id) { logs(first: 100, filter: {attempt: $attempt}) { edges { node { stream text } } } } }`,
		map[string]any{"id": run, "attempt": attempt}, &out)
	return out.Run.lines()
}

// journey is a workspace on a running program.
type journey struct {
	*program
	workspace string
}

// journeys counts the workspaces, so that several may be on one program.
var journeys atomic.Int64

func newJourney(p *program) journey {
	p.t.Helper()
	var out struct {
		CreateWorkspace struct{ Workspace struct{ ID string } }
	}
	p.request(createWorkspace, map[string]any{"name": fmt.Sprint("Journey ", journeys.Add(1))}, &out)
	return journey{p, out.CreateWorkspace.Workspace.ID}
}

// on is the same journey on another program, or for another test.
func (j journey) on(t *testing.T, p *program) journey {
	q := *p
	q.t = t
	return journey{&q, j.workspace}
}

func (j journey) agent(name string, executor map[string]any) string {
	j.t.Helper()
	var out struct {
		CreateAgent struct{ Agent struct{ ID string } }
	}
	j.request(createAgent, map[string]any{"in": map[string]any{
		"workspaceId": j.workspace, "name": name, "role": "WORKER", "cooldown": "PT0S", "skipIdleWakeups": false, "executor": executor,
	}}, &out)
	return out.CreateAgent.Agent.ID
}

func (j journey) script(name, text string) string {
	return j.agent(name, map[string]any{"command": map[string]any{"argv": []string{"/bin/sh", "-c", text}, "grace": "PT2S"}})
}

// wake wakes an agent and returns its run.
func (j journey) wake(agent string) string {
	j.t.Helper()
	var out struct {
		WakeAgent struct {
			WakeupRequest struct {
				Status string
				Run    *struct{ ID string }
			}
		}
	}
	j.request(wakeAgent, map[string]any{"id": agent}, &out)
	if out.WakeAgent.WakeupRequest.Run == nil {
		j.t.Fatalf("the wake was not routed before the answer: %+v", out)
	}
	return out.WakeAgent.WakeupRequest.Run.ID
}

// item is one of runEvents.
type item struct {
	Typename string `json:"__typename"`
	Kind     string
	Attempt  *int
	Stream   string
	Text     string
}

// line reads a stream of runEvents up to the next line of standard output.
func (s *stream) line() string {
	s.t.Helper()
	for {
		var out struct{ RunEvents item }
		if !s.data(&out) {
			s.t.Fatal("the stream ended before the line")
		}
		if out.RunEvents.Stream == "STDOUT" {
			return out.RunEvents.Text
		}
	}
}

// untilEnd reads runUpdated to its end and returns the statuses seen, each once.
func (s *stream) untilEnd() []string {
	s.t.Helper()
	var seen []string
	for {
		var out struct{ RunUpdated struct{ Status string } }
		if !s.data(&out) {
			return seen
		}
		if status := out.RunUpdated.Status; len(seen) == 0 || seen[len(seen)-1] != status {
			seen = append(seen, status)
		}
	}
}

// end waits for a run to end and returns it.
func (j journey) end(run string) runView {
	j.t.Helper()
	j.subscribe(j.owner, watchRun, map[string]any{"id": run}).untilEnd()
	return j.run(run)
}

// databaseOf is how another program reaches the private database of a data folder.
func databaseOf(t testing.TB, dataDir string) (address string, env []string) {
	t.Helper()
	address, ok := postgres.RunningURL(filepath.Join(dataDir, "postgres"), "")
	if !ok {
		t.Fatal("the private database does not run")
	}
	key, err := os.ReadFile(filepath.Join(dataDir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	return address, []string{"ROUSE_DATABASE_URL=" + address, "ROUSE_SECRET_KEY=" + strings.TrimSpace(string(key))}
}

// TestProgramFromWakeToEnd is the main job, seen from outside, on the built program.
func TestProgramFromWakeToEnd(t *testing.T) {
	t.Parallel()
	underRaceDetector(t)
	data := pgtest.Folder(t)
	p := start(t, data, nil)
	j := newJourney(p)
	tick := j.everyMinute()
	address, env := databaseOf(t, data)

	t.Run("a second start on the folder is refused and names the process", func(t *testing.T) {
		second := launch(t, nil, "serve", "--addr", "127.0.0.1:0", "--data-dir", data)
		if code := second.wait(); code != 1 || !strings.Contains(second.log.String(), fmt.Sprint(p.cmd.Process.Pid)) {
			t.Errorf("exit %d: %s", code, second.log)
		}
	})
	t.Run("a taken port is a clear error", func(t *testing.T) {
		other := launch(t, env, "serve", "--addr", strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/graphql"), "--data-dir", pgtest.Folder(t))
		if code := other.wait(); code != 1 || !strings.Contains(other.log.String(), "--addr") {
			t.Errorf("exit %d: %s", code, other.log)
		}
	})
	t.Run("lines arrive while the agent works, and a second process reads them from the table", func(t *testing.T) { testLines(t, j.on(t, p), env) })
	t.Run("a fire by hand runs the routine's agent", func(t *testing.T) { testFire(t, j.on(t, p)) })
	t.Run("a failing command is parked BACKOFF with its attempt FAILED", func(t *testing.T) { testFailure(t, j.on(t, p), address) })
	t.Run("0.0.0.0 is refused without a token and then needs it; a webhook does not", func(t *testing.T) { testTokens(t, j.on(t, p), env) })
	t.Run("a live run is cancelled and leaves no process", func(t *testing.T) { testCancel(t, j.on(t, p)) })
	t.Run("cron fires by the wall clock", func(t *testing.T) { testCron(t, j.on(t, p), tick) })
	t.Run("SIGTERM in mid-run: handed back, finished by the next start", func(s *testing.T) { p = testSignal(s, t, j, p, data, syscall.SIGTERM) })
	t.Run("SIGKILL in mid-run: the same", func(s *testing.T) { p = testSignal(s, t, j, p, data, syscall.SIGKILL) })

	database := clusterPID(t, data)
	if code := p.end(syscall.SIGINT); code != 0 {
		t.Errorf("exit %d:\n%s", code, p.log)
	}
	if left := living([]int{database}); len(left) > 0 {
		t.Errorf("the database server runs on: %v", left)
	}
}

func testLines(t *testing.T, j journey, env []string) {
	w := newWorkshop(t)
	agent := j.script("three lines", w.threeLines())
	second := j.on(t, start(t, pgtest.Folder(t), env))
	run := j.wake(agent)
	states := j.subscribe(j.owner, watchRun, map[string]any{"id": run})
	here := j.subscribe(j.owner, followRun, map[string]any{"id": run})
	there := second.subscribe(second.owner, followRun, map[string]any{"id": run})
	want := []string{"line 1", "line 2", "line 3"}
	for i, text := range want {
		if got := here.line(); got != text {
			t.Errorf("here came %q, want %q", got, text)
		}
		if got := there.line(); got != text {
			t.Errorf("through the second process came %q, want %q", got, text)
		}
		if status := j.run(run).Status; status != "CLAIMED" {
			t.Errorf("the run is %s as line %d arrives", status, i+1)
		}
		w.touch(t, fmt.Sprint("seen", i+1))
	}
	if seen := states.untilEnd(); seen[len(seen)-1] != "FINISHED" || !slices.Contains(seen, "CLAIMED") {
		t.Errorf("statuses: %v", seen)
	}
	stored := second.run(run)
	if lines := stored.lines(); len(lines) < 3 || !slices.Equal(lines[:3], want) {
		t.Errorf("stored lines: %q", lines)
	}
	if stored.Status != "FINISHED" || stored.Outcome != "processed" || stored.Summary != "printed three lines" || stored.SessionID == "" || stored.attempts() != "SUCCEEDED" {
		t.Errorf("%+v", stored)
	}
	if code := second.program.end(syscall.SIGTERM); code != 0 {
		t.Errorf("the second process ended with %d:\n%s", code, second.log)
	}
}

func testFire(t *testing.T, j journey) {
	agent := j.agent("echo", map[string]any{"echo": map[string]any{}})
	var made struct {
		CreateRoutine struct{ Routine struct{ ID string } }
	}
	j.request(createRoutine, map[string]any{"in": map[string]any{"workspaceId": j.workspace, "name": "By hand", "assigneeId": agent}}, &made)
	var fired struct {
		FireRoutine struct{ RoutineRun struct{ ID, Status string } }
	}
	j.request(fireRoutine, map[string]any{"id": made.CreateRoutine.Routine.ID}, &fired)
	eventually(t, "the routine run is DONE", patience, func() bool { return slices.Contains(j.fires(made.CreateRoutine.Routine.ID), "DONE") })
}

// fires lists the statuses of a routine's fires.
func (j journey) fires(routine string) []string {
	j.t.Helper()
	var out struct {
		Routine struct {
			Runs struct {
				Edges []struct {
					Node struct{ Status, Source string }
				}
			}
		}
	}
	j.request(`query($id: ID!) { routine(id: $id) { runs(first: 50) { edges { node { status source } } } } }`, map[string]any{"id": routine}, &out)
	var statuses []string
	for _, e := range out.Routine.Runs.Edges {
		statuses = append(statuses, e.Node.Status)
	}
	return statuses
}

// everyMinute makes a routine that fires each minute.
func (j journey) everyMinute() string {
	j.t.Helper()
	agent := j.agent("ticker", map[string]any{"echo": map[string]any{}})
	var out struct {
		CreateRoutine struct{ Routine struct{ ID string } }
	}
	j.request(createRoutine, map[string]any{"in": map[string]any{"workspaceId": j.workspace, "name": "Every minute", "assigneeId": agent,
		"triggers": []any{map[string]any{"schedule": map[string]any{"cron": "* * * * *"}}}}}, &out)
	return out.CreateRoutine.Routine.ID
}

func testCron(t *testing.T, j journey, routine string) {
	eventually(t, "a fire of the cron trigger is DONE", 90*time.Second, func() bool { return slices.Contains(j.fires(routine), "DONE") })
}

func testFailure(t *testing.T, j journey, address string) {
	run := j.wake(j.script("failing", "cat >/dev/null; echo broken >&2; exit 3"))
	eventually(t, "the run waits for its retry", patience, func() bool { return j.run(run).RetryCount == 1 })
	view := j.run(run)
	if view.Status != "QUEUED" || view.attempts() != "FAILED" || view.ScheduledRetryAt == nil || view.Attempts[0].Error == nil || !strings.Contains(view.Attempts[0].Error.Message, "3") {
		t.Errorf("%+v", view)
	}
	db, err := sql.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var reason string
	if err := db.QueryRowContext(t.Context(), "SELECT parked_reason FROM runs WHERE id = $1", run).Scan(&reason); err != nil || reason != "BACKOFF" {
		t.Errorf("parked %q, %v", reason, err)
	}
}

func testTokens(t *testing.T, j journey, env []string) {
	data := pgtest.Folder(t)
	made := launch(t, env, "token", "create", "--data-dir", data)
	if code := made.wait(); code != 0 {
		t.Fatalf("exit %d: %s", code, made.log)
	}
	token := strings.TrimSpace(made.out.String())
	open := start(t, data, env, "--addr", "0.0.0.0:0")
	if status, body := open.post("", "{ __typename }", nil); status != 401 {
		t.Errorf("without a token: %d %s", status, body)
	}
	if status, body := open.post(token, "{ process { version } }", nil); status != 200 {
		t.Errorf("with a token: %d %s", status, body)
	}
	testWebhook(t, j, open.url)
	testRevocation(t, open, env, token)
	if code := open.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d: %s", code, open.log)
	}
}

// testRevocation revokes a token while a socket of it is open.
func testRevocation(t *testing.T, p *program, env []string, token string) {
	socket := p.socket(token)
	list := launch(t, env, "token", "list")
	if list.wait() != 0 || !strings.Contains(list.out.String(), "live") {
		t.Fatalf("%s%s", list.out, list.log)
	}
	id := ""
	for line := range strings.Lines(list.out.String()) {
		if strings.Contains(line, token[:12]) {
			id = strings.Fields(line)[0]
		}
	}
	if revoke := launch(t, env, "token", "revoke", id); revoke.wait() != 0 {
		t.Fatalf("%s", revoke.log)
	}
	if status, body := p.post(token, "{ process { version } }", nil); status != 401 {
		t.Errorf("with a revoked token: %d %s", status, body)
	}
	wantClose(t, socket, 4403)
}

// wantClose waits for the end of an idle socket.
func wantClose(t *testing.T, socket *websocket.Conn, code websocket.StatusCode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, _, err := socket.Read(ctx); websocket.CloseStatus(err) != code {
		t.Errorf("the socket ended with %v", err)
	}
}

// socket is an idle socket that the server has acknowledged.
func (p *program) socket(token string) *websocket.Conn {
	p.t.Helper()
	conn, _, err := websocket.Dial(p.t.Context(), strings.Replace(p.url, "http", "ws", 1), &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.CloseNow() })
	s := &stream{t: p.t, conn: conn}
	s.send("", "connection_init", map[string]any{"Authorization": "Bearer " + token})
	if m, err := s.next(); err != nil || m.Type != "connection_ack" {
		p.t.Fatalf("%+v, %v", m, err)
	}
	return conn
}

func testCancel(t *testing.T, j journey) {
	run := j.wake(j.script("long", longWork))
	pids := pidsOf(t, j.subscribe(j.owner, followRun, map[string]any{"id": run}).line())
	if len(living(pids)) != 2 {
		t.Fatalf("of %v there are %v", pids, living(pids))
	}
	states := j.subscribe(j.owner, watchRun, map[string]any{"id": run})
	var out any
	j.request(cancelRun, map[string]any{"id": run}, &out)
	if seen := states.untilEnd(); seen[len(seen)-1] != "CANCELLED" {
		t.Errorf("statuses: %v", seen)
	}
	if lines := strings.Join(j.linesOf(run, 1), " "); strings.Contains(lines, "could not be ended") {
		t.Errorf("it ended in spite of its processes: %s %s", lines, j.log)
	}
	if left := append(living(pids), processesOf(t, run)...); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if got := j.run(run).attempts(); got != "CANCELLED" {
		t.Errorf("attempts: %s", got)
	}
}

// testSignal ends the program in mid-run, starts it again, and sees the run finish as a later attempt. The new program
// lives as long as the whole test.
func testSignal(t, whole *testing.T, j journey, p *program, data string, signal syscall.Signal) *program {
	w := newWorkshop(t)
	j = j.on(t, p)
	run := j.wake(j.script("guarded "+signal.String(), w.guarded()))
	pids := pidsOf(t, j.subscribe(j.owner, followRun, map[string]any{"id": run}).line())
	if signal == syscall.SIGKILL {
		j.program.end(signal)
	} else {
		endGracefully(t, j, pids)
	}
	next := start(whole, data, nil, "--drain", "1s")
	view := j.on(t, next).end(run)
	want := map[syscall.Signal]string{syscall.SIGTERM: "INTERRUPTED SUCCEEDED", syscall.SIGKILL: "ABANDONED SUCCEEDED"}[signal]
	if view.Status != "FINISHED" || view.attempts() != want || view.Summary != "done in a later attempt" {
		t.Errorf("%+v", view)
	}
	first, second := next.linesOf(run, 1), next.linesOf(run, 2)
	if len(first) != 1 || !strings.HasPrefix(first[0], "pids ") || len(second) != 1 || !strings.Contains(second[0], "done in a later attempt") {
		t.Errorf("lines of the first attempt are %q, of the second %q", first, second)
	}
	if w.exists("overlap") {
		t.Errorf("C217 after %s two processes of the agent lived at the same time", signal)
	}
	if left := append(living(pids), processesOf(t, run)...); len(left) > 0 {
		t.Errorf("C217 after %s processes %v are left", signal, left)
	}
	token, err := os.ReadFile(w.path("token1"))
	if err != nil {
		t.Fatal(err)
	}
	// What a process of the first attempt would still say is refused.
	if status, body := next.post(strings.TrimSpace(string(token)), "{ process { version } }", nil); status != 401 {
		t.Errorf("with the token of the first attempt: %d %s", status, body)
	}
	return next
}

// endGracefully sends SIGTERM twice, since the first start's drain is long, and reads what the log must say and not say.
func endGracefully(t *testing.T, j journey, pids []int) {
	if err := j.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it says that it shuts down", patience, func() bool { return strings.Contains(j.log.String(), "shutting down") })
	if len(living(pids)) != len(pids) {
		t.Errorf("the drain did not leave the run alone: %v of %v", living(pids), pids)
	}
	code := j.program.end(syscall.SIGTERM)
	log := strings.TrimSpace(j.log.String())
	lines := strings.Split(log, "\n")
	if code != 0 || strings.Contains(log, "database is closed") || !strings.Contains(lines[len(lines)-1], "stopped") {
		t.Errorf("exit %d:\n%s", code, log)
	}
	if left := living(pids); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// clusterPID is the process id of a data folder's private database server.
func clusterPID(t *testing.T, data string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	return pidsOf(t, strings.Split(string(text), "\n")[0])[0]
}
