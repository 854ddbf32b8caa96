package store

import (
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// S3.10: a delivery that names the run whose agent sent it goes on with that run's chain, light or heavy, and counts its hops; so a
// loop through a webhook ends as any other. One that names no run of the workspace begins a chain.
func TestADeliveryOfARunGoesOnWithItsChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings(domain.SettingsPatch{MaxHops: domain.To(2)})
	agent := w.agent("triage")
	hook := w.hook(agent)
	w.sql(`UPDATE routines SET concurrency_policy = 'ALWAYS_ENQUEUE'`)
	deliver := func(run xid.ID) xid.ID {
		t.Helper()
		done, err := w.Deliver(t.Context(), Delivery{Webhook: hook, Body: []byte(`{}`), RunID: run})
		if w.ok(err); done.Outcome != domain.WebhookAccepted {
			t.Errorf("the delivery was %s: %s", done.Outcome, done.Problem)
		}
		w.route(agent)
		return one[xid.ID](w, `SELECT id FROM wakeup_requests WHERE routine_run_id = $1`, done.RoutineRunID)
	}
	of := func(request xid.ID, column string) string {
		return one[string](w, `SELECT `+column+`::text FROM wakeup_requests WHERE id = $1`, request)
	}
	first := deliver("")
	second := deliver(w.runOf(first))
	third := deliver(w.runOf(second))
	for hops, request := range []xid.ID{first, second, third} {
		if of(request, "causation_id") != of(first, "causation_id") || of(request, "hops") != string(rune('0'+hops)) {
			t.Errorf("delivery %d has the cause %s and %s hops, want %s and %d", hops, of(request, "causation_id"), of(request, "hops"), of(first, "causation_id"), hops)
		}
	}
	over := deliver(w.runOf(third))
	if got := of(over, "status || ' ' || end_reason"); got != "SKIPPED HOP_LIMIT" {
		t.Errorf("the third hop ended %s", got)
	}
	if n := one[int](w, `SELECT count(*) FROM inbox_items WHERE kind = 'LOOP_BREAKER'`); n != 1 {
		t.Errorf("%d inbox items tell of it, want 1", n)
	}
	stranger, err := w.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Elsewhere"})
	w.ok(err)
	w.sql(`UPDATE runs SET workspace_id = $1 WHERE id = $2`, stranger.ID, w.runOf(third))
	for _, run := range []xid.ID{w.runOf(third), xid.New("run")} {
		if alone := deliver(run); of(alone, "hops") != "0" || of(alone, "causation_id") == of(first, "causation_id") {
			t.Errorf("a delivery that names %s joined a chain", run)
		}
	}
}
