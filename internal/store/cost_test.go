package store

// finishAt ends a run well that says what it cost.
func (w *world) finishAt(c Claimed, costUSD string) {
	w.Helper()
	w.ok(w.Finish(w.Context(), c.Attempt, Success{Summary: "done", Usage: &Usage{InputTokens: 10, OutputTokens: 5, CostUSD: costUSD}}))
}
