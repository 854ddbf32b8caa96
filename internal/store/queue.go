package store

import "rouse.dev/rouse/internal/store/pgtx"

// Queue is wakeup requests, runs, lanes and budgets: what waits, what is claimed next, and how a run ends.
type Queue struct {
	*base
	starved starved
	waiters waiters
	turn    turn
	wakes   *pgtx.Batcher[*waking]
	resting struct{ claim, promote *resting } // lanes that fail
}

// newQueue makes the part on its base; most is how many calls share a transaction.
func newQueue(b *base, most int) *Queue {
	s := &Queue{base: b, resting: struct{ claim, promote *resting }{newResting(), newResting()}}
	s.wakes = &pgtx.Batcher[*waking]{Turn: pgtx.NewTurn(), Most: most, Patience: togetherPatience, Do: s.wakeTogether}
	return s
}
