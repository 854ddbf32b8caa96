package executor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rouse.dev/rouse/internal/proc"
)

// Where attempts have no cgroups, every agent's first process takes in what its descendants leave behind (a subreaper), and
// this process what an agent leaves. So the children that this process has and did not start are of agents that have ended.

// emptyLooks is how often in a row nothing may be seen before it is believed: a chain that forks and exits is between two
// looks now and then.
const emptyLooks = 5

// adopt makes this process the one that takes in orphans of its agents.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// endOrphans ends and reaps the children of this process that agents left, and those that they leave, until there are none.
func endOrphans(launch string, deadline time.Time) error {
	for looks := 0; looks < emptyLooks; looks++ {
		orphans, err := endOrphansOnce(launch)
		if err != nil {
			return err
		}
		if len(orphans) > 0 {
			looks = -1
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v, which an agent left, are still there %s after they were killed", orphans, endLimit)
		}
	}
	return nil
}

// endOrphansOnce is one look. No agent is started or reaped during that time, so that no process id gets another owner.
func endOrphansOnce(launch string) ([]int, error) {
	children.mu.Lock()
	defer children.mu.Unlock()
	orphans, err := orphansOf(launch)
	for _, pid := range orphans {
		endOrphan(pid)
	}
	return orphans, err
}

// endOrphan kills a child, with its group, and reaps it if it has ended. Until it is reaped neither its id nor that of its group
// can be anybody else's.
func endOrphan(pid int) {
	_ = syscall.Kill(pid, syscall.SIGKILL) // an error means that it has ended, which is looked at next
	if stat, err := proc.ReadStat(pid); err == nil && stat.Group > 1 && stat.Group != syscall.Getpgrp() {
		_ = syscall.Kill(-stat.Group, syscall.SIGKILL) // as above
	}
	_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // who is not ready yet is met again
}

// orphansOf lists the children that agents left, dead ones too. The kernel gives orphans to the first thread. What a
// killed database server leaves is treated as an agent's. Its name proves nothing, because an agent may have a database
// of its own. A process of a server that is gone has nothing to lose.
func orphansOf(launch string) ([]int, error) {
	self := os.Getpid()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", self, self))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("the kernel does not tell which processes are left (CONFIG_PROC_CHILDREN)")
	}
	if err != nil {
		return nil, fmt.Errorf("list the children of this process: %w", err)
	}
	session, _ := unix.Getsid(0) // never fails for oneself
	var orphans []int
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if _, mine := children.of[pid]; err != nil || mine {
			continue
		}
		stat, err := proc.ReadStat(pid)
		if err == nil && (stat.Session == session || ofAnother(pid, launch)) {
			continue // started by another part of this process, as the database server
		}
		orphans = append(orphans, pid)
	}
	return orphans, nil
}

// ofAnother says that a process carries the mark of another launch that lives, whose own end waits for it.
func ofAnother(pid int, launch string) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(strings.Split(string(raw), "\x00"), func(entry string) bool {
		mark, ok := strings.CutPrefix(entry, launchVariable+"=")
		return ok && mark != launch && children.isLive(mark)
	})
}

// threadsOf counts the threads of an account, as the kernel does for RLIMIT_NPROC.
func threadsOf(uid uint32) uint64 {
	entries, _ := os.ReadDir("/proc") // without it nothing is counted, and the limit is stricter
	var sum uint64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != uid {
			continue
		}
		if threads, err := os.ReadDir("/proc/" + entry.Name() + "/task"); err == nil {
			sum += uint64(len(threads))
		}
	}
	return sum
}
