// Package proc reads what the system tells of processes: whether one still lives, and whether it is the one that had its
// id before.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Stat is what proc_pid_stat(5) tells of a process.
type Stat struct {
	State                  byte
	Parent, Group, Session int
	Started                uint64 // in clock ticks since boot
}

// Lives is false for a process that only waits to be reaped.
func (s Stat) Lives() bool { return s.State != 'Z' && s.State != 'X' }

// ReadStat asks the system about a process. It fails where there is no such process, and on systems without /proc.
func ReadStat(pid int) (Stat, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return ParseStat(raw)
}

// ParseStat reads the system's line about a process. It skips the command in parentheses, which may hold anything, also
// spaces and parentheses.
func ParseStat(raw []byte) (Stat, error) {
	const state, parent, group, session, started = 0, 1, 2, 3, 19 // among the fields after the command
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) <= started {
		return Stat{}, fmt.Errorf("the status of a process has %d fields after its command, want more than %d", len(fields), started)
	}
	s := Stat{State: fields[state][0]}
	var errs [4]error
	s.Parent, errs[0] = strconv.Atoi(fields[parent])
	s.Group, errs[1] = strconv.Atoi(fields[group])
	s.Session, errs[2] = strconv.Atoi(fields[session])
	s.Started, errs[3] = strconv.ParseUint(fields[started], 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return Stat{}, fmt.Errorf("read the status of a process: %w", err)
	}
	return s, nil
}

// Started is when a process started, in clock ticks since boot; 0 where that cannot be known.
func Started(pid int) uint64 {
	stat, _ := ReadStat(pid) // 0 says so
	return stat.Started
}

// Lives says whether the process that had this id and started then is still there; started is 0 where that is not known. A
// zombie is not there. In doubt it is.
func Lives(pid int, started uint64) bool {
	if pid <= 0 {
		return true // not known
	}
	stat, err := ReadStat(pid)
	if err != nil {
		return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	return stat.Lives() && (started == 0 || stat.Started == started)
}

// BootID names this boot and this process-id namespace, within which an id means one process; "" where it cannot be known.
func BootID() string {
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
