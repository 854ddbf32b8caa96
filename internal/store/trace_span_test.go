package store

import (
	"log/slog"
	"slices"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// spans is a tracer that keeps what it is told.
type spans struct{ all []Span }

func (s *spans) Trace(span Span) { s.all = append(s.all, span) }

func (s *spans) of(name string) (list []Span) {
	for _, span := range s.all {
		if span.Name == name {
			list = append(list, span)
		}
	}
	return list
}

// Every cause is told once, and nothing has a parent that is not told; an attempt that nobody ended has an error.
func TestEverySpanHasAParentThatIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	told := &spans{}
	w.Store = New(w.db, Options{Events: w.events, Counters: metrics.New(), Log: slog.New(slog.DiscardHandler), Jitter: func() float64 { return 0 }, Tracer: told})
	agent := w.agent("worker")
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	must(w, first(w.Abandon(t.Context(), c.Attempt, true)), nil)
	ids := map[xid.ID]bool{}
	for _, span := range told.all {
		ids[span.ID] = true
	}
	for _, span := range told.of("wakeup") {
		if !ids[span.CausationID] {
			t.Errorf("the cause of %s is not told", span.ID)
		}
	}
	if causes := told.of("cause"); len(causes) != 1 || causes[0].ID != causes[0].CausationID || causes[0].Facts["source"] != string(domain.WakeupSourceUser) {
		t.Errorf("causes: %+v", causes)
	}
	attempts := told.of("attempt")
	if len(attempts) != 1 || attempts[0].Failed != abandonedText || attempts[0].Facts["executor"] == "" || attempts[0].Calls {
		t.Errorf("the abandoned attempt: %+v", attempts)
	}
	if slices.ContainsFunc(told.all, func(s Span) bool { return s.Began.IsZero() }) {
		t.Errorf("a span without a beginning: %+v", told.all)
	}
}
