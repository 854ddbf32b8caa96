package store

import (
	"testing"

	"rouse.dev/rouse/internal/domain"
)

// A chain that merges into a run which somebody else began goes on counting where it was, or nothing would ever stop it.
func TestAChainThatMergesIntoAnotherRunCountsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	after := func(hops int) func(*newRequest) { return func(r *newRequest) { r.hops = hops } }
	young := w.request(agent, after(1))
	w.request(agent, after(7))
	w.request(agent, after(3))
	run := w.runOf(young)
	if got := one[int](w, `SELECT hops FROM runs WHERE id = $1`, run); got != 7 {
		t.Errorf("the run counts %d hops, want the 7 of its longest chain", got)
	}
	w.request(agent, after(domain.DefaultMaxHops))
	c := w.claimOne()
	w.start(c)
	w.ok(w.Finish(t.Context(), c.Attempt, Success{Result: map[string]any{"actions": []any{map[string]any{"type": "self_wake", "reason": "again"}}}}))
	w.route(agent)
	if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE source = 'SELF' AND status = 'SKIPPED' AND end_reason = 'HOP_LIMIT'`); n != 1 {
		t.Errorf("%d wakes were stopped by the limit of hops, want 1", n)
	}
	if n := one[int](w, `SELECT count(*) FROM inbox_items WHERE kind = 'LOOP_BREAKER'`); n != 1 {
		t.Errorf("%d inbox items tell of it, want 1", n)
	}
}
