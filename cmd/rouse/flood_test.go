package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
)

// floodVariable makes this binary flood "<address> <seconds>", as a process of an account without a token would. With floodToken and floodTask it
// does so with the token of a run, as an agent that was led astray.
const (
	floodVariable = "ROUSE_TEST_FLOOD"
	floodToken    = "ROUSE_TEST_FLOOD_TOKEN"
	floodTask     = "ROUSE_TEST_FLOOD_TASK"
)

// floodKind is a way to flood, and how many at once.
type floodKind struct {
	name string
	many int
	once func(address string) error
}

// flooding are the ways in which it does, each with how many at once. What they cost the machine by themselves is kept
// small: one processor's time at most, at the lowest priority.
var flooding = []floodKind{
	{"connections that come and go", 4, comeAndGo},
	{"connections that stay", 1000, stay},
	{"headers that never end", 1500, neverEnd},
	{"tokens that are made up", 32, func(address string) error {
		return ask(address, "POST", "/graphql", "Authorization: Bearer rse_"+rand.Text()+rand.Text(), `{"query":"{ process { version } }"}`)
	}},
	{"webhooks that are none", 16, func(address string) error {
		return ask(address, "POST", "/api/routine-triggers/"+(rand.Text() + rand.Text())[:32]+"/fire", "", "{}")
	}},
	{"sockets that do not say who they are", 100, socket},
	{"preflights", 8, func(address string) error {
		return ask(address, "OPTIONS", "/graphql", "Origin: https://evil.example", "")
	}},
	{"probes", 8, func(address string) error { return ask(address, "GET", "/readyz", "", "") }},
	{"the console's files", 8, func(address string) error { return ask(address, "GET", "/", "", "") }},
}

// agentFlooding is what an agent can do with the token of its run: all that such a token allows, over and over.
func agentFlooding(token, task string) []floodKind {
	header := "Authorization: Bearer " + token
	asking := func(query string) func(string) error {
		return func(address string) error { return ask(address, "POST", "/graphql", header, query) }
	}
	move := func(to string) string {
		return `{"query":"mutation { moveTask(input: {taskId: \"` + task + `\", to: ` + to + `}) { userErrors { code } } }"}`
	}
	return []floodKind{
		{"moves", 100, asking(move("IN_PROGRESS"))},
		{"moves to and fro", 100, asking(move("TODO"))},
		{"comments", 100, asking(`{"query":"mutation { commentOnTask(input: {taskId: \"` + task + `\", body: \"again\"}) { userErrors { code } } }"}`)},
		{"what it may not", 100, asking(`{"query":"{ workspaces(first: 100) { edges { node { id } } } }"}`)},
		{"large bodies", 100, asking(`{"query":"{ process { version } }", "extensions": {"x": "` + strings.Repeat("x", 200<<10) + `"}}`)},
		{"new connections", 100, func(address string) error {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = fmt.Fprintf(c, "POST /graphql HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", header)
			return err
		}},
	}
}

func comeAndGo(address string) error {
	c, err := net.Dial("tcp", address)
	if err == nil {
		err = c.Close()
	}
	return err
}

// stay keeps a connection for as long as the server does.
func stay(address string) error { return talk(address, "") }

func neverEnd(address string) error { return talk(address, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ") }

func socket(address string) error {
	return talk(address, "GET /graphql HTTP/1.1\r\nHost: "+address+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n")
}

func talk(address, text string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

// ask sends requests on one connection, one after the other, for as long as the server keeps it.
func ask(address, method, path, header, body string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if header != "" {
		header += "\r\n"
	}
	reader := bufio.NewReader(c)
	for range 50 {
		if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, address, header, len(body), body); err != nil {
			return err
		}
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
	}
	return nil
}

// flood is the program; it ends by itself, and prints how often each thing was done.
func flood(task string) int {
	var address string
	var seconds int
	if _, err := fmt.Sscan(task, &address, &seconds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	runtime.GOMAXPROCS(1)
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) // its own work is not what is measured
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	kinds := flooding
	if token := os.Getenv(floodToken); token != "" {
		kinds = agentFlooding(token, os.Getenv(floodTask))
	}
	counts := make([]atomic.Int64, len(kinds))
	only := os.Getenv("ROUSE_TEST_FLOOD_KIND")
	for i, kind := range kinds {
		if only != "" && only != strconv.Itoa(i) {
			continue
		}
		for range kind.many {
			go func() {
				for {
					_ = kind.once(address) // whatever the server makes of it
					counts[i].Add(1)
				}
			}()
		}
	}
	time.Sleep(time.Until(end)) // the connections end with the process
	for i, kind := range kinds {
		fmt.Println(kind.name+":", counts[i].Load())
	}
	return 0
}

// processorTime is what the program's process has spent so far, its database not included.
func (p *program) processorTime(t testing.TB) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ")
	var user, system int64
	fields := strings.Fields(after)
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // of USER_HZ, which is 100
}

// floodSeconds is how long a flood of a test lasts: longer than a lease without a sign of life.
const floodSeconds = 6

// startFlood floods a program from an account that owns nothing here, when the tests run as root. It ends by itself, or by end.
func startFlood(t testing.TB, p *program, seconds int, env ...string) (done <-chan string, end func()) {
	t.Helper()
	file := filepath.Join(pgtest.Folder(t), "flood")
	showSelf(t, file)
	cmd := exec.Command(file)
	cmd.Env = append(env, "ROUSE_TEST_FLOOD_KIND="+os.Getenv("ROUSE_TEST_FLOOD_KIND"), fmt.Sprintf("%s=%s %d", floodVariable, hostOf(t, p.url), seconds))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as another account's; where the kernel weighs sessions, those of the database are not outweighed
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() {
		_ = cmd.Wait() // it was killed, or ended by itself
		ended <- said.String()
	}()
	end = func() { _ = cmd.Process.Kill() } // it may have ended by itself
	t.Cleanup(end)
	return ended, end
}

// owner asks again and again, on a connection that stays, and now and then on a new one, as a command line would.
type owner struct {
	p       *program
	staying *http.Client
}

func (o owner) ask(client *http.Client) (time.Duration, error) {
	req, err := http.NewRequest(http.MethodPost, o.p.url, strings.NewReader(`{"query":"{ workspaces(first: 5) { edges { node { id agents(first: 5) { edges { node { id } } } } } } }"}`))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+o.p.owner)
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d", resp.StatusCode)
	}
	return time.Since(began), nil
}

// askFor asks until ctx ends, at least once each way.
func (o owner) askFor(t testing.TB, ctx context.Context) (staying, fresh sample) {
	t.Helper()
	new := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for n := 0; ctx.Err() == nil || len(fresh) == 0; n++ {
		client, to := o.staying, &staying
		if n%10 == 9 {
			client, to = new, &fresh
		}
		took, err := o.ask(client)
		if err != nil {
			t.Fatalf("the owner was not served (request %d): %v", n, err)
		}
		*to = append(*to, took)
	}
	return staying, fresh
}

// floodFigures is what a flood does to the owner and to the server.
type floodFigures struct {
	quietStaying, quietFresh, floodStaying, floodFresh sample
	before, after                                      float64 // MB
	processor                                          float64 // of the server during the flood, in processors
	did                                                string
}

func measureFlood(t testing.TB, p *program, seconds int, env ...string) floodFigures {
	t.Helper()
	o := owner{p, &http.Client{Timeout: patience, Transport: &http.Transport{}}}
	during := func(d time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		t.Cleanup(cancel)
		return ctx
	}
	var f floodFigures
	f.quietStaying, f.quietFresh = o.askFor(t, during(time.Duration(seconds)*time.Second/6))
	f.before = resident(t, p)
	spent, began := p.processorTime(t), time.Now()
	done, _ := startFlood(t, p, seconds, env...)
	f.floodStaying, f.floodFresh = o.askFor(t, during(time.Duration(seconds)*time.Second))
	f.processor = (p.processorTime(t) - spent).Seconds() / time.Since(began).Seconds()
	f.after = resident(t, p)
	select {
	case f.did = <-done:
	case <-time.After(patience):
		t.Fatal("the flood does not end")
	}
	return f
}

// isServed says whether the owner got every answer in the flood within some seconds, as without bounds she did not for 40 s. How long an answer
// takes says more of a busy machine than of the server: those are the figures of make bench-flood, and the order in which connections are served
// is tested where it is decided (internal/edge).
func (f floodFigures) isServed() bool {
	const most = 10_000 // ms
	return f.floodStaying.at(99) <= most && f.floodFresh.at(99) <= most
}

func (f floodFigures) String() string {
	return fmt.Sprintf("p99 on a connection that stays: %.1f ms quiet, %.1f ms in the flood; on a new one: %.1f and %.1f ms; memory %.0f and %.0f MB; %.2f processors\n%s",
		f.quietStaying.at(99), f.floodStaying.at(99), f.quietFresh.at(99), f.floodFresh.at(99), f.before, f.after, f.processor, f.did)
}

// A process of the agents' account that has no token does to the server whatever it can, for some seconds. The owner is
// served, memory stays, another agent's run keeps its lease, and the end comes at once.
func TestAFloodWithoutATokenHarmsNobody(t *testing.T) {
	p := start(t, pgtest.Installed(t), nil, "--lease", "5s", "--drain", "0s")
	j, shop := newJourney(p), newWorkshop(t)
	agent := j.script("Patient", `cat >/dev/null; echo ready; until [ -e `+shop.path("over")+` ]; do sleep 0.1; done; echo '{"summary": "undisturbed"}'`)
	run := j.wake(agent)
	eventually(t, "the agent works", patience, func() bool { return len(j.linesOf(run, 1)) > 0 })
	f := measureFlood(t, p, floodSeconds)
	if !f.isServed() {
		t.Errorf("the owner waited too long: %v", f)
	}
	const most = 45.0 // MB
	if grown := f.after - f.before; grown > most {
		t.Errorf("the server's memory grew by %.0f MB", grown)
	}
	shop.touch(t, "over")
	eventually(t, "the other agent's run ends", patience, func() bool { return j.run(run).Status == "FINISHED" })
	if end := j.run(run); end.Status != "FINISHED" || end.Summary != "undisturbed" || end.attempts() != "SUCCEEDED" {
		t.Errorf("another agent's run: %+v", end)
	}
	startFlood(t, p, floodSeconds)
	o := owner{p, &http.Client{Timeout: patience}}
	for range 20 { // the flood has begun
		if _, err := o.ask(o.staying); err != nil {
			t.Fatal(err)
		}
	}
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// An agent at work does with its run's token whatever it can, for some seconds. The owner is served, another agent's run keeps its lease, and wakes
// are launched.
func TestAFloodByAnAgentHarmsNobodyElse(t *testing.T) {
	o := openOffice(t, "--lease", "5s")
	patient := o.script("Patient", `cat >/dev/null; echo ready; until [ -e `+o.path("over")+` ]; do sleep 0.1; done; echo '{"summary": "undisturbed"}'`)
	run := o.wake(patient)
	eventually(t, "the other agent works", patience, func() bool { return len(o.linesOf(run, 1)) > 0 })
	env := o.astray()
	if f := measureFlood(t, o.program, floodSeconds, env...); !f.isServed() {
		t.Errorf("the owner waited too long: %v", f)
	}
	_, end := startFlood(t, o.program, floodSeconds, env...)
	quick := o.script("Quick", `cat >/dev/null; echo '{"summary": "here"}'`)
	woken := o.wake(quick) // looked at, as the other below, by requests that carry the token: a socket names it later, and may find the line of strangers full
	eventually(t, "a wake during the flood ends", patience, func() bool { return o.run(woken).Status == "FINISHED" })
	if woke := o.run(woken); woke.Summary != "here" {
		t.Errorf("a wake during the flood: %+v", woke)
	}
	end()
	o.touch(t, "over")
	eventually(t, "the other agent's run ends", patience, func() bool { return o.run(run).Status == "FINISHED" })
	if end := o.run(run); end.Status != "FINISHED" || end.Summary != "undisturbed" || end.attempts() != "SUCCEEDED" {
		t.Errorf("another agent's run: %+v", end)
	}
}

// astray makes an agent that works on a task, and gives what a flood needs to be that agent.
func (o office) astray() (env []string) {
	o.t.Helper()
	a := o.worker("Astray")
	o.hold(a)
	task, _ := o.create(map[string]any{"title": "Mine", "assigneeId": a})
	o.wantWake(a, 1, "TASK_ASSIGNED")
	return []string{floodToken + "=" + o.tokenOf(a), floodTask + "=" + task}
}

// BenchmarkAgentFlood is BenchmarkFlood by an agent with the token of its run.
func BenchmarkAgentFlood(b *testing.B) {
	o := openOffice(b)
	env := o.astray()
	for b.Loop() {
		b.Log(measureFlood(b, o.program, 20, env...))
	}
}

// BenchmarkFloodKinds is BenchmarkFlood for each way alone.
func BenchmarkFloodKinds(b *testing.B) {
	p := start(b, pgtest.Folder(b), nil)
	newJourney(p)
	for i, kind := range flooding {
		b.Run(kind.name, func(b *testing.B) {
			b.Setenv("ROUSE_TEST_FLOOD_KIND", strconv.Itoa(i))
			for b.Loop() {
				b.Log(measureFlood(b, p, 4))
			}
		})
	}
}

// BenchmarkFlood prints what a flood does (make bench-flood).
func BenchmarkFlood(b *testing.B) {
	p := start(b, pgtest.Folder(b), nil)
	newJourney(p)
	for b.Loop() {
		f := measureFlood(b, p, 20)
		b.Log(f)
		report(b, map[string]float64{
			"quiet-p99-ms": f.quietStaying.at(99), "flood-p99-ms": f.floodStaying.at(99), "ratio": f.floodStaying.at(99) / f.quietStaying.at(99),
			"new-quiet-p99-ms": f.quietFresh.at(99), "new-flood-p99-ms": f.floodFresh.at(99), "new-ratio": f.floodFresh.at(99) / f.quietFresh.at(99),
			"memory-before-MB": f.before, "memory-after-MB": f.after,
		})
	}
}
