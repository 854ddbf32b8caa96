package store

import (
	"sync"

	"rouse.dev/rouse/internal/xid"
)

// starved counts in how many passes in a row a due lane was found locked.
type starved struct {
	mu     sync.Mutex
	passes map[xid.ID]int
}

// update notes a pass: which lanes were due and which of them could be locked. It returns those to wait for now.
func (s *starved) update(due, locked []xid.ID) (wait []xid.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := map[xid.ID]bool{}
	for _, id := range locked {
		got[id] = true
	}
	passes := map[xid.ID]int{}
	for _, id := range due {
		if got[id] {
			continue
		}
		if passes[id] = s.passes[id] + 1; passes[id] >= passesBeforeWait {
			delete(passes, id)
			wait = append(wait, id)
		}
	}
	s.passes = passes
	return wait
}
