package executor

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/proc"
)

func TestNothingOutlivesAKilledServer(t *testing.T) {
	alive, gone := fifo(t)
	// A leader, a child and a grandchild that ignore what can be ignored, all holding the pipe.
	script := fmt.Sprintf(`exec 9>%q; trap '' TERM HUP; (trap '' TERM HUP; (sleep 1000 & wait) & echo grandchild >&9; wait) & wait`, alive)
	server, lines := startServer(t, script)
	if !lines.Scan() {
		t.Fatal("the server reported nothing")
	}
	waitForText(t, alive, "grandchild")
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // killed, as wanted
	gone()
}

func TestALeaderDiesWithItsServerEvenWithoutAWatchdog(t *testing.T) {
	alive, gone := fifo(t)
	server, lines := startServer(t, fmt.Sprintf(`exec 9>%q; trap '' TERM HUP; echo ready >&9; exec sleep 1000`, alive))
	if !lines.Scan() {
		t.Fatal("the server reported nothing")
	}
	var pgid, start, watchdog int
	var launch string
	if _, err := fmt.Sscan(lines.Text(), &pgid, &start, &launch, &watchdog); err != nil {
		t.Fatal(err)
	}
	waitForText(t, alive, "ready")
	if err := syscall.Kill(watchdog, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // killed, as wanted
	gone()
}

func TestAMarkedLeftoverIsEndedAtTheNextStart(t *testing.T) {
	alive, gone := fifo(t)
	// It leaves its group, so that the parent-death signal does not meet it.
	script := fmt.Sprintf(`exec 9>%q; setsid sh -c 'trap "" TERM; echo free >&9; sleep 1000' & wait`, alive)
	server, lines := startServer(t, script)
	if !lines.Scan() {
		t.Fatal("the server reported nothing")
	}
	var g ProcessGroup
	if _, err := fmt.Sscan(lines.Text(), &g.PGID, &g.StartTime, &g.Launch); err != nil {
		t.Fatal(err)
	}
	g.Host, g.BootID = here("")
	g.Launch = g.Launch[:strings.LastIndexByte(g.Launch, '/')+1] // whoever looks later knows the attempt alone,
	g.PGID, g.StartTime = 0, 0                                   // not even the group, if the server died before it was recorded
	waitForText(t, alive, "free")
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // killed, as wanted
	// the watchdog of the killed server may see it first: whoever it was, it has ended
	if _, err := EndLeftover("", g); err != nil {
		t.Fatal(err)
	}
	gone()
	if ended, err := EndLeftover("", g); ended || err != nil {
		t.Fatalf("a second time: got %v, %v", ended, err)
	}
}

func TestWhatAnAttemptStartedEndsWithIt(t *testing.T) {
	c := newCommand(t, Options{})
	alive, gone := fifo(t)
	script := `setsid sh -c 'trap "" TERM HUP; exec 9>"$ALIVE" >/dev/null 2>&1; echo free >&9; sleep 1000' & read -r line <"$ALIVE"; echo "$line"`
	result, err := c.Run(t.Context(), shell(script, Variable{"ALIVE", alive}), &recorder{})
	if err != nil || result.Survivors != nil {
		t.Fatalf("got %v, %+v", err, result)
	}
	gone()
}

func TestEndLeftoverTouchesNoStranger(t *testing.T) {
	stranger := exec.Command("sleep", "1000")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	real := identify(stranger.Process.Pid, "lch_other", "")
	for _, test := range []struct {
		name   string
		change func(*ProcessGroup)
	}{
		{"another host", func(g *ProcessGroup) { g.Host = "elsewhere" }},
		{"another installation", func(g *ProcessGroup) { g.BootID += " 7-16384" }},
		{"another boot or container", func(g *ProcessGroup) { g.BootID = "before" }},
		{"the id was reused", func(g *ProcessGroup) { g.StartTime-- }},
		{"the start is not known", func(g *ProcessGroup) { g.StartTime = 0 }},
		{"no group", func(g *ProcessGroup) { g.PGID = 0 }},
		{"the first process", func(g *ProcessGroup) { g.PGID, g.StartTime = 1, proc.Started(1) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := real
			test.change(&g)
			if ended, err := EndLeftover("", g); ended || err != nil {
				t.Fatalf("got %v, %v", ended, err)
			}
			if stat, err := proc.ReadStat(stranger.Process.Pid); err != nil || !stat.Lives() {
				t.Fatal("the stranger was hit")
			}
		})
	}
	if ended, err := EndLeftover("", real); !ended || err != nil {
		t.Fatalf("the recorded group itself: got %v, %v", ended, err)
	}
}

func TestAWatchdogThatIsKilledIsReplaced(t *testing.T) {
	c := newCommand(t, Options{})
	alive, gone := fifo(t)
	ctx, cancel := context.WithCancel(context.Background())
	sink := &recorder{onLine: func(text string) {
		c.watchdog.mu.Lock()
		old := c.watchdog.process.Pid
		_ = syscall.Kill(old, syscall.SIGKILL)
		_, _ = c.watchdog.process.Wait()
		c.watchdog.mu.Unlock()
		if _, err := c.Run(context.Background(), request([]string{"true"}), &recorder{}); err != nil {
			t.Errorf("a run after the watchdog's end: %v", err)
		}
		c.watchdog.mu.Lock()
		if c.watchdog.process == nil || c.watchdog.process.Pid == old || len(c.watchdog.live) != 1 {
			t.Error("the watchdog was not replaced, or lost the live group")
		}
		c.watchdog.mu.Unlock()
		cancel()
	}}
	_, err := c.Run(ctx, shell(`exec 9>"$ALIVE"; echo ready; sleep 1000`, Variable{"ALIVE", alive}), sink)
	gone()
	_ = failureOf(t, err)
}

// startServer runs this test program as a server with one command.
func startServer(t *testing.T, script string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	server := exec.Command(os.Args[0])
	server.Env = append(append(os.Environ(), serverVariable+"="+script, "EXECUTOR_TEST_ROOT="+t.TempDir()), env...)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill() })
	return server, bufio.NewScanner(out)
}

// waitForText reads the named pipe until the text came.
func waitForText(t *testing.T, path, want string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if strings.Contains(lines.Text(), want) {
			return
		}
	}
	t.Fatalf("%q never came", want)
}

// TestAServerThatHangsHasItsAgentsEndedBeforeTheirLeasesEnd: it is stopped, as a machine that swaps or a debugger does.
func TestAServerThatHangsHasItsAgentsEndedBeforeTheirLeasesEnd(t *testing.T) {
	alive, gone := fifo(t)
	server, lines := startServer(t, fmt.Sprintf(`exec 9>%q; trap '' TERM HUP; (setsid sleep 1000 &); echo ready >&9; sleep 1000`, alive), leaseVariable+"=3s")
	if !lines.Scan() {
		t.Fatal("the server reported nothing")
	}
	waitForText(t, alive, "ready")
	if err := server.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	gone()
	if stat, err := proc.ReadStat(server.Process.Pid); err != nil || stat.State != 'T' {
		t.Errorf("the server is %q", stat.State)
	}
}

// TestALeaseThatIsExtendedEndsNobody: the watchdog is told of each end anew, a new watchdog too.
func TestALeaseThatIsExtendedEndsNobody(t *testing.T) {
	c := newCommand(t, Options{})
	lease := NewLease(time.Now().Add(time.Hour))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := shell(`echo ready; sleep 1000`)
	req.Lease = lease
	_, err := c.Run(ctx, req, &recorder{onLine: func(string) {
		c.watchdog.mu.Lock()
		_ = c.watchdog.process.Kill()
		_, _ = c.watchdog.process.Wait()
		c.watchdog.mu.Unlock()
		lease.Extend(time.Now().Add(2 * time.Hour)) // told to a new one
		lease.Extend(time.Now().Add(-time.Second))  // and over
	}})
	if failure := failureOf(t, err); !strings.Contains(failure.Message, "signal 9") {
		t.Errorf("got %+v", failure)
	}
}
