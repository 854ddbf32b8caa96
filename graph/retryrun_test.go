package graph_test

import (
	"fmt"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// S8.7: the answer of a retry shows the run that does the work, routed, and the wakeups that were sent again.
func TestARunIsRetriedAndTheAnswerShowsWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.agent("Ada"))
	type retried struct {
		RetryRun struct {
			Run            *struct{ ID, Status string }
			WakeupRequests []struct {
				Resends int
				Run     *struct{ ID string }
			}
			Replayed bool
		}
	}
	retry := func(input map[string]any) (out retried, problem string) {
		t.Helper()
		problem = w.mutate("retryRun", "run { id status } wakeupRequests { resends run { id } } replayed", input, &out)
		return out, problem
	}
	if out, e := retry(map[string]any{"runId": run}); e != "" || out.RetryRun.Run == nil || out.RetryRun.Run.ID != run || len(out.RetryRun.WakeupRequests) != 0 {
		t.Errorf("a due run: %q %+v", e, out)
	}
	attempt := w.start()
	if _, e := retry(map[string]any{"runId": run}); e != "INVALID_STATE input.runId" {
		t.Errorf("a live run: %q", e)
	}
	w.ok(w.store.Fail(t.Context(), attempt, store.Failure{Code: domain.RunErrorCodeCrash, Message: "broken", Permanent: true}))
	input := map[string]any{"runId": run, "note": "mended", "idempotencyKey": "k"}
	for i, replayed := range []bool{false, true} {
		out, e := retry(input)
		r := out.RetryRun
		if e != "" || r.Run == nil || len(r.WakeupRequests) != 1 {
			t.Errorf("call %d: %q %+v", i+1, e, r)
			continue
		}
		compare(t, fmt.Sprintf("call %d", i+1),
			is("replayed", r.Replayed, replayed),
			holds("the run is another one", r.Run.ID != run),
			is("status of the run", r.Run.Status, "QUEUED"),
			is("resends of the request", r.WakeupRequests[0].Resends, 1),
			is("run of the request", r.WakeupRequests[0].Run.ID, r.Run.ID))
	}
	if _, e := retry(map[string]any{"runId": run, "idempotencyKey": "k"}); e != "IDEMPOTENCY_KEY_REUSED input.idempotencyKey" {
		t.Errorf("the key with another input: %q", e)
	}
	if _, e := retry(map[string]any{"runId": "run_00000000000000000000000000"}); e != "NOT_FOUND input.runId" {
		t.Errorf("an unknown run: %q", e)
	}
	if _, e := retry(map[string]any{"runId": run, "note": string(make([]rune, 1001))}); e == "" {
		t.Error("a note that is too long is taken")
	}
}
