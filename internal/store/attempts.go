package store

import (
	"rouse.dev/rouse/internal/batch"
	"rouse.dev/rouse/internal/store/pgtx"
)

// Attempts is the life of one claimed run: its start, its reports, its end, and its rescue.
type Attempts struct {
	*Routines
	transitions *pgtx.Batcher[*transition]
	appends     *pgtx.Batcher[*appending]
	processes   *pgtx.Batcher[*launchedProcess]
	sessions    *pgtx.Batcher[*namedSession]
	cancels     *batch.Lookup[bool] // whether somebody asked to cancel a run
	workers     *workerSigns
}

// GatherTransitions lets the next transaction that starts and ends share wait for n of them, so that a test knows what shares it.
func (s *Attempts) GatherTransitions(n int) { s.transitions.Gather(n) }

// GatherSessions lets the next statement that sessions share wait for n of them.
func (s *Attempts) GatherSessions(n int) { s.sessions.Gather(n) }

// newAttempts makes the part on the one below.
func newAttempts(r *Routines, most int) *Attempts {
	s := &Attempts{Routines: r, workers: newWorkerSigns()}
	s.transitions = &pgtx.Batcher[*transition]{Turn: s.lanes, Most: most, Patience: togetherPatience, Do: s.transitTogether}
	s.appends = &pgtx.Batcher[*appending]{Turn: pgtx.NewTurn(), Most: min(most, appendsTogether), Patience: togetherPatience, Do: s.appendTogether}
	s.processes = &pgtx.Batcher[*launchedProcess]{Turn: pgtx.NewTurn(), Most: most, Patience: togetherPatience, Do: s.noteTogether}
	s.sessions = &pgtx.Batcher[*namedSession]{Turn: pgtx.NewTurn(), Most: most, Patience: togetherPatience, Do: s.recordTogether}
	s.cancels = batch.New(cancelsMost, cancelsLimit, s.readCancels)
	return s
}
