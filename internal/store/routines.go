package store

import "rouse.dev/rouse/internal/store/pgtx"

// Routines is schedules and webhooks, and the fires they lead to.
type Routines struct {
	*Tasks
	calls *pgtx.Batcher[*fireCall]
}

// newRoutines makes the part; most is how many calls share a transaction.
func newRoutines(tasks *Tasks, most int) *Routines {
	s := &Routines{Tasks: tasks}
	s.calls = &pgtx.Batcher[*fireCall]{Turn: pgtx.NewTurn(), Most: most, Patience: togetherPatience, Do: s.callTogether}
	return s
}
