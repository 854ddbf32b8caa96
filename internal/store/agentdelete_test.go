package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/xid"
)

func TestADeletedAgentsQueueEndsInEveryState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo", func(in *CreateAgent) { in.MaxConcurrentSessions = 2 })
	w.request(agent, scoped("task:live"))
	live := w.claimOne()
	w.start(live)
	late := w.request(agent, scoped("task:live")) // waits SCOPE_BUSY
	w.request(agent, scoped("task:claimed"))
	claimed := w.claimOne()
	queued := w.request(agent, scoped("task:queued"))
	merged := w.request(agent, scoped("task:queued"))
	unrouted, err := w.Wake(t.Context(), Wake{WorkspaceID: w.workspace, AgentID: agent, UserID: "ann"})
	w.ok(err)

	w.ok(w.DeleteAgent(t.Context(), w.workspace, agent))
	for name, id := range map[string]xid.ID{"late": late, "queued": queued, "merged": merged, "unrouted": unrouted.ID} {
		if got := one[string](w, `SELECT status || ' ' || end_reason FROM wakeup_requests WHERE id = $1`, id); got != "CANCELLED AGENT_DELETED" {
			t.Errorf("the %s request is %s", name, got)
		}
	}
	if asked, err := w.CancelRequested(t.Context(), live.RunID); err != nil || !asked || !w.events.has(event.Run, live.RunID) {
		t.Errorf("the owner of the live run was not asked to end it: %v", err)
	}
	w.sound()
	if launch, err := w.Start(t.Context(), claimed.Attempt); err != nil || launch != nil {
		t.Errorf("a claimed run of a deleted agent was launched: %v", err)
	}
	w.ok(w.Cancelled(t.Context(), live.Attempt, Unfinished{}))
	for name, id := range map[string]xid.ID{"live": live.RunID, "claimed": claimed.RunID, "queued": w.runOf(queued)} {
		if got := one[string](w, `SELECT status || ' ' || end_reason FROM runs WHERE id = $1`, id); got != "CANCELLED AGENT_DELETED" {
			t.Errorf("the %s run is %s", name, got)
		}
	}
	if got := one[string](w, `SELECT status FROM agent_lanes WHERE agent_id = $1`, agent); got != "STOPPED" {
		t.Errorf("the lane is %s, want STOPPED", got)
	}
	w.sound()
	w.refused(w.DeleteAgent(t.Context(), w.workspace, agent), domain.UserErrorCodeNotFound)
	_, err = w.ResumeAgent(t.Context(), w.workspace, agent)
	w.refused(err, domain.UserErrorCodeNotFound)
	w.agent("echo") // the name is free again
}

func TestAWakeThatComesAfterItsAgentEndsWhenRouted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	w.ok(w.DeleteAgent(t.Context(), w.workspace, agent))
	late := w.request(agent, scoped("taskless"))
	w.wantRequest(late, domain.WakeupStatusCancelled)
	if n := one[int](w, `SELECT count(*) FROM activities WHERE subject_id = $1 AND code = 'WAKEUP_STALE_CANCELLED'`, late); n != 1 {
		t.Errorf("%d entries about the late wake, want 1", n)
	}
	w.sound()
}

func TestAWakeThatWasNotRoutedWhenItsAgentWasDeletedIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	late := w.unrouted(agent)
	w.ok(w.DeleteAgent(t.Context(), w.workspace, agent))
	w.wantRequest(late, domain.WakeupStatusCancelled)
	if got := one[string](w, `SELECT string_agg(code || ' ' || (data->>'reason') || ' ' || (data->>'agent'), ';') FROM activities WHERE subject_id = $1 AND data ? 'reason'`, late); got != "WAKEUP_STALE_CANCELLED AGENT_DELETED "+string(agent) {
		t.Errorf("the feed tells %q", got)
	}
	w.sound()
}

// The feed names what ends with an agent, bounded, beside the counts.
func TestTheFeedNamesTheRunsOfADeletedAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker", func(in *CreateAgent) { in.MaxConcurrentSessions = 3 })
	var live []xid.ID
	for i := range 2 {
		w.wakeOnly(agent, w.task(fmt.Sprint("Task ", i)))
		c := w.claimOne()
		w.start(c)
		live = append(live, c.RunID)
	}
	queued := w.runOf(w.wake(agent))
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, parked_reason)
SELECT 'run_zz' || lpad(n::text, 3, '0'), $1, $2, 'cau', 'taskless', 'USER', 'EVENT', 'QUEUED', 'SCOPE_BUSY' FROM generate_series(1, $3) n`, w.workspace, agent, listed)
	deleted, err := w.Store.DeleteAgent(t.Context(), w.workspace, agent)
	w.ok(err)
	slices.Sort(live)
	if !slices.Equal(deleted.AskedToEnd, live) {
		t.Errorf("asked to end are %v, want %v", deleted.AskedToEnd, live)
	}
	type data struct {
		RunsCancelled, RunsAskedToEnd     int
		CancelledRunIDs, AskedToEndRunIDs []xid.ID
	}
	var told data
	w.ok(json.Unmarshal(one[[]byte](w, `SELECT data FROM activities WHERE code = 'AGENT_CHANGED' AND data ? 'deleted'`), &told))
	if told.RunsAskedToEnd != 2 || !slices.Equal(told.AskedToEndRunIDs, live) {
		t.Errorf("the feed says %+v, live are %v", told, live)
	}
	if told.RunsCancelled != listed+1 || len(told.CancelledRunIDs) != listed || !slices.IsSorted(told.CancelledRunIDs) {
		t.Errorf("%d runs cancelled, %d named (queued was %s)", told.RunsCancelled, len(told.CancelledRunIDs), queued)
	}
}
