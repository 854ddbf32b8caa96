package store

import (
	"log/slog"
	"slices"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// hops is a tracer that keeps what it is told.
type hops struct{ all []Hop }

func (h *hops) Trace(hop Hop) { h.all = append(h.all, hop) }

func (h *hops) of(name string) (list []Hop) {
	for _, hop := range h.all {
		if hop.Name == name {
			list = append(list, hop)
		}
	}
	return list
}

// Every cause is told once, and nothing has a parent that is not told; an attempt that nobody ended has an error.
func TestEveryHopHasAParentThatIsTold(t *testing.T) {
	w := newWorld(t)
	told := &hops{}
	w.Store = New(w.db, Options{Events: w.events, Counters: metrics.New(), Log: slog.New(slog.DiscardHandler), Jitter: func() float64 { return 0 }, Tracer: told})
	agent := w.agent("worker")
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	must(w, first(w.Abandon(t.Context(), c.Attempt, true)), nil)
	ids := map[xid.ID]bool{}
	for _, hop := range told.all {
		ids[hop.ID] = true
	}
	for _, hop := range told.of("wakeup") {
		if !ids[hop.CausationID] {
			t.Errorf("the cause of %s is not told", hop.ID)
		}
	}
	if causes := told.of("cause"); len(causes) != 1 || causes[0].ID != causes[0].CausationID || causes[0].Facts["source"] != string(domain.WakeupSourceUser) {
		t.Errorf("causes: %+v", causes)
	}
	attempts := told.of("attempt")
	if len(attempts) != 1 || attempts[0].Failed != abandonedText || attempts[0].Facts["executor"] == "" || attempts[0].Calls {
		t.Errorf("the abandoned attempt: %+v", attempts)
	}
	if slices.ContainsFunc(told.all, func(h Hop) bool { return h.Began.IsZero() }) {
		t.Errorf("a hop without a beginning: %+v", told.all)
	}
}
