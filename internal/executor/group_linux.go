package executor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rouse.dev/rouse/internal/proc"
)

// awaitExit waits until the process ended but leaves it unreaped, so that neither its id nor its group can be reused;
// nil says that it still has to be reaped.
func awaitExit(p *os.Process) *os.ProcessState {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return nil
		}
	}
}

// marked reports whether the process was started with the launch's mark, or with one that begins with it when it is
// that of an attempt. Processes of other users cannot be read and count as not marked.
func marked(pid int, launch string) bool {
	if launch == "" {
		return false
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	want := "\x00" + launchVariable + "=" + launch
	if !strings.HasSuffix(launch, "/") {
		want += "\x00"
	}
	return bytes.Contains(append([]byte{0}, raw...), []byte(want))
}

// remaining lists the live processes of the launch: those that carry its mark and, while owned says that the group is
// still the recorded one, the members of the group.
func remaining(g ProcessGroup, owned bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if !owned && !marked(pid, g.Launch) { // of most processes no more than that is read
			continue
		}
		stat, err := proc.ReadStat(pid)
		if err == nil && stat.Lives() && (!owned || stat.Group == g.PGID || marked(pid, g.Launch)) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// killMarked ends one process if it still carries the mark; the handle makes sure that check and signal meet one process.
func killMarked(pid int, launch string) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer p.Release() //nolint:errcheck // a handle only
	if marked(pid, launch) {
		_ = p.Kill() // an error means that it ended by itself; the caller looks again
	}
}

// endMarked ends every process that carries the launch's mark, wherever it went, until none is left.
func endMarked(g ProcessGroup, deadline time.Time) error {
	_, err := endAll(g, func() bool { return false }, deadline)
	return err
}

// endLeftover is EndLeftover for a group of this host and boot.
func endLeftover(g ProcessGroup, deadline time.Time) (bool, error) {
	inCgroup, err := endCgroupsOf(g.Launch, deadline)
	if err != nil {
		return inCgroup, err
	}
	elsewhere, err := endAll(g, func() bool {
		return g.StartTime != 0 && proc.Started(g.PGID) == g.StartTime
	}, deadline)
	return inCgroup || elsewhere, err
}

// endAll kills until nothing remains. owned says whether the group's leader is still the recorded process; once it was,
// the group's members are waited for even after the leader's end.
func endAll(g ProcessGroup, owned func() bool, deadline time.Time) (bool, error) {
	ended, mine := false, false
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		own := owned()
		mine = mine || own
		pids, err := remaining(g, mine)
		if err != nil || len(pids) == 0 {
			return ended, err
		}
		ended = true
		if time.Now().After(deadline) {
			return ended, fmt.Errorf("processes %v of group %d are still there %s after they were killed", pids, g.PGID, endLimit)
		}
		if own {
			_ = g.signal(syscall.SIGKILL) // whom it did not reach the next look finds
		}
		for _, pid := range pids {
			killMarked(pid, g.Launch)
		}
		time.Sleep(pause) //nolint:forbidigo // the kernel tells nobody when a process that is not our child is gone
	}
}
