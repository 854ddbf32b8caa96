package store

// finishAt ends an attempt well, that cost something.
func (w *world) finishAt(c Claimed, costUSD string) {
	w.Helper()
	w.ok(w.Finish(w.Context(), c.Attempt, Success{Summary: "done", Usage: &Usage{InputTokens: 10, OutputTokens: 5, CostUSD: costUSD}}))
}

// cost records what a live attempt used.
func (w *world) cost(c Claimed, costUSD string) {
	w.Helper()
	w.ok(w.withLive(w.Context(), c.Attempt, func(t *tx, _ lane, run runRow) error {
		return t.spend(w.Context(), run, &Usage{InputTokens: 10, OutputTokens: 5, CostUSD: costUSD})
	}))
}
