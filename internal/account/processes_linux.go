package account

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rouse.dev/rouse/internal/ownthread"
)

// endLimit is how long processes may take to disappear after KILL: only ones that hang in the kernel need it.
const endLimit = 10 * time.Second

// uidsOfProcesses are the real and saved ids of all processes.
func uidsOfProcesses() (map[uint32]bool, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	busy := map[uint32]bool{}
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		for _, uid := range uidsOf(entry.Name()) {
			busy[uid] = true
		}
	}
	return busy, nil
}

// uidsOf are the ids of one process that lives; none when it has ended.
func uidsOf(pid string) []uint32 {
	text, _ := os.ReadFile("/proc/" + pid + "/status") // gone meanwhile
	var uids []uint32
	for line := range strings.Lines(string(text)) {
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "State":
			if state := strings.TrimSpace(value); strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X") {
				return nil
			}
		case "Uid":
			for _, field := range strings.Fields(value) {
				if uid, err := strconv.ParseUint(field, 10, 32); err == nil {
					uids = append(uids, uint32(uid))
				}
			}
			return uids
		}
	}
	return nil
}

// endProcessesOf kills all processes of an id in one call of the kernel, which no fork escapes, and waits until they are gone.
// The call is made by a thread that has the id as its effective one alone: so it reaches whoever has the id, and they cannot
// reach it. Its real and saved ids are the reaper's, which nobody has.
func endProcessesOf(uid, reaper uint32) error {
	if uid < least || reaper < least || os.Geteuid() != 0 {
		return nil
	}
	for pause, deadline := time.Millisecond, time.Now().Add(endLimit); ; pause = min(2*pause, 50*time.Millisecond) {
		// Before any look: the kernel signals all at one instant, and a list of processes misses those that live for 0.1 ms.
		if err := killAllAs(uid, reaper); err != nil {
			return err
		}
		busy, err := uidsOfProcesses()
		if err != nil || !busy[uid] {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of uid %d are still there %s after they were killed", uid, endLimit)
		}
		time.Sleep(pause) //nolint:forbidigo // the kernel tells nobody when a process that is not our child is gone
	}
}

func killAllAs(uid, reaper uint32) error {
	done := make(chan error)
	go ownthread.Run(func() {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(reaper), uintptr(uid), uintptr(reaper)); errno != 0 {
			done <- fmt.Errorf("become uid %d to end its processes: %w", uid, errno)
			return
		}
		if err := syscall.Kill(-1, syscall.SIGKILL); err != nil && err != syscall.ESRCH && err != syscall.EPERM {
			done <- fmt.Errorf("end the processes of uid %d: %w", uid, err)
			return
		}
		done <- nil
	})
	return <-done
}

// endProcessesIn kills an account's processes whose working folder is in a folder. root's are left alone.
func endProcessesIn(folder string, uid uint32) error {
	if uid == 0 {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		p, err := os.FindProcess(pid) // a handle: what is looked at is what is ended
		if err != nil {
			continue
		}
		where, err := os.Readlink("/proc/" + entry.Name() + "/cwd")
		if err == nil && (where == folder || strings.HasPrefix(where, folder+"/")) && slices.Contains(uidsOf(entry.Name()), uid) {
			_ = p.Kill() // an error means that it has ended
		}
		_ = p.Release() // a handle only
	}
	return nil
}
