package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ordinaryVariable says to the test program that it runs as an ordinary user, and what it must find.
const ordinaryVariable = "EXECUTOR_TEST_ORDINARY"

// escapes are what agents do, by accident or not, to live longer than their attempt. $SELF is a program that can be a chain.
var escapes = []struct{ name, script string }{
	{"a process in the background", `sleep 1000 & echo on`},
	{"one in a session of its own", `setsid sleep 1000 & echo on`},
	{"one without the mark", `env -i setsid sleep 1000 & echo on`},
	{"one that was forked twice, without the mark", `(env -i setsid sh -c 'sleep 1000 & exit' &) ; echo on`},
	{"one that is called as the database server", `cp "$(command -v sleep)" "${SELF%/*}/postgres"; env -i setsid "${SELF%/*}/postgres" 1000 & echo on`},
	{"a chain that forks and exits", `"$SELF" fork-chain same & echo on`},
	{"a chain in a session of its own, without the mark", `env -i setsid "$SELF" fork-chain same & echo on`},
	{"a chain that opens a session with each step", `"$SELF" fork-chain setsid & echo on`},
	{"a chain that opens a session with each step, without the mark", `env -i "$SELF" fork-chain setsid & echo on`},
}

// ends are how the attempt of a script ends.
var ends = []struct {
	name string
	then string
	code string
}{
	{"its leader ends", ``, ""},
	{"its time is up", `; sleep 1000`, "TIMEOUT"},
}

func TestNothingOfAnAttemptOutlivesIt(t *testing.T) {
	self := selfCopy(t)
	means := map[string]bool{"by adoption": true}
	if openCgroups().dir != "" {
		means["in a cgroup"] = false
	} else if os.Getenv(ordinaryVariable) == "cgroup" {
		t.Fatalf("there are no cgroups: %s", openCgroups().why)
	}
	for kind, without := range means {
		for _, escape := range escapes {
			for _, end := range ends {
				t.Run(kind+"/"+escape.name+", when "+end.name, func(t *testing.T) {
					c := newCommand(t, Options{NoCgroups: without, Drain: 50 * time.Millisecond})
					alive, gone := fifo(t)
					req := shell(`exec 9>"$ALIVE"; `+escape.script+end.then, Variable{"ALIVE", alive}, Variable{"SELF", self})
					req.Spec.Command.Timeout, req.Spec.Command.Grace = time.Minute, 0
					if end.code != "" {
						req.Spec.Command.Timeout = 200 * time.Millisecond
					}
					result, err := c.Run(t.Context(), req, &recorder{})
					gone()
					if end.code == "" && err != nil || end.code != "" && string(failureOf(t, err).Code) != end.code || result.Survivors != nil {
						t.Fatalf("got %v, %+v", err, result)
					}
				})
			}
		}
	}
}

// TestAnAttemptThatLivesIsNotTouchedByAnotherOnesEnd: orphans are taken for those of whoever has ended.
func TestAnAttemptThatLivesIsNotTouchedByAnotherOnesEnd(t *testing.T) {
	for name, without := range map[string]bool{"by adoption": true, "as it comes": false} {
		t.Run(name, func(t *testing.T) {
			c := newCommand(t, Options{NoCgroups: without})
			told := make(chan string, 8)
			sink := &recorder{onLine: func(text string) { told <- text }}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			// It leaves an orphan, and asks it for a sign of life after the other's end.
			path, _ := fifo(t)
			go func() {
				req := shell(`(env -i setsid sh -c 'read -r x <"$1"; echo "orphan $x"' - "$FIFO" &); echo ready; sleep 1000`, Variable{"FIFO", path})
				req.RunID = "run_2"
				_, err := c.Run(ctx, req, sink)
				ended <- err
			}()
			<-told
			if _, err := c.Run(t.Context(), shell(`env -i setsid sleep 1000 & echo on`), &recorder{}); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("lives\n"), 0); err != nil {
				t.Fatal(err)
			}
			if got := <-told; got != "orphan lives" {
				t.Errorf("got %q", got)
			}
			stop()
			if err := <-ended; err != nil {
				t.Log("it was stopped:", err)
			}
		})
	}
}

// TestNothingOutlivesAKilledServerInACgroup: also what has left the group and the mark behind.
func TestNothingOutlivesAKilledServerInACgroup(t *testing.T) {
	if why := openCgroups().why; why != "" {
		t.Skip("this machine has none: " + why)
	}
	self := selfCopy(t)
	for _, escape := range escapes {
		t.Run(escape.name, func(t *testing.T) {
			alive, gone := fifo(t)
			server, lines := startServer(t, fmt.Sprintf(`exec 9>%q; SELF=%q; export SELF; %s >&9; sleep 1000`, alive, self, escape.script))
			if !lines.Scan() {
				t.Fatal("the server reported nothing")
			}
			waitForText(t, alive, "on")
			if err := server.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = server.Wait() // killed, as wanted
			gone()
			if err := EndOrphanedCgroups(""); err != nil {
				t.Error(err)
			}
			if left := cgroupsOf(t, server.Process.Pid); len(left) > 0 {
				t.Errorf("there are left %v", left)
			}
		})
	}
}

// TestCgroupsOfADeadServerAreEndedAtTheNextStart: also without the watchdog, and those of living ones are not.
func TestCgroupsOfADeadServerAreEndedAtTheNextStart(t *testing.T) {
	if why := openCgroups().why; why != "" {
		t.Skip("this machine has none: " + why)
	}
	c := newCommand(t, Options{})
	live := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, shell(`echo ready; sleep 1000`), &recorder{onLine: func(string) { close(live) }})
		ended <- err
	}()
	<-live
	alive, gone := fifo(t)
	server, lines := startServer(t, fmt.Sprintf(`exec 9>%q; env -i setsid sleep 1000 & echo on >&9; sleep 1000`, alive))
	var pgid, start, watchdog int
	var launch string
	if !lines.Scan() {
		t.Fatal("the server reported nothing")
	}
	if _, err := fmt.Sscan(lines.Text(), &pgid, &start, &launch, &watchdog); err != nil {
		t.Fatal(err)
	}
	waitForText(t, alive, "on")
	if err := errors.Join(syscall.Kill(watchdog, syscall.SIGKILL), server.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // killed, as wanted
	if left := cgroupsOf(t, server.Process.Pid); len(left) != 1 {
		t.Fatalf("got %v, want the cgroup of the dead server", left)
	}
	if err := EndOrphanedCgroups(""); err != nil {
		t.Fatal(err)
	}
	gone()
	if left := cgroupsOf(t, server.Process.Pid); len(left) > 0 {
		t.Errorf("there are left %v", left)
	}
	if len(cgroupsOf(t, os.Getpid())) == 0 {
		t.Error("the cgroup of a living server was removed")
	}
	stop()
	_ = failureOf(t, <-ended)
}

// cgroupsOf lists the cgroups that a process made.
func cgroupsOf(t *testing.T, pid int) (found []string) {
	t.Helper()
	_, point, err := cgroupMount("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(point, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), cgroupPrefix) && strings.Contains(entry.Name(), fmt.Sprintf("~%d~", pid)) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestAsAnOrdinaryUser runs what matters to one again as such, with a cgroup of its own and without.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // this is one
	}
	for _, kind := range []string{"cgroup", "none"} {
		t.Run(kind, func(t *testing.T) {
			nobody := &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{}}
			self := selfCopy(t)
			folder := filepath.Dir(self)
			cmd := exec.Command(self, "-test.run", "^(TestNothingOfAnAttemptOutlivesIt|TestAnAttemptThatLivesIsNotTouchedByAnotherOnesEnd|TestWhatAnAgentMayNot)$", "-test.timeout", "5m")
			cmd.Dir = "/"
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "TMPDIR=" + folder, ordinaryVariable + "=" + kind}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody, Setsid: true}
			if kind == "cgroup" {
				if why := openCgroups().why; why != "" {
					t.Skip("this machine has none: " + why)
				}
				home := lentCgroup(t, nobody)
				defer home.Close() // a handle only
				cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(home.Fd())
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// lentCgroup makes a cgroup that belongs to an account, as systemd lends one.
func lentCgroup(t *testing.T, to *syscall.Credential) *os.File {
	t.Helper()
	made := &cgroup{filepath.Join(openCgroups().dir, fmt.Sprintf("rouse-test-%d", os.Getpid()))}
	if err := os.Mkdir(made.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.end(time.Now().Add(endLimit)); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		if err := os.Chown(filepath.Join(made.dir, name), int(to.Uid), int(to.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	handle, err := made.open()
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

// selfCopy is this test program where every account may run it.
func selfCopy(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "rouse-executor-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close() // it was only read
	to, err := os.OpenFile(filepath.Join(folder, "program"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}

// TestWhatAnAgentMayNot is what is taken from every agent unless it is switched off.
func TestWhatAnAgentMayNot(t *testing.T) {
	status := `grep -E '^NoNewPrivs' /proc/self/status; cat /proc/self/oom_score_adj`
	own := strings.TrimSpace(textOf("/proc/self/oom_score_adj"))
	for _, test := range []struct {
		name string
		o    Options
		want string
	}{
		{"nothing raises its rights", Options{}, "STDOUT NoNewPrivs:\t1\nSTDOUT " + own},
		{"unless that is allowed", Options{NewPrivileges: true}, "STDOUT NoNewPrivs:\t0\nSTDOUT " + own},
		{"the kernel takes it first", Options{OOMScore: 700}, "STDOUT NoNewPrivs:\t1\nSTDOUT 700"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sink := &recorder{}
			if _, err := newCommand(t, test.o).Run(t.Context(), shell(status), sink); err != nil || sink.text() != test.want {
				t.Errorf("got %q, %v, want %q", sink.text(), err, test.want)
			}
		})
	}
	t.Run("its processes are counted", func(t *testing.T) {
		o := Options{Processes: 20, NoCgroups: true}
		if os.Geteuid() == 0 { // whom no limit holds
			o.Credential = &syscall.Credential{Uid: 3999999, Gid: 3999999}
		}
		sink := &recorder{}
		script := `i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; echo all`
		req := shell(script)
		req.Spec.Command.WorkingDirectory = "/"
		result, _ := newCommand(t, o).Run(t.Context(), req, sink)
		if strings.Contains(sink.text(), "all") || !strings.Contains(strings.ToLower(sink.text()), "fork") || result.Survivors != nil {
			t.Errorf("got %q, %+v", sink.text(), result)
		}
	})
}

// TestAnAgentGetsNoHandleThatTheServerWasStartedWith: a service manager's or a shell's, that it opened with rights of its own.
func TestAnAgentGetsNoHandleThatTheServerWasStartedWith(t *testing.T) {
	inherited, err := unix.Open("/proc/self/status", unix.O_RDONLY, 0) // without O_CLOEXEC, as if it had come from outside
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited) //nolint:errcheck // a handle only
	sink := &recorder{}
	script := fmt.Sprintf(`if [ -e /proc/$$/fd/%d ]; then echo open; else echo closed; fi`, inherited)
	if _, err := newCommand(t, Options{}).Run(t.Context(), shell(script), sink); err != nil || sink.text() != "STDOUT closed" {
		t.Errorf("got %q, %v", sink.text(), err)
	}
}
