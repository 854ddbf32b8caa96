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

// update notes a pass: which lanes were due and which of them could be locked. It returns the one to wait for now, if any:
// a pass waits once, so that what many lanes wait for costs the others no more.
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
			if len(wait) == 0 {
				delete(passes, id)
				wait = append(wait, id)
			}
		}
	}
	s.passes = passes
	return wait
}

// any says whether the last pass found a due lane locked.
func (s *starved) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.passes) > 0
}
