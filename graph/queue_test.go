package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

type waiting struct {
	Hold      string
	Until     *time.Time
	BlockedBy []struct{ ID string }
}

type waitingRun struct {
	ID      string
	Status  string
	Waiting *waiting
}

// wakeRun wakes an agent through the store and returns the run.
func (w *world) wakeRun(agent string) string {
	w.t.Helper()
	made, err := w.store.Wake(w.t.Context(), store.Wake{WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(agent), UserID: "ann"})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.Route(w.t.Context(), xid.ID(agent)); err != nil {
		w.t.Fatal(err)
	}
	var run string
	if err := w.db.QueryRowContext(w.t.Context(), `SELECT run_id FROM wakeup_requests WHERE id = $1`, made.ID).Scan(&run); err != nil {
		w.t.Fatal(err)
	}
	return run
}

// wakeUnrouted wakes an agent while somebody holds its lane, which a wake does not wait for.
func (w *world) wakeUnrouted(agent string) store.Made {
	w.t.Helper()
	holder, err := w.db.BeginTx(w.t.Context(), nil)
	if err == nil {
		_, err = holder.ExecContext(w.t.Context(), `SELECT 1 FROM agent_lanes WHERE agent_id = $1 FOR UPDATE`, agent)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	made, err := w.store.Wake(w.t.Context(), store.Wake{WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(agent), UserID: "bob"})
	if err := errors.Join(err, holder.Rollback()); err != nil {
		w.t.Fatal(err)
	}
	return made
}

func TestRunsAndRequestsSayWhyTheyWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	live := w.wakeRun(agent)
	if claimed, err := w.store.Claim(t.Context(), store.Owner{ID: xid.New("prc")}, 1, time.Minute); err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	w.sql(`UPDATE runs SET started_at = clock_timestamp() WHERE id = $1`, live)
	behind := w.wakeRun(agent) // the same scope
	unrouted := w.wakeUnrouted(agent)
	idle := w.wakeRun(w.agent("idle"))

	var out struct {
		Live, Behind, Idle waitingRun
		Unrouted, Routed   waitingRun
	}
	w.Do(t.Context(), fmt.Sprintf(`{
  live: run(id: %q) { ...w } behind: run(id: %q) { ...w } idle: run(id: %q) { ...w }
  unrouted: wakeupRequest(id: %q) { id status waiting { hold until blockedBy { id } } }
} fragment w on Run { id status waiting { hold until blockedBy { id } } }`, live, behind, idle, unrouted.ID), nil, &out)
	if out.Live.Waiting != nil {
		t.Errorf("a live run waits: %+v", out.Live.Waiting)
	}
	if x := out.Behind.Waiting; x == nil || x.Hold != "SCOPE_BUSY" || len(x.BlockedBy) != 1 || x.BlockedBy[0].ID != live || x.Until != nil {
		t.Errorf("C307 the run behind the live one waits %+v, want SCOPE_BUSY by %s", x, live)
	}
	if x := out.Idle.Waiting; x == nil || x.Hold != "NONE" {
		t.Errorf("the idle agent's run waits %+v, want NONE", x)
	}
	if x := out.Unrouted.Waiting; x == nil || x.Hold != "ROUTING" {
		t.Errorf("the unrouted request waits %+v, want ROUTING", x)
	}

	w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = '2126-01-01Z' WHERE id = $1`, idle)
	var list struct {
		Workspace struct {
			Runs           struct{ Edges []struct{ Node waitingRun } }
			WakeupRequests struct{ Edges []struct{ Node waitingRun } }
		}
	}
	w.Do(t.Context(), `{ workspace(slug: "test") {
  runs(first: 100) { edges { node { id status waiting { hold until } } } }
  wakeupRequests(first: 100) { edges { node { id status waiting { hold until } } } } } }`, nil, &list)
	holds := map[string]string{}
	for _, e := range append(list.Workspace.Runs.Edges, list.Workspace.WakeupRequests.Edges...) {
		if e.Node.Waiting != nil {
			holds[e.Node.ID] = e.Node.Waiting.Hold
		}
		if e.Node.ID == idle && (e.Node.Waiting.Until == nil || e.Node.Waiting.Until.Year() != 2126) {
			t.Errorf("C68 the retry waits until %v", e.Node.Waiting.Until)
		}
	}
	if holds[idle] != "BACKOFF" || holds[behind] != "SCOPE_BUSY" || holds[string(unrouted.ID)] != "ROUTING" || len(holds) != 5 {
		t.Errorf("the lists say %v", holds) // with the two requests of the queued runs
	}
}

type stats struct {
	Claimable, Held, Retrying, Claimed, FinishedLastHour, FailedLastHour int
	OldestClaimableAge, WaitP50, WaitP99                                 *string
}

func TestQueueNumbersAreStreamedAtEachChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("echo")
	const numbers = `{ claimable held retrying claimed finishedLastHour failedLastHour oldestClaimableAge waitP50 waitP99 at }`
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream := w.Subscribe(ctx, `subscription($id: ID!) { queueStats(workspaceId: $id) `+numbers+` }`, map[string]any{"id": w.workspace})
	var got struct{ QueueStats stats }
	next := func() {
		t.Helper()
		got.QueueStats = stats{}
		data, errs := stream()
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	}
	next()
	if got.QueueStats != (stats{}) {
		t.Errorf("an empty queue has %+v", got.QueueStats)
	}
	w.wakeRun(agent)
	next()
	if s := got.QueueStats; s.Claimable != 1 || s.Held != 0 || s.OldestClaimableAge == nil || s.WaitP50 != nil {
		t.Errorf("with one due run %+v", s)
	}
	claimed, err := w.store.Claim(t.Context(), store.Owner{ID: xid.New("prc")}, 1, time.Minute)
	if err != nil || len(claimed) != 1 || claimed[0].Launch == nil {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	w.wakeRun(agent)
	for got.QueueStats.Held != 1 {
		next()
	}
	if s := got.QueueStats; s.Claimable != 0 || s.Claimed != 1 || s.OldestClaimableAge != nil {
		t.Errorf("with one live and one waiting run %+v", s)
	}
	if err := w.store.Finish(t.Context(), claimed[0].Attempt, store.Success{}); err != nil {
		t.Fatal(err)
	}
	next()
	if s := got.QueueStats; s.FinishedLastHour != 1 || s.Claimed != 0 || s.WaitP50 == nil || s.WaitP99 == nil {
		t.Errorf("after the end %+v", s)
	}
	var now struct{ Workspace struct{ QueueStats stats } }
	w.Do(t.Context(), `{ workspace(slug: "test") { queueStats `+numbers+` } }`, nil, &now)
	if now.Workspace.QueueStats.FinishedLastHour != 1 {
		t.Errorf("the query says %+v", now.Workspace.QueueStats)
	}
}
