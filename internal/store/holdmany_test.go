package store

import (
	"slices"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

func (w *world) agentsIn(ids ...xid.ID) []AgentIn {
	list := make([]AgentIn, len(ids))
	for i, id := range ids {
		list[i] = AgentIn{w.workspace, id}
	}
	return list
}

// Several agents are held and let go together, and what the holds dropped comes again, as after a resume of each.
func TestSeveralAgentsAreHeldAndResumedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, stopped := w.agent("a"), w.agent("b"), w.agent("c")
	w.ok(w.StopAgent(t.Context(), HoldAgent{WorkspaceID: w.workspace, AgentID: stopped}))
	w.pause(b)
	changed, err := w.PauseAgents(t.Context(), w.agentsIn(b, a, stopped), "lunch")
	if w.ok(err); !slices.Equal(changed, []xid.ID{a}) {
		t.Errorf("it paused %v, want the one that nobody held", changed)
	}
	dropped := w.wake(a)
	for range 3 {
		w.claim(10)
	}
	w.wantRequest(dropped, domain.WakeupStatusFinished)
	changed, err = w.ResumeAgents(t.Context(), w.agentsIn(a, b, stopped))
	if w.ok(err); !slices.Equal(changed, []xid.ID{a, b, stopped}) {
		t.Errorf("it resumed %v, want all", changed)
	}
	w.ok(w.SettleBacklog(t.Context()))
	w.route(a)
	w.wantRequest(dropped, domain.WakeupStatusQueued)
	if claimed := w.claim(10); len(claimed) != 1 || claimed[0].AgentID != a {
		t.Errorf("claimed %v, want what the hold had dropped", claimed)
	}
	w.sound()
}

// One that is not there, or another workspace's, refuses the whole call, with its place in the list.
func TestAnUnknownAgentHoldsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, gone := w.agent("a"), w.agent("gone")
	w.ok(w.DeleteAgent(t.Context(), w.workspace, gone))
	for _, id := range []xid.ID{"agt_none", gone} {
		_, err := w.PauseAgents(t.Context(), w.agentsIn(a, id), "")
		w.refused(err, domain.UserErrorCodeNotFound)
	}
	_, err := w.PauseAgents(t.Context(), []AgentIn{{"wsp_other", a}}, "")
	w.refused(err, domain.UserErrorCodeNotFound)
	if got := one[string](w, `SELECT status FROM agent_lanes WHERE agent_id = $1`, a); got != "IDLE" {
		t.Errorf("the other agent is %s", got)
	}
}

// As many statements hold a hundred agents as one.
func TestManyAgentsAreHeldInAsManyStatementsAsOne(t *testing.T) {
	t.Parallel()
	db, k := keepingDB(t)
	w := newWorldOn(t, db)
	var ids []xid.ID
	for range 20 {
		ids = append(ids, w.agent(string(xid.New("x"))))
	}
	pausing := func(ids ...xid.ID) int {
		return len(k.during(func() {
			changed, err := w.PauseAgents(t.Context(), w.agentsIn(ids...), "")
			if w.ok(err); len(changed) != len(ids) {
				t.Errorf("it paused %d of %d", len(changed), len(ids))
			}
		}))
	}
	if ofOne, ofMany := pausing(ids[0]), pausing(ids[1:]...); ofMany > ofOne {
		t.Errorf("%d statements for many, %d for one", ofMany, ofOne)
	}
}

// Routines are paused and resumed together; an archived one refuses the whole call.
func TestSeveralRoutinesArePausedAndResumedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("a")
	w.routine(agent, nil)
	w.routine(w.agent("b"), nil)
	ids := w.texts(`SELECT id FROM routines ORDER BY id`)
	in := []RoutineIn{{w.workspace, xid.ID(ids[1])}, {w.workspace, xid.ID(ids[0])}}
	changed, err := w.PauseRoutines(t.Context(), in)
	if w.ok(err); len(changed) != 2 {
		t.Errorf("it paused %v", changed)
	}
	w.sql(`UPDATE routine_triggers SET next_run_at = clock_timestamp() - interval '1 day'`)
	w.ok(w.ResumeRoutine(t.Context(), w.workspace, in[0].RoutineID))
	changed, err = w.ResumeRoutines(t.Context(), in)
	if w.ok(err); !slices.Equal(changed, []xid.ID{in[1].RoutineID}) {
		t.Errorf("it resumed %v, want the one that was paused", changed)
	}
	if n := one[int](w, `SELECT count(*) FROM routine_triggers WHERE next_run_at > clock_timestamp()`); n != 2 {
		t.Errorf("%d schedules go on from now, want 2", n)
	}
	w.ok(w.ArchiveRoutine(t.Context(), w.workspace, in[0].RoutineID))
	_, err = w.PauseRoutines(t.Context(), in)
	w.refused(err, domain.UserErrorCodeInvalidState)
	if got := one[string](w, `SELECT status FROM routines WHERE id = $1`, in[1].RoutineID); got != "ACTIVE" {
		t.Errorf("the other routine is %s", got)
	}
}
