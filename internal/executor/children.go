//go:build unix

package executor

import (
	"os"
	"sync"
)

// children are the processes that executors of this process started and have not reaped: agents by the mark of their launch, and
// watchdogs. What else this process has for children, agents left.
var children = registry{of: map[int]string{}}

type registry struct {
	mu sync.Mutex
	of map[int]string
}

// start starts a process and notes it, with nobody looking in between.
func (r *registry) start(mark string, start func() (*os.Process, error)) (*os.Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := start()
	if err == nil {
		r.of[p.Pid] = mark
	}
	return p, err
}

// reap waits for a process that has ended or is about to, after which its id may be another's.
func (r *registry) reap(p *os.Process) *os.ProcessState {
	r.mu.Lock()
	defer r.mu.Unlock()
	state, _ := p.Wait() // it has ended: the only error is that somebody else reaped it
	delete(r.of, p.Pid)
	return state
}

// isLive says that a launch with the mark runs.
func (r *registry) isLive(mark string) bool {
	for _, live := range r.of {
		if live == mark {
			return true
		}
	}
	return false
}
