package store

import (
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// worked lets what has happened so far have happened an hour ago.
func (w *heavyWorld) worked() {
	w.sql(`UPDATE runs SET requested_at = requested_at - interval '1 hour', finished_at = finished_at - interval '1 hour'`)
	w.sql(`UPDATE run_attempts SET finished_at = finished_at - interval '1 hour'`)
	w.sql(`UPDATE routine_runs SET started_at = started_at - interval '1 hour'`)
}

// held fires the routine twice, so long ago, into a fire that is active.
func (w *heavyWorld) held(ago time.Duration) {
	w.Helper()
	for range 2 {
		id := w.fires(domain.RoutineRunStatusCoalesced)
		w.sql(`UPDATE routine_runs SET started_at = clock_timestamp() - make_interval(secs => $2) WHERE id = $1`, id, ago.Seconds())
	}
}

// wantGate checks that the one fire that holds others is evidence.
func (w *heavyWorld) wantGate(condition domain.LoopGateCondition, fire, task, run xid.ID) {
	w.Helper()
	l := w.wantVerdict(domain.LoopVerdictDegraded)
	if l.Gates.Total != 1 || len(l.Gates.Rows) != 1 {
		w.Fatalf("the gates are %+v", l.Gates)
	}
	g := l.Gates.Rows[0]
	type gate struct {
		fire, task, run xid.ID
		condition       domain.LoopGateCondition
		fires           int
	}
	if got, want := (gate{g.ID, g.TaskID, g.RunID, g.Condition, g.Fires}), (gate{fire, task, run, condition, 2}); got != want {
		w.Errorf("the gate is %+v, want %+v", got, want)
	}
	if held := l.EvaluatedAt.Sub(g.Since); held < liveGrace {
		w.Errorf("the gate has held for %s only", held)
	}
}

const liveGrace = domain.StrandedGrace

// Fires that are merged into one of which nothing is on its way are evidence after the grace: DEGRADED.
func TestFiresHeldByOneWithoutWorkAreEvidence(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		stop      func(w *heavyWorld, c Claimed)
		condition domain.LoopGateCondition
		parked    bool
	}{
		"its agent moved the task to BLOCKED": {func(w *heavyWorld, c Claimed) { w.finishAsking(c, moveAction("BLOCKED")) }, domain.LoopGateConditionNoLiveRun, false},
		"its agent asked a question": {func(w *heavyWorld, c Claimed) {
			w.finishAsking(c, map[string]any{"type": "request_approval", "question": "May I?"})
		}, domain.LoopGateConditionNoLiveRun, false},
		"its run waits for a rate limit of two days": {func(w *heavyWorld, c Claimed) {
			w.ok(w.Fail(w.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "rate limit reached, try again later"}))
			w.sql(`UPDATE runs SET parked_reason = 'RATE_LIMIT', parked_until = clock_timestamp() + interval '2 days'`)
		}, domain.LoopGateConditionRunParked, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHeavyWorld(t)
			w.sql(`UPDATE routine_triggers SET next_run_at = clock_timestamp() + interval '1 minute'`)
			first := w.fires(domain.RoutineRunStatusTaskCreated)
			c := w.claimOne()
			w.start(c)
			w.ok(w.RecordSession(t.Context(), c.Attempt, "session"))
			w.held(time.Hour) // while it was worked on: no evidence
			row.stop(w, c)
			w.worked()
			w.wantVerdict(domain.LoopVerdictHealthy)
			w.held(liveGrace - time.Minute)
			w.wantVerdict(domain.LoopVerdictHealthy)
			w.sql(`DELETE FROM routine_runs WHERE held_by_id = $1`, first)
			w.held(liveGrace + time.Minute)
			run := xid.ID("")
			if row.parked {
				run = c.RunID
			}
			w.wantGate(row.condition, first, w.onlyTask(), run)
		})
	}
}

// What an earlier version left behind, a fire whose task's run gave up long ago, is evidence as well, until the repair ends it.
func TestFiresHeldByAnEarlierVersionAreEvidenceUntilTheRepair(t *testing.T) {
	t.Parallel()
	w := newHeavyWorld(t)
	w.sql(`UPDATE routine_triggers SET next_run_at = clock_timestamp() + interval '1 minute'`)
	first := w.fires(domain.RoutineRunStatusTaskCreated)
	c := w.claimOne()
	w.start(c)
	w.held(10 * time.Minute)
	w.failForGood(c)
	w.sql(`UPDATE runs SET finished_at = clock_timestamp() - interval '9 days', requested_at = clock_timestamp() - interval '9 days'`)
	w.sql(`UPDATE routine_runs SET status = 'TASK_CREATED', completed_at = NULL, error = NULL, started_at = clock_timestamp() - interval '9 days' WHERE id = $1`, first)
	w.wantGate(domain.LoopGateConditionNoLiveRun, first, w.onlyTask(), "")
	_, err := w.Repair(t.Context())
	w.ok(err)
	w.wantFire("after the repair", first, "FAILED ended")
	w.wantVerdict(domain.LoopVerdictHealthy)
}

// Fires that wait for an agent which somebody paused are no evidence: the agent says so.
func TestFiresHeldByAPauseAreNoEvidence(t *testing.T) {
	t.Parallel()
	w := newHeavyWorld(t)
	w.sql(`UPDATE routine_triggers SET next_run_at = clock_timestamp() + interval '1 minute'`)
	w.fires(domain.RoutineRunStatusTaskCreated)
	w.pause(w.agent)
	w.claim(1)
	w.worked()
	w.held(time.Hour / 2)
	w.wantVerdict(domain.LoopVerdictHealthy)
}

// The same of a lightweight routine whose run is parked for long; the inbox tells of it once.
func TestFiresHeldByAParkedRunAreEvidence(t *testing.T) {
	t.Parallel()
	for name, parked := range map[string]domain.ParkedReason{"a rate limit": domain.ParkedReasonRateLimit, "a worker": domain.ParkedReasonNoWorker, "a guard": domain.ParkedReasonGuardError} {
		t.Run(name, func(t *testing.T) {
			w := newHeavyWorld(t, func(r *CreateRoutine) { r.TaskTemplate = nil })
			w.sql(`UPDATE routine_triggers SET next_run_at = clock_timestamp() + interval '1 minute'`)
			first := w.fires(domain.RoutineRunStatusEnqueued)
			run := w.onlyRun()
			w.sql(`UPDATE runs SET parked_reason = $1, parked_until = clock_timestamp() + interval '2 days'`, parked)
			w.sql(`UPDATE agent_lanes SET head_id = NULL, head_at = NULL`)
			w.worked()
			for range 2 {
				id, status := w.fireByClock()
				if status != domain.RoutineRunStatusCoalesced {
					t.Errorf("the fire is %s", status)
				}
				w.sql(`UPDATE routine_runs SET started_at = clock_timestamp() - interval '6 minutes' WHERE id = $1`, id)
			}
			w.sql(`UPDATE runs SET parked_reason = $1, parked_until = clock_timestamp() + interval '2 days'`, parked)
			w.wantGate(domain.LoopGateConditionRunParked, first, "", run)
			if n := one[int](w.world, `SELECT count(*) FROM inbox_items WHERE kind = 'FIRES_WAIT'`); n != 1 {
				t.Errorf("the inbox tells of it %d times", n)
			}
		})
	}
}

// fireByClock fires the routine as its schedule does: nobody waits.
func (w *heavyWorld) fireByClock() (id xid.ID, status domain.RoutineRunStatus) {
	w.Helper()
	w.sql(`UPDATE routine_triggers SET next_run_at = ` + lastSlot)
	w.sql(`UPDATE routine_runs SET fire_key = fire_key || ':earlier'`)
	_, err := w.FireDue(w.Context(), one[xid.ID](w.world, `SELECT id FROM routine_triggers`))
	w.ok(err)
	w.route(w.agent)
	id = one[xid.ID](w.world, `SELECT id FROM routine_runs ORDER BY id DESC LIMIT 1`)
	return id, one[domain.RoutineRunStatus](w.world, `SELECT status FROM routine_runs WHERE id = $1`, id)
}
