package store

import (
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

func (w *world) holdAll(change ...func(*HoldWorkspace)) WorkspaceHeld {
	w.Helper()
	in := HoldWorkspace{WorkspaceID: w.workspace, Note: "incident", Fires: domain.HoldFiresHold}
	for _, c := range change {
		c(&in)
	}
	held, err := w.HoldWorkspace(w.Context(), in)
	return must(w, held, err)
}

func (w *world) release() {
	w.Helper()
	w.ok(w.ReleaseWorkspace(w.Context(), w.workspace, "over"))
}

// wantHeld checks that a request's run waits because of the hold, and that no claim takes anything.
func (w *world) wantHeld(request xid.ID) {
	w.Helper()
	run := w.runOf(request)
	if claimed := w.claim(10); len(claimed) > 0 {
		w.Errorf("a held workspace launched %v", claimed)
	}
	waiting, err := w.Waiting(w.Context(), []xid.ID{run}, nil)
	w.ok(err)
	if got := waiting[run]; got.Hold != domain.QueueHoldWorkspaceHeld || got.Since.IsZero() || !strings.Contains(got.Message(), "releaseWorkspace") {
		w.Errorf("it is said to wait for %+v: %s", got, got.Message())
	}
}

// Of a held workspace nothing is claimed: neither what was queued nor what comes, by whatever cause. Other workspaces go on. When it
// is released, all of it goes, in its order.
func TestAHeldWorkspaceTakesCausesAndLaunchesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker", func(in *CreateAgent) { in.MaxConcurrentSessions = 5 })
	before := w.wake(agent)
	w.holdAll()
	after := w.wake(w.agent("other"))
	w.wantHeld(before)
	w.wantHeld(after)
	if at, now, err := w.NextInstant(t.Context()); err != nil || !at.IsZero() && !at.After(now) {
		t.Errorf("the dispatcher is told to look again at %v, at %v: %v", at, now, err)
	}
	stats, err := w.QueueStats(t.Context(), w.workspace)
	if w.ok(err); stats.Claimable != 0 || stats.Held != 2 {
		t.Errorf("%d are claimable and %d held, want 0 and 2", stats.Claimable, stats.Held)
	}
	elsewhere, err := w.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Elsewhere"})
	w.ok(err)
	other := *w
	other.workspace = elsewhere.ID
	other.wake(other.agent("free"))
	if claimed := w.claim(10); len(claimed) != 1 || claimed[0].WorkspaceID != elsewhere.ID {
		t.Errorf("claimed %v, want the other workspace's run", claimed)
	}
	w.release()
	if claimed := w.claim(10); len(claimed) != 2 || claimed[0].RunID != w.runOf(before) {
		t.Errorf("after the release %v were claimed, want both runs in their order", claimed)
	}
	w.sound()
}

// The hold is seen by a claim that had found its lanes before the hold was there.
func TestAClaimThatFoundItsLanesBeforeTheHoldTakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.wake(agent)
	w.holdAll()
	claimed, err := w.claimIn(t.Context(), claimOrder{owner: w.owner, agents: []xid.ID{agent}, limit: 5, lease: lease, settles: 5, wait: true})
	if w.ok(err); len(claimed.claimed) > 0 {
		t.Errorf("it took %v", claimed.claimed)
	}
}

// Who holds a workspace, why and since when is kept; a second hold changes the note and the fires, and not the begin.
func TestASecondHoldChangesItsWordsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	revision := func() int { return one[int](w, `SELECT revision FROM workspaces WHERE id = $1`, w.workspace) }
	was := revision()
	w.holdAll()
	since := one[time.Time](w, `SELECT held_at FROM workspace_lanes WHERE workspace_id = $1`, w.workspace)
	w.holdAll()
	if got := revision(); got != was+1 {
		t.Errorf("two equal holds raised the revision by %d, want 1", got-was)
	}
	w.holdAll(func(in *HoldWorkspace) { in.Note, in.Fires = "", domain.HoldFiresSkip })
	if got := one[string](w, `SELECT hold ->> 'note' || ' ' || (hold ->> 'fires') FROM workspaces WHERE id = $1`, w.workspace); got != "incident SKIP" {
		t.Errorf("it is held with %q", got)
	}
	if got := one[time.Time](w, `SELECT held_at FROM workspace_lanes WHERE workspace_id = $1`, w.workspace); !got.Equal(since) {
		t.Errorf("it is held since %v, want %v", got, since)
	}
	w.release()
	w.release()
	if got := one[int](w, `SELECT count(*) FROM activities WHERE code IN ('WORKSPACE_HELD', 'WORKSPACE_RELEASED')`); got != 3 {
		t.Errorf("the feed tells of %d changes, want 3", got)
	}
	_, err := w.HoldWorkspace(t.Context(), HoldWorkspace{WorkspaceID: w.workspace, Fires: domain.HoldFiresHold, Note: strings.Repeat("x", 1001)})
	w.refused(err, domain.UserErrorCodeTooLong)
	_, err = w.HoldWorkspace(t.Context(), HoldWorkspace{WorkspaceID: "wsp_none", Fires: domain.HoldFiresHold})
	w.refused(err, domain.UserErrorCodeNotFound)
}

// Slots of a held workspace wait, and are caught up once by the routine's policy; nothing is late meanwhile, nor right after.
func TestSlotsOfAHeldWorkspaceWaitAndAreCaughtUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.activeSince(time.Hour)
	agent := w.agent("worker", func(in *CreateAgent) { in.SkipIdleWakeups = new(false) })
	newest := w.routine(agent, func(in *CreateRoutine) { in.CatchUpPolicy = domain.CatchUpPolicySkipMissed })
	w.holdAll()
	w.down(newest, 5*time.Hour)
	w.tick()
	if n := one[int](w, `SELECT count(*) FROM routine_runs`); n != 0 {
		t.Errorf("%d fires are recorded while it is held, want 0", n)
	}
	if due, err := w.DueTriggers(t.Context(), DueTrigger{}, 10); err != nil || len(due) != 0 {
		t.Errorf("due are %v, %v", due, err)
	}
	if agents, err := w.FireDue(t.Context(), newest); err != nil || len(agents) != 0 {
		t.Errorf("fired for %v, %v", agents, err)
	}
	held := w.wantVerdict(domain.LoopVerdictHeld)
	if held.Hold == nil || held.Hold.Note != "incident" || held.Triggers.Total != 0 {
		t.Errorf("the verdict shows %+v", held)
	}
	w.release()
	if l := w.alive(); l.Verdict == domain.LoopVerdictDead || l.Triggers.Total != 0 {
		t.Errorf("right after the release the verdict is %s with %d late triggers", l.Verdict, l.Triggers.Total)
	}
	w.tick()
	if n := one[int](w, `SELECT count(*) FROM routine_runs WHERE status = 'ENQUEUED'`); n != 1 {
		t.Errorf("%d fires caught up, want the newest slot alone", n)
	}
}

// With SKIP each slot is recorded, with the reason; what a person fires is taken and waits.
func TestSlotsOfAHeldWorkspaceAreSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	trigger := w.routine(agent, nil)
	w.holdAll(func(in *HoldWorkspace) { in.Fires = domain.HoldFiresSkip })
	w.makeDue(trigger)
	w.tick()
	if got := one[string](w, `SELECT status || ' ' || skip_reason FROM routine_runs`); got != "SKIPPED WORKSPACE_HELD" {
		t.Errorf("the slot's fire is %s", got)
	}
	made, _, err := w.FireRoutine(t.Context(), FireRoutine{WorkspaceID: w.workspace, RoutineID: one[xid.ID](w, `SELECT routine_id FROM routine_triggers`)})
	w.ok(err)
	if got := one[string](w, `SELECT status FROM routine_runs WHERE id = $1`, made.ID); got != "ENQUEUED" {
		t.Errorf("the fire by hand is %s", got)
	}
	w.route(agent)
	if claimed := w.claim(10); len(claimed) > 0 {
		t.Errorf("a held workspace launched %v", claimed)
	}
}

// Workers get nothing of a held workspace, neither what is offered already nor what is due.
func TestNoWorkerGetsARunOfAHeldWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	offered := w.offered(w.wake(w.agent("gpu", pulled("gpu"))))
	w.wake(w.agent("gpu2", pulled("gpu")))
	w.holdAll()
	if lease := w.acquire("gpu"); lease != nil {
		t.Errorf("a worker got %s", lease.RunID)
	}
	lease, err := w.startOffered(t.Context(), Attempt{RunID: offered, Number: 1}, Acquire{WorkspaceID: w.workspace, Queue: "gpu"})
	if w.ok(err); lease != nil {
		t.Error("a worker that had found the offer before the hold got it")
	}
	w.release()
	if lease := w.acquireOne("gpu"); lease.RunID != offered {
		t.Errorf("after the release a worker got %s, want the older run", lease.RunID)
	}
	w.sound()
}

// A hold may ask all live runs to end; those that wait for a worker end at once. A second call asks nobody twice.
func TestAHoldAsksLiveRunsToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	waits := w.offered(w.wake(w.agent("gpu", pulled("gpu"))))
	w.wake(w.agent("worker"))
	live := w.claimOne()
	cancel := func(in *HoldWorkspace) { in.CancelLive = true }
	held := w.holdAll(cancel)
	if held.Count != 2 || len(held.AskedToEnd) != 2 {
		t.Errorf("it asked %+v to end, want both", held)
	}
	w.wantRun(waits, domain.RunStatusCancelled, "")
	if !one[bool](w, `SELECT cancel_requested_at IS NOT NULL AND cancel_note = 'incident' FROM runs WHERE id = $1`, live.RunID) {
		t.Error("the live run was not asked to end")
	}
	if again := w.holdAll(cancel); again.Count != 0 {
		t.Errorf("the second call asked %+v", again)
	}
	w.ok(w.Cancelled(t.Context(), live.Attempt, Unfinished{}))
	w.wantRun(live.RunID, domain.RunStatusCancelled, "")
	w.sound()
}
