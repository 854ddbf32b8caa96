package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"rouse.dev/rouse/internal/hello"
	"rouse.dev/rouse/internal/pgtest"
)

// The API of the built program. Its queries are compared with documents of the same shape, sent to a bare gqlgen server
// in a process of its own; the arrival of events at many subscribers, with that at one.

// helloVariable makes this binary serve internal/hello until its input ends; it prints its address first.
const helloVariable = "ROUSE_TEST_HELLO"

func serveHello() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = fmt.Fprintf(os.Stdout, "http://%s/graphql\n", l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	server := &http.Server{Handler: hello.Handler(), ReadHeaderTimeout: time.Minute}
	fmt.Fprintln(os.Stderr, server.Serve(l))
	return 1
}

// startHello starts the bare server and gives its address and process.
func startHello(b *testing.B) (url string, pid int) {
	b.Helper()
	file, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(file)
	cmd.Env, cmd.Stderr = append(os.Environ(), helloVariable+"=1"), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid
}

// processorTimes is what the processes have spent, and with children what those of the last of them have.
func processorTimes(b *testing.B, pids ...int) (sum time.Duration) {
	b.Helper()
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, f := range fields[11:15] { // its own, and that of children that have ended
			n, err := strconv.Atoi(f)
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}

// postmaster is the process of the program's cluster, and backends are its children.
func databaseProcesses(b *testing.B, folder string) (pids []int) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "postgres", "data", "postmaster.pid"))
	if err != nil {
		found, _ := filepath.Glob(filepath.Join(folder, "postgres", "*", "postmaster.pid"))
		if len(found) == 0 {
			b.Fatal(err)
		}
		if text, err = os.ReadFile(found[0]); err != nil {
			b.Fatal(err)
		}
	}
	first, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		b.Fatal(err)
	}
	pids = []int{postmaster}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if fields[1] == strconv.Itoa(postmaster) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// load is what came of asking the same thing again and again.
type load struct {
	rps    float64
	p50    float64 // ms
	p99    float64 // ms
	cpu    float64 // of the asked process for each request, µs
	length int     // of an answer
}

// ask sends one query over and over by as many clients, each on a connection of its own, for a time.
func askFor(b *testing.B, url, token, query string, variables map[string]any, clients int, length time.Duration, pid int) (l load) {
	b.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	once := func() (int, error) {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err == nil && (resp.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"errors"`))) {
			err = fmt.Errorf("status %d: %s", resp.StatusCode, answer)
		}
		return len(answer), err
	}
	for range 200 { // warm
		if l.length, err = once(); err != nil {
			b.Fatal(err)
		}
	}
	answer := l.length
	l = hammer(b, clients, length, pid, func(int) error { _, err := once(); return err })
	l.length = answer
	return l
}

// hammer lets as many clients do something over and over, each one thing after the other, for a time.
func hammer(b *testing.B, clients int, length time.Duration, pid int, once func(client int) error) (l load) {
	b.Helper()
	var mu sync.Mutex
	var times sample
	var all sync.WaitGroup
	before, began := processorTimes(b, pid), time.Now()
	for client := range clients {
		all.Go(func() {
			var mine sample
			for time.Since(began) < length {
				asked := time.Now()
				if err := once(client); err != nil {
					b.Error(err)
					return
				}
				mine.since(asked)
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, mine...)
		})
	}
	all.Wait()
	took := time.Since(began)
	n := float64(len(times))
	l.rps, l.p50, l.p99 = n/took.Seconds(), times.at(50), times.at(99)
	l.cpu = float64((processorTimes(b, pid) - before).Microseconds()) / n
	return l
}

const (
	pointQuery = `query Point($id: ID!) { run(id: $id) { id status source coalescedCount requestedAt finishedAt summary } }`
	listQuery  = `query List($id: ID!) { workspace(id: $id) { runs(first: 50) { edges { node { id status source coalescedCount requestedAt finishedAt summary agent { id name } } } } } }`
)

// BenchmarkAPIQueries: one run by its id, and a list of 50 with their agents, by 8 clients on connections that stay.
// Baseline: the same shapes from a bare gqlgen server.
func BenchmarkAPIQueries(b *testing.B) {
	folder := filepath.Join(pgtest.Folder(b), "data")
	p := start(b, folder, nil)
	j := newJourney(p)
	db := j.database(folder)
	run := history(b, db, j)
	bare, barePID := startHello(b)
	length := benchTime(b)
	for b.Loop() {
		figures := map[string]float64{}
		for name, query := range map[string]string{"point": pointQuery, "list": listQuery} {
			id := run
			if name == "list" {
				id = j.workspace
			}
			variables := map[string]any{"id": id}
			var ours, theirs, databases, rates, cpus []float64
			var last, lastBare load
			for range 3 { // by turns, since machines are shared
				lastBare = askFor(b, bare, "", query, variables, 8, length, barePID)
				before := processorTimes(b, databaseProcesses(b, folder)...)
				last = askFor(b, p.url, p.owner, query, variables, 8, length, p.cmd.Process.Pid)
				databases = append(databases, float64((processorTimes(b, databaseProcesses(b, folder)...)-before).Microseconds())/(last.rps*length.Seconds()))
				ours, theirs = append(ours, last.cpu), append(theirs, lastBare.cpu)
				rates, cpus = append(rates, last.rps/lastBare.rps), append(cpus, lastBare.cpu/last.cpu)
			}
			figures[name+"-rps/bare"], figures[name+"-bare-cpu/cpu"] = median(rates), median(cpus)
			figures[name+"-rps"], figures[name+"-bare-rps"] = last.rps, lastBare.rps
			figures[name+"-cpu-us"], figures[name+"-bare-cpu-us"], figures[name+"-database-cpu-us"] = median(ours), median(theirs), median(databases)
			figures[name+"-p50-ms"], figures[name+"-p99-ms"], figures[name+"-bare-p99-ms"] = last.p50, last.p99, lastBare.p99
			figures[name+"-bytes"], figures[name+"-bare-bytes"] = float64(last.length), float64(lastBare.length)
		}
		report(b, figures)
	}
}

func median(values []float64) float64 {
	sorted := make(sample, len(values))
	for i, v := range values {
		sorted[i] = time.Duration(v * float64(time.Millisecond)) // at gives milliseconds
	}
	return sorted.at(50)
}

// benchTime is how long each thing is asked; ROUSE_BENCH_SECONDS changes it.
func benchTime(b *testing.B) time.Duration {
	b.Helper()
	seconds := 5
	if text := os.Getenv("ROUSE_BENCH_SECONDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		seconds = n
	}
	return time.Duration(seconds) * time.Second
}

// history gives the workspace 50 ended runs of one agent, and returns one of them.
func history(b *testing.B, db *sql.DB, j journey) (run string) {
	b.Helper()
	agent := j.agent("worker", map[string]any{"echo": map[string]any{}})
	for range 50 {
		run = j.wake(agent)
		waitFor(b, db, `SELECT status = 'FINISHED' FROM runs WHERE id = $1`, run)
	}
	return run
}

const followEvents = `subscription Follow($id: ID!, $after: StreamCursor) { runEvents(runId: $id, after: $after) { ... on RunEvent { cursor kind attempt data occurredAt } } }`

// BenchmarkAPIFanOut: an event of a run, from the commit that stores it to each of its subscribers, 1 and 1,000 of them on
// 200 sockets. Baseline: the one.
func BenchmarkAPIFanOut(b *testing.B) {
	for b.Loop() {
		one := fanOut(b, 1, 1)
		many := fanOut(b, 200, 5)
		report(b, map[string]float64{
			"one-p50-ms": one.arrivals.at(50), "one-p99-ms": one.arrivals.at(99), "thousand-p50-ms": many.arrivals.at(50), "thousand-p99-ms": many.arrivals.at(99),
			"p99-ratio": many.arrivals.at(99) / one.arrivals.at(99), "one-cpu-us": one.cpu, "thousand-cpu-us-each": many.cpu / 1000, "thousand-database-us-each": many.database / 1000,
			"one-database-us": one.database,
		})
	}
}

// fan is what a series of events came to.
type fan struct {
	arrivals      sample  // from before the commit to a subscriber
	cpu, database float64 // of the program and of its database for each event, µs
}

func fanOut(b *testing.B, sockets, each int) (f fan) {
	b.Helper()
	const events = 100
	folder := filepath.Join(pgtest.Folder(b), "data")
	p := start(b, folder, nil)
	j := newJourney(p)
	db := j.database(folder)
	run := j.wake(j.script("sleeper", "sleep 600"))
	waitFor(b, db, `SELECT status = 'CLAIMED' AND session_id IS NOT NULL OR started_at IS NOT NULL FROM runs WHERE id = $1`, run)
	var mu sync.Mutex
	var ready, all sync.WaitGroup
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	for range sockets {
		s := p.subscribe(p.owner, followEvents, map[string]any{"id": run})
		for n := 2; n <= each; n++ {
			s.send(strconv.Itoa(n), "subscribe", map[string]any{"query": followEvents, "variables": map[string]any{"id": run}})
		}
		ready.Add(each)
		all.Go(func() { f.listen(ctx, b, s.conn, &mu, each, events, ready.Done) })
	}
	storeEvent(b, db, run, j.workspace, 0)
	ready.Wait()
	databases := databaseProcesses(b, folder)
	cpu, database := processorTimes(b, p.cmd.Process.Pid), processorTimes(b, databases...)
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for n := 1; n <= events; n++ {
		<-pace.C
		storeEvent(b, db, run, j.workspace, time.Now().UnixNano())
	}
	all.Wait()
	f.cpu = float64((processorTimes(b, p.cmd.Process.Pid) - cpu).Microseconds()) / events
	f.database = float64((processorTimes(b, databases...) - database).Microseconds()) / events
	cancel()
	p.end(syscall.SIGTERM)
	return f
}

// listen takes events of as many subscriptions on one socket, and their ages.
func (f *fan) listen(ctx context.Context, b *testing.B, conn *websocket.Conn, mu *sync.Mutex, each, events int, ready func()) {
	conn.SetReadLimit(1 << 20)
	var mine sample
	mark := []byte(`"sent":`)
	for left := each * events; left > 0; {
		_, data, err := conn.Read(ctx)
		if err != nil {
			b.Errorf("%d events did not come: %v", left, err)
			return
		}
		_, rest, found := bytes.Cut(data, mark)
		if !found { // an event of the run's start, or a ping
			continue
		}
		end := bytes.IndexAny(rest, ",}")
		sent, err := strconv.ParseInt(strings.Trim(string(rest[:end]), `" `), 10, 64)
		if err != nil {
			b.Errorf("%s: %v", data, err)
			return
		}
		if sent == 0 {
			ready()
			continue
		}
		left--
		mine.since(time.Unix(0, sent))
	}
	mu.Lock()
	defer mu.Unlock()
	f.arrivals = append(f.arrivals, mine...)
}

// storeEvent stores an event of the run and signals it, as a transition does.
func storeEvent(b *testing.B, db *sql.DB, run, workspace string, sent int64) {
	b.Helper()
	tx, err := db.BeginTx(b.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(b.Context(), `WITH r AS (UPDATE runs SET event_seq = event_seq + 1 WHERE id = $1 RETURNING event_seq)
INSERT INTO run_events (seq, kind, attempt, data, workspace_id, run_id) SELECT event_seq, 'PROGRESS', 1, jsonb_build_object('sent', $3::text), $2, $1 FROM r`, run, workspace, strconv.FormatInt(sent, 10))
	}
	if err == nil {
		_, err = tx.ExecContext(b.Context(), `SELECT pg_notify('rouse_event', $1)`, "prc_bench;run="+run)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		b.Fatal(err)
	}
}
