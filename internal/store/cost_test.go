package store

import "testing"

// finishAt records what an attempt cost, and ends it well.
func (w *world) finishAt(c Claimed, costUSD string) {
	w.Helper()
	w.spend(c, costUSD)
	w.finish(c)
}

// spend records what a live attempt used.
func (w *world) spend(c Claimed, costUSD string) {
	w.Helper()
	w.ok(w.withLive(w.Context(), c.Attempt, func(t *tx, _ lane, run runRow) error {
		return t.recordCost(w.Context(), run, usage{inputTokens: 10, outputTokens: 5, costUSD: costUSD})
	}))
}

func TestACostIsRecordedOncePerAttempt(t *testing.T) {
	w := newWorld(t)
	w.wake(w.agent("worker"))
	c := w.claimOne()
	w.start(c)
	w.spend(c, "")
	w.spend(c, "7")
	w.ok(w.withLive(t.Context(), c.Attempt, func(x *tx, _ lane, run runRow) error { return x.recordCost(t.Context(), run, usage{}) }))
	if got := one[string](w, `SELECT count(*) || ' ' || sum(input_tokens) || ' ' || sum(cost_usd) FROM cost_entries`); got != "1 10 0.000000" {
		t.Errorf("the attempt's entries are %s", got)
	}
}
