package scheduler

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// ThisProcess describes this process as the owner of leases, so that another process of this host can tell whether it is
// dead. Where the system tells no boot id or start time they stay empty, and its leases end by running out alone.
func ThisProcess() (store.Owner, error) {
	host, err := os.Hostname()
	if err != nil {
		return store.Owner{}, fmt.Errorf("read the name of this host: %w", err)
	}
	started, _ := startTime(os.Getpid())
	return store.Owner{ID: xid.New("prc"), Host: host, BootID: bootID(), PID: os.Getpid(), Started: started}, nil
}

// bootID names this boot and this process-id namespace, within which a process id means one process; "" where it cannot
// be known.
func bootID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}

// alive reports whether the process that had this id and started then is still there. A zombie is not; when in doubt it
// is.
func alive(pid int, started int64) bool {
	if pid <= 0 {
		return true // not known
	}
	now, err := startTime(pid)
	switch {
	case err == nil:
		return started == 0 || now == started
	case errors.Is(err, errZombie):
		return false
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

var errZombie = errors.New("the process has ended and waits for its parent")

// startTime is when the process started, in clock ticks since boot.
func startTime(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read process %d: %w", pid, err)
	}
	return parseStat(raw)
}

// parseStat reads state and start time from proc_pid_stat(5). The command in parentheses may hold anything, also
// parentheses.
func parseStat(raw []byte) (int64, error) {
	const state, started = 0, 19 // among the fields after the command
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) <= started {
		return 0, fmt.Errorf("process status has %d fields", len(fields))
	}
	if fields[state] == "Z" || fields[state] == "X" {
		return 0, errZombie
	}
	ticks, err := strconv.ParseInt(fields[started], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("start time of the process: %w", err)
	}
	return ticks, nil
}
