//go:build unix && !linux

package executor

import (
	"os"
	"syscall"
	"time"
)

// Systems without /proc: a group can be ended while its server runs, but a leftover of an earlier server cannot be told
// from a stranger, so it is left alone. The watchdog still ends the groups of a server that was killed.

// awaitExit returns when the process ended; here that reaps it.
func awaitExit(p *os.Process) *os.ProcessState {
	state, _ := p.Wait() // nil state: unknown
	return state
}

func endMarked(ProcessGroup, time.Time) error { return nil }

func endLeftover(ProcessGroup, time.Time) (bool, error) { return false, nil }

func remaining(g ProcessGroup, owned bool) ([]int, error) {
	if owned && syscall.Kill(-g.PGID, 0) == nil {
		return []int{g.PGID}, nil
	}
	return nil, nil
}

// EndOrphanedCgroups ends nothing, because this system has no cgroups.
func EndOrphanedCgroups(string) error { return nil }
