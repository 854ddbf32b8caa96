package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"rouse.dev/rouse/internal/forkchain"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/together"
)

// binary is the built program, without the race detector: with it a start takes eight times the processor time, and tests start
// hundreds. What is concurrent in the program's packages is watched in their own tests; underRaceDetector is for the whole of it.
var binary string

// A program that is built with the race detector waits for a second when it ends, for races that are found at that moment. Each of
// hundreds would; this is enough for one that has nothing left to do.
const raceVariable, raceExit = "GORACE", "atexit_sleep_ms=20"

// raced says that these tests are watched by the race detector.
var raced bool

// watched is the program with the race detector, built when the first test asks for it; watchedTests are those that did.
var (
	watched      = sync.OnceValues(func() (string, error) { return build(binary+"-watched", "-race") })
	watchedTests sync.Map
)

// underRaceDetector lets the race detector watch the programs that t itself starts, if it watches the tests. It is for tests in
// which much happens at once in one program; those that subtests of t start are not watched.
func underRaceDetector(t testing.TB) {
	t.Helper()
	if raced {
		watchedTests.Store(t.Name(), true)
	}
}

// programFor is the program that a test starts.
func programFor(t testing.TB) string {
	t.Helper()
	if _, ok := watchedTests.Load(t.Name()); !ok {
		return binary
	}
	path, err := watched()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build builds the program, without what only a debugger reads.
func build(path string, flags ...string) (string, error) {
	cmd := exec.Command("go", slices.Concat([]string{"build", "-ldflags=-s -w", "-o", path}, flags, []string{"."})...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
}

func TestMain(m *testing.M) {
	forkchain.Enter()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	if secret := os.Getenv(serviceVariable); secret != "" {
		return serveAgent(secret)
	}
	if task := os.Getenv(floodVariable); task != "" {
		return flood(task)
	}
	if os.Getenv(helloVariable) != "" {
		return serveHello()
	}
	if zones := os.Getenv(zonesVariable); zones != "" {
		return withoutZoneFiles(strings.Fields(zones))
	}
	err := os.Setenv(raceVariable, os.Getenv(raceVariable)+" "+raceExit)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "rouse-program-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()     // what is left of it is in the way of nobody
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // agents of other accounts start the program for their tools
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if binary, err = build(filepath.Join(dir, "rouse"), profileFlags()...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := together.Run(atATime); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := pgtest.Leave(); err != nil {
		fmt.Fprintln(os.Stderr, "leave the test database:", err)
		code = max(code, 1)
	}
	return code
}

// atATime is how many tests and scenarios run at a time, unless -parallel says otherwise: nearly all of their time they wait. Those
// that measure, or need the processors, are not among them.
const atATime = 8

// patience bounds every wait of these tests; what is waited for comes much sooner.
const patience = 60 * time.Second

// program is one started rouse.
type program struct {
	t     testing.TB
	cmd   *exec.Cmd
	url   string // of the API
	data  string // its data folder
	owner string // the token that lies in there
	out   *transcript
	log   *transcript
	done  chan struct{}
}

// transcript collects what a program writes, and tells who waits for a line of it.
type transcript struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines chan string // the first ones
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs `rouse serve` on a free port and waits until it is ready.
func start(t testing.TB, dataDir string, env []string, args ...string) *program {
	t.Helper()
	p := launch(t, env, append([]string{"serve", "--addr", "127.0.0.1:0", "--data-dir", dataDir}, args...)...)
	p.ready(dataDir)
	return p
}

// ready waits until the program serves, and reads the token that lies in its data folder.
func (p *program) ready(dataDir string) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case line := <-p.out.lines:
			if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == "API" {
				p.url, p.data = strings.TrimSpace(value), dataDir
				p.owner = tokenIn(p.t, dataDir)
				return
			}
		case <-p.done:
			p.t.Fatalf("the program ended instead of serving:\n%s", p.log)
		case <-deadline:
			p.t.Fatalf("the program is not ready:\n%s", p.log)
		}
	}
}

// tokenIn reads the token of a data folder.
func tokenIn(t testing.TB, dataDir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dataDir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// launch starts the program with arguments; it is killed, if it still runs, when the test is over.
func launch(t testing.TB, env []string, args ...string) *program {
	t.Helper()
	return launchIt(t, exec.Command(programFor(t), args...), env)
}

// launchIt is launch for a command that ends in the program.
func launchIt(t testing.TB, cmd *exec.Cmd, env []string) *program {
	t.Helper()
	p := &program{t: t, cmd: cmd, out: &transcript{lines: make(chan string, 1000)}, log: &transcript{}, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = p.log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		scanner := bufio.NewScanner(io.TeeReader(stdout, p.out))
		for scanner.Scan() {
			select {
			case p.out.lines <- scanner.Text():
			default:
			}
		}
		_ = p.cmd.Wait() // its state is looked at
	}()
	t.Cleanup(func() {
		if strings.Contains(p.log.String(), "DATA RACE") {
			t.Error("a data race")
		}
		if t.Failed() {
			t.Logf("log of %v:\n%s", cmd.Args, p.log)
		}
		if p.alive() {
			p.end(syscall.SIGTERM)
		}
	})
	return p
}

func (p *program) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// end sends a signal and waits for the end; the exit code is -1 for a program that was killed.
func (p *program) end(signal syscall.Signal) int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	return p.wait()
}

func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		p.t.Fatalf("the program did not end:\n%s", p.log)
	}
	return p.cmd.ProcessState.ExitCode()
}

// request sends one operation as the owner of the data folder and decodes data into out; problems of any kind end the test.
func (p *program) request(query string, variables map[string]any, out any) {
	p.t.Helper()
	status, body := p.post(p.owner, query, variables)
	var answer struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK || len(answer.Errors) > 0 {
		p.t.Fatalf("status %d, %v: %s\n%s", status, err, body, query)
	}
	if bytes.Contains(body, []byte(`"userErrors":[{`)) {
		p.t.Fatalf("user errors: %s\n%s", body, query)
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		p.t.Fatalf("%v: %s", err, body)
	}
}

func (p *program) post(token, query string, variables map[string]any) (int, []byte) {
	p.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// message is one of graphql-transport-ws.
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// stream is one subscription on a socket of its own.
type stream struct {
	t    testing.TB
	conn *websocket.Conn
}

// subscribe opens a socket and starts a subscription.
func (p *program) subscribe(token, query string, variables map[string]any) *stream {
	p.t.Helper()
	conn, _, err := websocket.Dial(p.t.Context(), strings.Replace(p.url, "http", "ws", 1), &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.CloseNow() })
	s := &stream{t: p.t, conn: conn}
	init := map[string]any{}
	if token != "" {
		init["Authorization"] = "Bearer " + token
	}
	s.send("", "connection_init", init)
	if m, err := s.next(); err != nil || m.Type != "connection_ack" {
		p.t.Fatalf("connection_init: %+v, %v", m, err)
	}
	s.send("1", "subscribe", map[string]any{"query": query, "variables": variables})
	return s
}

func (s *stream) send(id, kind string, payload any) {
	s.t.Helper()
	raw, err := json.Marshal(payload)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := wsjson.Write(s.t.Context(), s.conn, message{ID: id, Type: kind, Payload: raw}); err != nil {
		s.t.Fatal(err)
	}
}

// next is the next message that is no ping.
func (s *stream) next() (message, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for {
		var m message
		if err := wsjson.Read(ctx, s.conn, &m); err != nil {
			return m, err
		}
		if m.Type != "ping" && m.Type != "pong" {
			return m, nil
		}
	}
}

// data decodes the next item into out; false when the subscription is complete.
func (s *stream) data(out any) bool {
	s.t.Helper()
	m, err := s.next()
	if err != nil {
		s.t.Fatal(err)
	}
	if m.Type == "complete" {
		return false
	}
	var payload struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := json.Unmarshal(m.Payload, &payload); err != nil || m.Type != "next" || len(payload.Errors) > 0 {
		s.t.Fatalf("%s: %s", m.Type, m.Payload)
	}
	if err := json.Unmarshal(payload.Data, out); err != nil {
		s.t.Fatal(err)
	}
	return true
}

// eventually waits for a condition that has no signal of its own.
func eventually(t testing.TB, what string, limit time.Duration, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	const soonest, latest = 10 * time.Millisecond, 160 * time.Millisecond
	for pause := soonest; !condition(); pause = min(2*pause, latest) { // each look is a request, which costs more than the wait
		select {
		case <-deadline.C:
			t.Fatalf("waited %v in vain: %s", limit, what)
		case <-time.After(pause):
		}
	}
}
