package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/liveness"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// alive reads the verdict of the workspace.
func (w *world) alive() *reads.Liveness {
	w.Helper()
	l, err := w.Liveness(w.Context(), w.workspace)
	return must(w, l, err)
}

// on is the world for a subtest: what it finds wrong is the subtest's.
func (w *world) on(t *testing.T) *world {
	sub := *w
	sub.test = test{t}
	return &sub
}

func (w *world) wantVerdict(want domain.LoopVerdict) *reads.Liveness {
	w.Helper()
	l := w.alive()
	if l.Verdict != want {
		w.Errorf("the verdict is %s, want %s: %+v", l.Verdict, want, *l)
	}
	return l
}

// schedule makes a lightweight routine with a schedule that is not due, and returns its trigger.
func (w *world) schedule(agent xid.ID) xid.ID {
	w.Helper()
	trigger := w.routine(agent, nil)
	w.sql(`UPDATE routine_triggers SET next_run_at = clock_timestamp() + interval '1 minute' WHERE id = $1`, trigger)
	return trigger
}

// ended inserts an ended run, finished so long ago.
func (w *world) ended(agent xid.ID, status domain.RunStatus, outcome, session string, ago time.Duration) xid.ID {
	w.Helper()
	id := xid.New("run")
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, session_id, requested_at, claimed_at, finished_at)
VALUES ($1, $2, $3, 'cau', 'taskless', 'USER', 'EVENT', $4, NULLIF($5, ''), NULLIF($6, ''), clock_timestamp() - make_interval(secs => $7), clock_timestamp(), clock_timestamp() - make_interval(secs => $7))`,
		id, w.workspace, agent, status, outcome, session, ago.Seconds())
	return id
}

// activeSince moves the activation instant into the past, so that what a test inserts with an old instant counts.
func (w *world) activeSince(ago time.Duration) {
	w.Helper()
	w.sql(`UPDATE instance_facts SET value = (clock_timestamp() - make_interval(secs => $1))::text WHERE name = 'activation'`, ago.Seconds())
}

func TestLivenessVerdicts(t *testing.T) {
	t.Parallel()
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.13 an empty workspace is not armed, with empty lists", func(t *testing.T) {
		w := newWorld(t)
		l := w.wantVerdict(domain.LoopVerdictNotArmed)
		if l.Triggers.Total+l.StuckRuns.Total+l.SilentSuccesses.Total+l.EligibleTriggers != 0 || len(l.Shapes) != 7 || l.ActivatedAt == nil {
			t.Errorf("the evidence of an empty workspace is %+v", *l)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.1 an armed trigger and nothing wrong is healthy", func(t *testing.T) {
		w := newWorld(t)
		w.schedule(w.agent("worker"))
		if l := w.wantVerdict(domain.LoopVerdictHealthy); l.EligibleTriggers != 1 {
			t.Errorf("%d eligible triggers", l.EligibleTriggers)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.6 a trigger that is switched off arms nothing", func(t *testing.T) {
		w := newWorld(t)
		trigger := w.schedule(w.agent("worker"))
		w.sql(`UPDATE routine_triggers SET enabled = false, next_run_at = now() - interval '1 hour' WHERE id = $1`, trigger)
		w.wantVerdict(domain.LoopVerdictNotArmed)
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.3 without a published activation it is unknown", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker")
		w.sql(`UPDATE routine_triggers SET next_run_at = now() - interval '1 hour' WHERE id = $1`, w.schedule(agent))
		w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "", time.Minute)
		w.sql(`DELETE FROM instance_facts WHERE name = 'activation'`)
		l := w.wantVerdict(domain.LoopVerdictUnknown)
		if l.Triggers.Total != 1 || l.SilentSuccesses.Total != 0 || l.Shapes[domain.TerminalShapePreActivation] != 1 {
			t.Errorf("C95 C96 the evidence is %+v", *l)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.2 dead comes before degraded, degraded before not armed", func(t *testing.T) {
		w := newWorld(t)
		agent := w.agent("worker")
		w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "", 0)
		w.wantVerdict(domain.LoopVerdictDegraded)
		w.sql(`UPDATE routine_triggers SET next_run_at = now() - interval '1 hour' WHERE id = $1`, w.schedule(agent))
		w.wantVerdict(domain.LoopVerdictDead)
	})
}

func TestLivenessTriggers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, change string
		verdict      domain.LoopVerdict
		condition    domain.TriggerCondition
	}{
		{"AC-OFFICE-LOOP-LIVENESS-004.4 C98 due 3m01s ago is overdue, and the loop dead", `next_run_at = now() - interval '181 seconds'`, domain.LoopVerdictDead, domain.TriggerConditionOverdue},
		{"C98 due 2m50s ago is healthy", `next_run_at = now() - interval '170 seconds'`, domain.LoopVerdictHealthy, ""},
		{"AC-OFFICE-LOOP-LIVENESS-004.4 C97 no next slot and fired 6 min ago is stranded, and the loop dead",
			`next_run_at = NULL, last_fired_at = now() - interval '6 minutes'`, domain.LoopVerdictDead, domain.TriggerConditionStranded},
		{"AC-OFFICE-LOOP-LIVENESS-004.15 C97 no next slot and fired 4 min ago is in no list", `next_run_at = NULL, last_fired_at = now() - interval '4 minutes'`,
			domain.LoopVerdictHealthy, ""},
		{"a trigger that never fired is stranded from when it was made", `next_run_at = NULL, last_fired_at = NULL, created_at = now() - interval '6 minutes'`,
			domain.LoopVerdictDead, domain.TriggerConditionStranded},
		{"what another writer touched is as dead as before", `next_run_at = NULL, last_fired_at = now() - interval '6 minutes', updated_at = now()`,
			domain.LoopVerdictDead, domain.TriggerConditionStranded},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			trigger := w.schedule(w.agent("worker"))
			w.sql(`UPDATE routine_triggers SET `+c.change+` WHERE id = $1`, trigger)
			l := w.wantVerdict(c.verdict)
			switch {
			case c.condition == "" && l.Triggers.Total != 0:
				t.Errorf("the evidence is %+v", l.Triggers)
			case c.condition != "" && (len(l.Triggers.Rows) != 1 || l.Triggers.Rows[0].ID != trigger || l.Triggers.Rows[0].Condition != c.condition || l.Triggers.Rows[0].LateBy < 3*time.Minute):
				t.Errorf("the evidence is %+v, want the trigger as %s", l.Triggers, c.condition)
			}
		})
	}
}

func TestLivenessQueuedRuns(t *testing.T) {
	t.Parallel()
	old := `requested_at = now() - interval '10 minutes', due_at = now() - interval '10 minutes'`
	for _, c := range []struct {
		name    string
		prepare func(w *world, agent xid.ID)
		stuck   int
	}{
		{"AC-OFFICE-LOOP-LIVENESS-004.5 a claimable run that waits 10 min is stuck", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.sql(`UPDATE runs SET ` + old)
		}, 1},
		{"a claimable run that waits 1 min is not", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.sql(`UPDATE runs SET requested_at = now() - interval '1 minute'`)
		}, 0},
		{"AC-OFFICE-LOOP-LIVENESS-004.17 C99 one whose sibling is claimed is held back", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.claimOne()
			w.request(agent, scoped("task:t"))
			w.sql(`UPDATE runs SET ` + old + ` WHERE status = 'QUEUED'`)
		}, 0},
		{"AC-OFFICE-LOOP-LIVENESS-004.17 C99 a parked one is held back", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.sql(`UPDATE runs SET parked_reason = 'NO_WORKER', ` + old)
		}, 0},
		{"AC-OFFICE-LOOP-LIVENESS-004.17 C99 a retry in 5 min", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = now() + interval '5 minutes', ` + old)
		}, 0},
		{"AC-OFFICE-LOOP-LIVENESS-004.17 C99 a retry that passed 1 min ago", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = now() - interval '1 minute', ` + old)
		}, 0},
		{"AC-OFFICE-LOOP-LIVENESS-004.17 C99 a retry that passed 3 min ago", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = now() - interval '3 minutes', ` + old)
		}, 1},
		{"one that fell due a moment ago, after 10 min of parking", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = now() - interval '1 second', requested_at = now() - interval '10 minutes'`)
			w.ok(w.promoteDue(w.Context()))
		}, 0},
		{"an agent that rests holds it back", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.sql(`UPDATE runs SET ` + old)
			w.sql(`UPDATE agent_lanes SET eligible_at = now() + interval '1 minute'`)
		}, 0},
		{"an agent that has just rested held it back until then", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.sql(`UPDATE runs SET ` + old)
			w.sql(`UPDATE agent_lanes SET eligible_at = now() - interval '1 second'`)
		}, 0},
		{"a session that fell free a moment ago", func(w *world, agent xid.ID) {
			w.wake(agent)
			c := w.claimOne()
			w.request(agent, scoped("task:t"))
			w.sql(`UPDATE runs SET ` + old + ` WHERE status = 'QUEUED'`)
			w.start(c)
			w.finish(c)
		}, 0},
		{"a full workspace holds it back", func(w *world, agent xid.ID) {
			w.wake(agent)
			w.sql(`UPDATE runs SET ` + old)
			w.sql(`UPDATE workspace_lanes SET max_running = 0`)
		}, 0},
		{"a place in the workspace that fell free a moment ago", func(w *world, agent xid.ID) {
			w.sql(`UPDATE workspace_lanes SET max_running = 1`)
			w.wake(w.agent("other"))
			c := w.claimOne()
			w.wake(agent)
			w.sql(`UPDATE runs SET ` + old + ` WHERE status = 'QUEUED'`)
			w.start(c)
			w.finish(c)
		}, 0},
		{"one that waits for its scope is held back, and its holder counts once", func(w *world, agent xid.ID) {
			w.request(agent, scoped("task:t"))
			w.sql(`UPDATE runs SET parked_reason = 'BACKOFF', parked_until = now() - interval '5 minutes', ` + old)
			w.sql(`UPDATE agent_lanes SET max_sessions = 5, head_at = NULL, head_id = NULL`)
			w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, parked_reason, parked_until, requested_at)
SELECT 'run_later', workspace_id, agent_id, 'cau', scope, source, wake_class, 'QUEUED', 'BACKOFF', parked_until, requested_at + interval '1 second' FROM runs`)
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker")
			w.schedule(agent)
			c.prepare(w, agent)
			want := domain.LoopVerdictHealthy
			if c.stuck > 0 {
				want = domain.LoopVerdictDegraded
			}
			l := w.wantVerdict(want)
			if l.StuckRuns.Total != c.stuck || len(l.StuckRuns.Rows) != c.stuck {
				t.Errorf("%d runs are stuck, want %d: %+v", l.StuckRuns.Total, c.stuck, l.StuckRuns)
			}
			for _, row := range l.StuckRuns.Rows {
				if row.Condition != domain.LoopRunConditionQueuedStuck || l.EvaluatedAt.Sub(row.Since) < liveness.QueuedGrace {
					t.Errorf("the evidence is %+v", row)
				}
			}
		})
	}
}

func TestLivenessClaimedRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, change, lease string
		stuck               bool
	}{
		{"AC-OFFICE-LOOP-LIVENESS-004.5 C100 claimed 11 min ago, lease not renewed", `claimed_at = now() - interval '11 minutes'`, `now() - interval '640 seconds'`, true},
		{"C100 claimed_at NULL", `claimed_at = NULL`, `now() - interval '640 seconds'`, true},
		{"AC-OFFICE-LOOP-LIVENESS-004.5 C100 stuck for 3 days, far outside of the window", `claimed_at = now() - interval '3 days'`, `now() - interval '3 days'`, true},
		{"C100 claimed 3 h ago, lease renewed 10 s ago", `claimed_at = now() - interval '3 hours'`, `now() + interval '10 seconds'`, false},
		{"claimed 9 min ago", `claimed_at = now() - interval '9 minutes'`, `now() - interval '9 minutes'`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			agent := w.agent("worker")
			w.schedule(agent)
			w.wake(agent)
			run := w.claimOne().RunID
			w.sql(`ALTER TABLE runs DROP CONSTRAINT runs_claimed`) // no code of this program leaves claimed_at NULL
			w.sql(`UPDATE runs SET ` + c.change)
			w.sql(`UPDATE attempt_leases SET lease_until = ` + c.lease)
			if !c.stuck {
				w.wantVerdict(domain.LoopVerdictHealthy)
				return
			}
			l := w.wantVerdict(domain.LoopVerdictDegraded)
			if rows := l.StuckRuns.Rows; len(rows) != 1 || rows[0].ID != run || rows[0].Condition != domain.LoopRunConditionClaimedStuck {
				t.Errorf("the evidence is %+v", rows)
			}
		})
	}
}

func TestLivenessSilentSuccesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.activeSince(48 * time.Hour)
	w.schedule(agent)
	w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "s", time.Hour)
	w.ended(agent, domain.RunStatusFinished, domain.OutcomeIdleSkipped, "", time.Hour)
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.5 a rightful skip is no defect", func(t *testing.T) { w.on(t).wantVerdict(domain.LoopVerdictHealthy) })
	outside := w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "", 25*time.Hour)
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.16 one that ended before the window decides nothing", func(t *testing.T) { w.on(t).wantVerdict(domain.LoopVerdictHealthy) })
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.16 a terminal run without an end cannot be stored", func(t *testing.T) {
		if _, err := w.db.ExecContext(t.Context(), `UPDATE runs SET finished_at = NULL WHERE id = $1`, outside); err == nil {
			t.Error("a terminal run lost its end, and so escapes the window")
		}
	})
	inside := w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "", 23*time.Hour)
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.4 success without a session inside the window degrades, and is evidence", func(t *testing.T) {
		l := w.on(t).wantVerdict(domain.LoopVerdictDegraded)
		if rows := l.SilentSuccesses.Rows; len(rows) != 1 || rows[0].ID != inside || rows[0].Condition != domain.LoopRunConditionSilentSuccess {
			t.Errorf("the evidence is %+v", rows)
		}
	})
	w.activeSince(30 * time.Minute)
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.6 one older than the activation is no defect", func(t *testing.T) {
		if l := w.on(t).wantVerdict(domain.LoopVerdictHealthy); l.Shapes[domain.TerminalShapePreActivation] != 3 {
			t.Errorf("the shapes are %v", l.Shapes)
		}
	})
}

func TestLivenessShapes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.activeSince(time.Hour)
	for range 3 {
		w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "s", time.Minute)
	}
	w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "", time.Minute)
	w.ended(agent, domain.RunStatusFinished, domain.OutcomeBudgetBlocked, "", time.Minute)
	w.ended(agent, domain.RunStatusFailed, "", "", time.Minute)
	w.ended(agent, domain.RunStatusFailed, "", "s", time.Minute)
	w.ended(agent, domain.RunStatusFinished, "no_agent_launched", "", time.Minute)
	w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "s", 2*time.Hour)
	w.wake(agent)
	before := one[string](w, `SELECT string_agg(status || coalesce(outcome, ''), ' ' ORDER BY id) FROM runs`)
	l := w.alive()
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.7 shapes are counted apart, for the window", func(t *testing.T) {
		for shape, n := range map[domain.TerminalShape]int{"LAUNCHED_COMPLETED": 3, "SILENT_SUCCESS": 1, "UNLAUNCHED_SKIPPED": 1, "UNLAUNCHED_FAILED": 1,
			"LAUNCHED_FAILED": 1, "UNCLASSIFIED": 1, "PRE_ACTIVATION": 1} {
			if l.Shapes[shape] != n {
				t.Errorf("%d runs of shape %s, want %d", l.Shapes[shape], shape, n)
			}
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.9 a run that has not ended is in no count", func(t *testing.T) {
		sum := 0
		for _, n := range l.Shapes {
			sum += n
		}
		if sum != 9 {
			t.Errorf("%d runs have a shape, want the 9 that ended", sum)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.8 reading changes neither status nor outcome", func(t *testing.T) {
		if after := one[string](w, `SELECT string_agg(status || coalesce(outcome, ''), ' ' ORDER BY id) FROM runs`); after != before {
			t.Errorf("%s became %s", before, after)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.7 no message decides a shape", func(t *testing.T) {
		w.sql(`UPDATE runs SET error_message = 'processed; session s; no agent launched', summary = 'failed'`)
		if after := w.alive(); after.Shapes[domain.TerminalShapeSilentSuccess] != 1 || after.Shapes[domain.TerminalShapeLaunchedCompleted] != 3 {
			t.Errorf("texts changed the shapes: %v", after.Shapes)
		}
	})
}

func TestLivenessListsAreCappedAndOrdered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.activeSince(72 * time.Hour)
	w.sql(`INSERT INTO agents (id, workspace_id, name, role, skip_idle_wakeups) SELECT 'agt_' || lpad(i::text, 3, '0'), w.id, 'a' || i, 'WORKER', false FROM workspaces w, generate_series(1, 60) i`)
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, requested_at)
SELECT 'run_' || lpad(i::text, 3, '0'), w.id, 'agt_' || lpad(i::text, 3, '0'), 'cau', 'taskless', 'USER', 'EVENT', 'QUEUED', now() - i * interval '1 hour'
FROM workspaces w, generate_series(1, 60) i`)
	w.sql(`INSERT INTO agent_lanes (agent_id, workspace_id, head_at, head_id) SELECT agent_id, workspace_id, requested_at, id FROM runs`)
	agent := xid.ID("agt_001")
	for i := range 55 {
		w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "", time.Duration(i+1)*time.Minute)
	}
	w.sql(`INSERT INTO routines (id, workspace_id, name, assignee_id, variables) SELECT 'rtn_x', id, 'r', $1, '[]' FROM workspaces`, agent)
	w.sql(`INSERT INTO routine_triggers (id, workspace_id, routine_id, kind, enabled, cron, time_zone, next_run_at)
SELECT 'sch_' || lpad(i::text, 3, '0'), w.id, 'rtn_x', 'SCHEDULE', true, '* * * * *', 'UTC', CASE WHEN i % 2 = 0 THEN now() - i * interval '1 hour' END
FROM workspaces w, generate_series(1, 52) i`)
	w.sql(`UPDATE routine_triggers SET last_fired_at = now() - interval '3 days' WHERE next_run_at IS NULL`)
	l := w.wantVerdict(domain.LoopVerdictDead)
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.9 C101 60 stuck runs: 50 rows, 60 in total, the oldest first", func(t *testing.T) {
		if len(l.StuckRuns.Rows) != liveness.Cap || l.StuckRuns.Total != 60 || l.StuckRuns.Rows[0].ID != "run_060" || l.StuckRuns.Rows[49].ID != "run_011" {
			t.Errorf("%d rows of %d, from %v on", len(l.StuckRuns.Rows), l.StuckRuns.Total, l.StuckRuns.Rows[0])
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.9 55 silent successes: 50 rows, the newest first", func(t *testing.T) {
		rows := l.SilentSuccesses.Rows
		if len(rows) != liveness.Cap || l.SilentSuccesses.Total != 55 || !slices.IsSortedFunc(rows, func(a, b reads.EvidenceRun) int { return b.Since.Compare(a.Since) }) {
			t.Errorf("%d rows of %d", len(rows), l.SilentSuccesses.Total)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.7 overdue and stranded triggers are one list, each with its condition", func(t *testing.T) {
		rows := l.Triggers.Rows
		if len(rows) != liveness.Cap || l.Triggers.Total != 52 || rows[0].ID != "sch_001" || rows[0].Condition != domain.TriggerConditionStranded ||
			rows[49].Condition != domain.TriggerConditionOverdue || !slices.IsSortedFunc(rows, func(a, b reads.DeadTrigger) int { return int(b.LateBy - a.LateBy) }) {
			t.Errorf("%d rows of %d, from %+v to %+v", len(rows), l.Triggers.Total, rows[0], rows[len(rows)-1])
		}
	})
}

// TestLivenessReadsOnly reads the verdict on a connection that cannot write, and before and after compares every table.
func TestLivenessReadsOnly(t *testing.T) {
	t.Parallel()
	db, url := pgtest.NewURL(t)
	w := newWorldOn(t, db)
	agent := w.agent("worker")
	w.sql(`UPDATE routine_triggers SET next_run_at = now() - interval '1 hour' WHERE id = $1`, w.schedule(agent))
	w.wake(agent)
	w.sql(`UPDATE runs SET requested_at = now() - interval '10 minutes', due_at = NULL`)
	w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "", 0)
	separator := "?"
	if slices.Contains([]byte(url), '?') {
		separator = "&"
	}
	readOnly, err := postgres.Open(t.Context(), url+separator+"default_transaction_read_only=on")
	w.ok(err)
	t.Cleanup(func() { w.ok(readOnly.Close()) })
	reader := New(readOnly, Options{Events: w.events, Counters: metrics.New(), Log: w.log, Jitter: func() float64 { return 0 }})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.11 the read writes nothing and does nothing", func(t *testing.T) {
		if _, err := readOnly.ExecContext(t.Context(), `UPDATE runs SET revision = revision`); err == nil {
			t.Fatal("the connection can write")
		}
		w.events.events = nil
		l, err := reader.Liveness(t.Context(), w.workspace)
		w.ok(err)
		if l.Verdict != domain.LoopVerdictDead || l.StuckRuns.Total != 1 || l.SilentSuccesses.Total != 1 {
			t.Errorf("the verdict is %+v", *l)
		}
		if len(w.events.events) != 0 {
			t.Errorf("the read told others of %v", w.events.events)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.12 reads at the same moment agree", func(t *testing.T) {
		verdicts := make([]*reads.Liveness, 8)
		var all sync.WaitGroup
		for i := range verdicts {
			all.Go(func() {
				l, err := reader.Liveness(w.background(), w.workspace)
				if err != nil {
					t.Error(err)
				}
				verdicts[i] = l
			})
		}
		all.Wait()
		for _, l := range verdicts {
			if l == nil || l.Verdict != domain.LoopVerdictDead || len(l.Triggers.Rows) != l.Triggers.Total || l.Triggers.Rows[0].LateBy != l.EvaluatedAt.Sub(*l.Triggers.Rows[0].NextRunAt) {
				t.Errorf("a verdict is not of one instant: %+v", l)
			}
		}
	})
}

func TestLivenessFailsLoudly(t *testing.T) {
	t.Parallel()
	for input, breakIt := range map[string]string{
		"ACTIVATION":       `ALTER TABLE instance_facts RENAME TO hidden`,
		"TRIGGERS":         `ALTER TABLE routine_triggers RENAME COLUMN last_fired_at TO hidden`,
		"STUCK_RUNS":       `ALTER TABLE attempt_leases RENAME TO hidden`,
		"SILENT_SUCCESSES": `ALTER TABLE runs RENAME COLUMN silent TO hidden`,
		"GATES":            `ALTER TABLE routine_runs RENAME COLUMN held_by_id TO hidden`,
		"TERMINAL_SHAPES":  `ALTER TABLE runs RENAME COLUMN end_reason TO hidden`,
	} {
		t.Run(fmt.Sprintf("AC-OFFICE-LOOP-LIVENESS-004.10 C102 %s cannot be read", input), func(t *testing.T) {
			w := newWorld(t)
			w.sql(breakIt)
			l, err := w.Liveness(t.Context(), w.workspace)
			var unreadable *reads.UnreadableError
			if l != nil || !errors.As(err, &unreadable) || unreadable.Input != input {
				t.Errorf("got %+v, %v", l, err)
			}
			if n := w.counters.Workspace(w.workspace).LivenessReadFailures; n != 1 {
				t.Errorf("the failure was counted %d times", n)
			}
		})
	}
}

// TestLivenessNamesEachInput fails one statement after the other, so that each input is the one that cannot be read, also
// where two of them read the same table.
func TestLivenessNamesEachInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, faults := w.faulty()
	for i, input := range []string{"ACTIVATION", "TRIGGERS", "STUCK_RUNS", "SILENT_SUCCESSES", "GATES", "TERMINAL_SHAPES", "ELIGIBLE_TRIGGERS"} {
		t.Run(fmt.Sprintf("AC-OFFICE-LOOP-LIVENESS-004.10 C102 the answer to the statement of %s is lost", input), func(t *testing.T) {
			faults.left.Store(int64(i + 1))
			l, err := s.Liveness(t.Context(), w.workspace)
			var unreadable *reads.UnreadableError
			if l != nil || !errors.As(err, &unreadable) || unreadable.Input != input || !errors.Is(err, errFault) {
				t.Errorf("got %+v, %v", l, err)
			}
			if n := s.counters.Workspace(w.workspace).LivenessReadFailures; n != int64(i+1) {
				t.Errorf("%d failures were counted, want %d", n, i+1)
			}
		})
	}
}

// A watcher who goes away while a verdict is read is no failed reading.
func TestAVerdictThatNobodyWaitsForHasNotFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lock, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	defer func() { w.ok(lock.Rollback()) }()
	_, err = lock.ExecContext(t.Context(), `LOCK TABLE routine_triggers IN ACCESS EXCLUSIVE MODE`)
	w.ok(err)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := w.Liveness(ctx, w.workspace)
		ended <- err
	}()
	w.until("the reading waits", func() bool {
		return w.waitForLocks() > 0
	})
	leave()
	err = <-ended
	var unreadable *reads.UnreadableError
	if !errors.Is(err, context.Canceled) || errors.As(err, &unreadable) {
		t.Errorf("got %v", err)
	}
	if n := w.counters.Workspace(w.workspace).LivenessReadFailures; n != 0 {
		t.Errorf("%d failures were counted", n)
	}
}

func TestLivenessOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("worker")
	w.sql(`UPDATE routine_triggers SET next_run_at = now() - interval '1 hour' WHERE id = $1`, w.schedule(agent))
	w.wake(agent)
	w.sql(`UPDATE runs SET requested_at = now() - interval '10 minutes', due_at = NULL`)
	w.ended(agent, domain.RunStatusFinished, domain.OutcomeProcessed, "", 0)
	other, err := w.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Other"})
	w.ok(err)
	l, err := w.Liveness(t.Context(), other.ID)
	w.ok(err)
	if l.Verdict != domain.LoopVerdictNotArmed {
		t.Errorf("a defect of one workspace made another %s", l.Verdict)
	}
}

// TestLivenessDoesNotReadHistory compares the pages that the evidence costs with and without a long history.
func TestLivenessDoesNotReadHistory(t *testing.T) {
	t.Parallel()
	p, agent := newPlans(t)
	p.sql(`UPDATE routine_triggers SET next_run_at = now() - interval '1 hour' WHERE id = $1`, p.schedule(agent))
	workspace := `'` + string(p.workspace) + `'`
	day := `clock_timestamp() - interval '1 day'`
	statements := []struct{ name, query, types, args string }{
		{"liveness_triggers", reads.DeadTriggersQuery, "text, timestamptz, timestamptz, int", workspace + ", clock_timestamp(), clock_timestamp(), 50"},
		{"liveness_stuck", reads.StuckRunsQuery, "text, timestamptz, timestamptz, timestamptz, int", workspace + ", clock_timestamp(), clock_timestamp(), clock_timestamp(), 50"},
		{"liveness_silent", reads.SilentQuery, "text, timestamptz, timestamptz, int", workspace + ", " + day + ", '-infinity', 50"},
		{"liveness_shapes", reads.ShapesQuery, "text, timestamptz, timestamptz", workspace + ", " + day + ", '-infinity'"},
	}
	pages := func() map[string]int {
		each := map[string]int{}
		for _, s := range statements {
			each[s.name] = p.explain(s.name, s.args)
		}
		return each
	}
	for _, s := range statements {
		p.exec(`PREPARE ` + s.name + `(` + s.types + `) AS ` + s.query)
	}
	pages()
	p.exec(`SET session_replication_role = replica`)
	p.exec(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, outcome, session_id, requested_at, finished_at)
SELECT 'run_old' || i, $1, $2, 'cau', 'taskless', 'USER', 'EVENT', 'FINISHED', 'processed', CASE WHEN i % 1000 > 0 THEN 's' END,
  now() - interval '30 days' - i * interval '1 second', now() - interval '30 days' - i * interval '1 second' FROM generate_series(1, 30000) i`, p.workspace, agent)
	p.exec(`RESET session_replication_role`)
	cold := pages()
	p.sql(`ANALYZE`)
	warm := pages()
	t.Logf("pages with 30,000 old runs: never analysed %v, analysed %v", cold, warm)
	for name := range cold {
		if cold[name] > 100 || warm[name] > 100 {
			t.Errorf("%s touches %d pages with a long history, %d once analysed", name, cold[name], warm[name])
		}
	}
}
