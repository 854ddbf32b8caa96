package store

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// resting remembers lanes that fail again and again, and until when each of them rests, because finding one of them in
// a batch costs the others several transactions.
type resting struct {
	mu    sync.Mutex
	lanes map[xid.ID]lanesRest
	now   func() time.Time
}

type lanesRest struct {
	failures int // in a row
	timeouts int // times in a row that somebody held a row of it
	until    time.Time
}

func newResting() *resting { return &resting{lanes: map[xid.ID]lanesRest{}, now: time.Now} }

// left lists the lanes that rest now, those first that failed most. It forgets lanes that were not met for long.
func (r *resting) left() []xid.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	var list []xid.ID
	for id, l := range r.lanes {
		switch {
		case l.until.After(now):
			list = append(list, id)
		case now.Sub(l.until) > domain.LongestLaneRest:
			delete(r.lanes, id)
		}
	}
	slices.SortFunc(list, func(a, b xid.ID) int { return cmp.Or(r.lanes[b].until.Compare(r.lanes[a].until), cmp.Compare(a, b)) })
	return list[:min(len(list), lanesPassedOver/2)]
}

// served notes which of the lanes of a pass failed: those rest, longer each time; the others are as good as new. Those of
// which only somebody held a row rest a little; it returns those for which that has lasted.
func (r *resting) served(lanes, failed []xid.ID, timedOut map[xid.ID]error) (lasting []xid.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range pgtx.Remaining(lanes, failed) {
		delete(r.lanes, id)
	}
	for _, id := range failed {
		l := r.lanes[id]
		if timedOut[id] != nil {
			if l.timeouts++; domain.HeldLong(l.timeouts) {
				lasting = append(lasting, id)
			}
			r.lanes[id] = lanesRest{failures: l.failures, timeouts: l.timeouts, until: r.now().Add(domain.HeldRest(l.timeouts))}
			continue
		}
		r.lanes[id] = lanesRest{failures: l.failures + 1, until: r.now().Add(domain.LaneRest(l.failures + 1))}
	}
	return lasting
}
