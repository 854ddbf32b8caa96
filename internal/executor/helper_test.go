//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/forkchain"
)

// serverVariable makes the test program a server that is to be killed: see TestNothingOutlivesAKilledServer.
const serverVariable = "EXECUTOR_TEST_SERVER"

// leaseVariable is how long the lease of such a server's command is.
const leaseVariable = "EXECUTOR_TEST_LEASE"

func TestMain(m *testing.M) {
	forkchain.Enter()
	if plan := os.Getenv(copiesVariable); plan != "" {
		serveCopies(plan)
		return
	}
	if script := os.Getenv(serverVariable); script != "" {
		serve(script)
		return
	}
	goleak.VerifyTestMain(m)
}

// serve runs one command and reports its group on stdout, as a server would store it.
func serve(script string) {
	c := NewCommand(Options{WorkRoot: os.Getenv("EXECUTOR_TEST_ROOT")})
	sink := &recorder{onProcess: func(g ProcessGroup) error {
		_, err := fmt.Printf("%d %d %s %d\n", g.PGID, g.StartTime, g.Launch, c.watchdog.process.Pid)
		return err
	}}
	req := shell(script)
	if period, err := time.ParseDuration(os.Getenv(leaseVariable)); err == nil {
		req.Lease = NewLease(time.Now().Add(period))
	}
	_, err := c.Run(context.Background(), req, sink)
	fmt.Println("ended", err)
}

// recorder is a Sink that keeps everything and tells about lines as they come.
type recorder struct {
	mu        sync.Mutex
	groups    []ProcessGroup
	sessions  []string
	lines     []string // "STDOUT text"
	steps     []map[string]any
	copies    []domain.WorkingCopy
	onProcess func(ProcessGroup) error
	onLine    func(text string)
	onSession func()
}

func (r *recorder) Process(g ProcessGroup) error {
	r.groups = append(r.groups, g)
	if r.onProcess != nil {
		return r.onProcess(g)
	}
	return nil
}

func (r *recorder) Session(id string) error {
	r.sessions = append(r.sessions, id)
	if r.onSession != nil {
		r.onSession()
	}
	return nil
}

func (r *recorder) WorkingCopy(w domain.WorkingCopy) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.copies = append(r.copies, w)
	return nil
}

func (r *recorder) Line(stream domain.LogStream, text string) {
	r.mu.Lock()
	r.lines = append(r.lines, string(stream)+" "+text)
	r.mu.Unlock()
	if r.onLine != nil {
		r.onLine(text)
	}
}

func (r *recorder) Progress(step map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, step)
}

func (r *recorder) text() string { return strings.Join(r.lines, "\n") }

// newCommand makes an executor for a test and closes it after.
func newCommand(t testing.TB, options Options) *Command {
	t.Helper()
	if options.WorkRoot == "" {
		options.WorkRoot = t.TempDir()
	}
	c := NewCommand(options)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// shell is a request that runs a script.
func shell(script string, variables ...Variable) Request {
	return request([]string{"/bin/sh", "-c", script}, variables...)
}

func request(argv []string, variables ...Variable) Request {
	return Request{
		RunID: "run_1", AgentID: "agt_1", WorkspaceID: "wsp_1", Attempt: 1, Prompt: "the prompt\n", Environment: variables,
		Spec: domain.ExecutorSpec{Command: &domain.CommandSpec{Argv: argv, Timeout: time.Minute, Grace: 10 * time.Second}},
	}
}

func failureOf(t testing.TB, err error) *Failure {
	t.Helper()
	var failure *Failure
	if !errors.As(err, &failure) {
		t.Fatalf("got error %v, want a *Failure", err)
	}
	return failure
}

// fifo makes a named pipe. Whoever opens it for writing holds it until they end, so its end of file is the moment the
// last of them is gone: no polling, no sleeping.
func fifo(t testing.TB) (path string, gone func() string) {
	t.Helper()
	path = t.TempDir() + "/alive"
	if err := mkfifo(path); err != nil {
		t.Fatal(err)
	}
	// Opened for reading and writing first, so that nobody waits for a partner.
	keep, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	read, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keep.Close(); _ = read.Close() })
	return path, func() string {
		_ = keep.Close()
		_ = read.SetReadDeadline(time.Now().Add(time.Minute))
		var all []byte
		buf := make([]byte, 4096)
		for {
			n, err := read.Read(buf)
			all = append(all, buf[:n]...)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("a process still lives: it holds the pipe after %q", all)
			}
			if err != nil {
				return string(all)
			}
		}
	}
}
