package model

import (
	"fmt"
	"slices"
)

// Routine is a lightweight routine with a concurrency policy.
type Routine struct {
	Agent  *Agent
	Policy string
	Number int
}

// Fire is the record that a routine fired.
type Fire struct {
	Routine     *Routine
	Fingerprint string
	Status      string
	Completed   bool
	Reason      string
}

// FireRoutine fires, by hand or by the clock (SPEC S4.6), and routes what it sent.
func (w *World) FireRoutine(r *Routine, byHand bool, fingerprint string) {
	w.tick()
	active := slices.ContainsFunc(w.Requests, func(q *Request) bool {
		return q.Fire != nil && q.Fire.Routine == r && q.Fire.Fingerprint == fingerprint && !q.Fire.Completed && !q.Ended
	})
	f := &Fire{Routine: r, Fingerprint: fingerprint, Status: "ENQUEUED"}
	w.Fires = append(w.Fires, f)
	scope := fmt.Sprintf("routine:%d", r.Number)
	switch {
	case r.Policy == "ALWAYS_ENQUEUE":
		scope = fmt.Sprintf("fire:%d", len(w.Fires))
	case active && r.Policy == "SKIP_IF_ACTIVE":
		f.Status, f.Completed, f.Reason = "SKIPPED", true, "CONCURRENCY_POLICY"
		return
	case active:
		f.Status, f.Completed = "COALESCED", true
	}
	w.insert(&Request{Agent: r.Agent, Source: "ROUTINE", Scope: scope, Event: byHand, Person: byHand, Routine: r, Fingerprint: fingerprint, Fire: f})
	w.routeAll(r.Agent) // it holds the lane
}
