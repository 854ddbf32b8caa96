package store

import (
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// The feed's entries about wakes that end name, for those who compare, why, about which task and for whom.
func TestTheFeedHasTheDetailsOfWakesThatEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent("a"), w.agent("b")
	details := func(code domain.ActivityCode, request xid.ID) string {
		t.Helper()
		return one[string](w, `SELECT concat_ws(' ', data->>'reason', data->>'task_id', data->>'agent', data->>'old_agent') FROM activities WHERE code = $1 AND subject_id = $2`, code, request)
	}
	task := w.task("Build")
	first, _ := w.assign(task, a)
	w.assign(task, b)
	if got, want := details(domain.ActivityCodeWakeupStaleCancelled, first[0]), "ASSIGNEE_CHANGED "+string(task)+" "+string(a); got != want {
		t.Errorf("of a reassignment: %q, want %q", got, want)
	}
	retried := w.task("Test", assignedTo(a))
	request := one[xid.ID](w, `SELECT id FROM wakeup_requests WHERE task_id = $1`, retried)
	w.sql(`UPDATE runs SET retry_count = 1, parked_reason = 'BACKOFF', parked_until = clock_timestamp() + interval '1 hour' WHERE task_id = $1`, retried)
	w.sql(`UPDATE agent_lanes SET head_id = NULL, head_at = NULL WHERE agent_id = $1`, a)
	w.assign(retried, b)
	if got, want := details(domain.ActivityCodeWakeupRetryCancelled, request), "RETRY_STALE_ASSIGNEE "+string(retried)+" "+string(a)+" "+string(a); got != want {
		t.Errorf("of a retry: %q, want %q", got, want)
	}
}

// The inbox says by its titles whom an item is about.
func TestInboxTitlesNameTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wake(w.agent("worker"))
	c := w.claimOne()
	w.start(c)
	w.ok(w.Fail(t.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "no way", Permanent: true}))
	if got := one[string](w, `SELECT title FROM inbox_items`); got != "agent.error: a run of worker gave up" {
		t.Errorf("the title is %q", got)
	}
}
