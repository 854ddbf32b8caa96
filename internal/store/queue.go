package store

// Queue is wakeup requests, runs, lanes and budgets: what waits, what is claimed next, and how a run ends.
type Queue struct {
	*base
	starved starved
	waiters waiters
	turn    turn
	resting struct{ claim, promote *resting } // lanes that fail
}
