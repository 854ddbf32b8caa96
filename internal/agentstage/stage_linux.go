package agentstage

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Self is the path with which a program starts itself as the stage, also when its file has been replaced since.
func Self() (string, error) { return "/proc/self/exe", nil }

// enter carries out the order, and does not return.
func enter() {
	runtime.LockOSThread() // what is changed is the thread's, which becomes the program
	step, err := "close handles", closeOnExec()
	if err == nil {
		step, err = carryOut()
	}
	errno := syscall.EIO
	if known := syscall.Errno(0); errors.As(err, &known) {
		errno = known
	}
	report := os.NewFile(reportHandle, "report")
	_ = json.NewEncoder(report).Encode(Report{step, errno}) // who would read it is gone
	os.Exit(127)
}

// closeOnExec keeps all handles but the first three from the agent: also those that the server itself was started with, which may be of
// files and locks that the agent's account could not open.
func closeOnExec() error {
	err := unix.CloseRange(orderHandle, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) { // a kernel before 5.11, or a filter of system calls that does not know it
		return err
	}
	handles, err := os.ReadDir("/proc/self/fd")
	for _, handle := range handles {
		if fd, err := strconv.Atoi(handle.Name()); err == nil && fd >= orderHandle {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

func carryOut() (step string, err error) {
	var o Order
	in := os.NewFile(orderHandle, "order")
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return "read the order", err
	}
	_ = in.Close() // it was only read
	steps := []struct {
		name string
		do   func() error
	}{
		{"set oom_score_adj", o.setOOMScore},
		{"show the account in the list of users", o.showAccount},
		{"limit the processes", o.limit},
		{"take the terminal", o.takeTerminal},
		{"become the account", o.drop},
		{"give up new privileges", o.restrict},
		{"end with the server", o.follow},
		{"chdir", func() error { return syscall.Chdir(o.Dir) }},
		{"exec", func() error { return syscall.Exec(o.Program, o.Argv, o.Env) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return s.name, err
		}
	}
	return "", nil
}

// setOOMScore makes the kernel end this process before others when memory runs out. It only ever raises the score.
func (o Order) setOOMScore() error {
	if o.OOMScore == 0 {
		return nil
	}
	const file = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if now, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || now >= o.OOMScore {
		return err
	}
	return os.WriteFile(file, []byte(strconv.Itoa(o.OOMScore)), 0)
}

func (o Order) limit() error {
	if o.Processes == 0 {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return err
	}
	most := min(o.Processes, now.Max)
	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most})
}

// takeTerminal makes the standard input the terminal of this session, and the account's.
func (o Order) takeTerminal() error {
	if !o.ForegroundTTY {
		return nil
	}
	if o.Drop {
		if err := unix.Fchown(0, int(o.UID), int(o.GID)); err != nil {
			return err
		}
	}
	return unix.IoctlSetInt(0, unix.TIOCSCTTY, 0)
}

func (o Order) drop() error {
	if !o.Drop {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(int(o.GID), int(o.GID), int(o.GID)); err != nil {
		return err
	}
	return syscall.Setresuid(int(o.UID), int(o.UID), int(o.UID))
}

func (o Order) restrict() error {
	if o.NoNewPrivs {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	if o.Subreaper {
		return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	return nil
}

// follow lets the kernel end this process with the thread that started it. The change of accounts has taken that away.
func (o Order) follow() error {
	if o.Parent == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() != o.Parent {
		return syscall.ESRCH // it has ended meanwhile
	}
	return nil
}
