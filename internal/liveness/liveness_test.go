package liveness

import (
	"maps"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *time.Time {
	at := now.Add(-d)
	return &at
}

func TestVerdict(t *testing.T) {
	active := ago(time.Hour)
	for _, c := range []struct {
		name  string
		facts Facts
		want  domain.LoopVerdict
	}{
		{"AC-OFFICE-LOOP-LIVENESS-004.3 C96 unpublished activation", Facts{DeadTriggers: 1, StuckRuns: 1, EligibleTriggers: 1}, domain.LoopVerdictUnknown},
		{"AC-OFFICE-LOOP-LIVENESS-004.4 C96 one overdue and one stuck", Facts{ActivatedAt: active, DeadTriggers: 1, StuckRuns: 1, EligibleTriggers: 1}, domain.LoopVerdictDead},
		{"AC-OFFICE-LOOP-LIVENESS-004.5 C96 one stuck", Facts{ActivatedAt: active, StuckRuns: 1, EligibleTriggers: 1}, domain.LoopVerdictDegraded},
		{"AC-OFFICE-LOOP-LIVENESS-004.5 C96 one silent success", Facts{ActivatedAt: active, SilentSuccesses: 1, EligibleTriggers: 1}, domain.LoopVerdictDegraded},
		{"AC-OFFICE-LOOP-LIVENESS-004.6 C96 empty workspace", Facts{ActivatedAt: active}, domain.LoopVerdictNotArmed},
		{"AC-OFFICE-LOOP-LIVENESS-004.1 C96 one armed trigger", Facts{ActivatedAt: active, EligibleTriggers: 1}, domain.LoopVerdictHealthy},
		{"a workspace that a person holds is held, whatever waits in it", Facts{ActivatedAt: active, Held: true, StuckRuns: 1}, domain.LoopVerdictHeld},
		{"what is dead while it is held is dead all the same", Facts{ActivatedAt: active, Held: true, DeadTriggers: 1}, domain.LoopVerdictDead},
		{"degraded comes before not armed", Facts{ActivatedAt: active, StuckRuns: 1}, domain.LoopVerdictDegraded},
	} {
		if got := Judge(c.facts); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestVerdictPrecedence is AC-OFFICE-LOOP-LIVENESS-004.2: every combination of facts gives the first verdict that matches.
func TestVerdictPrecedence(t *testing.T) {
	for mask := range 128 {
		has := func(bit int) int { return mask >> bit & 1 }
		f := Facts{DeadTriggers: has(1), StuckRuns: has(2), SilentSuccesses: has(3), EligibleTriggers: has(4), Gates: has(5), Held: has(6) == 1}
		if has(0) == 1 {
			f.ActivatedAt = ago(time.Hour)
		}
		want := domain.LoopVerdictHealthy
		for _, rule := range []struct {
			matches bool
			verdict domain.LoopVerdict
		}{{f.EligibleTriggers == 0, domain.LoopVerdictNotArmed}, {f.StuckRuns+f.SilentSuccesses+f.Gates > 0, domain.LoopVerdictDegraded}, {f.Held, domain.LoopVerdictHeld}, {f.DeadTriggers > 0, domain.LoopVerdictDead}, {f.ActivatedAt == nil, domain.LoopVerdictUnknown}} {
			if rule.matches { // the last rule that matches is the first in precedence
				want = rule.verdict
			}
		}
		if got := Judge(f); got != want {
			t.Errorf("AC-OFFICE-LOOP-LIVENESS-004.2 %+v: %s, want %s", f, got, want)
		}
	}
}

func TestTriggerConditions(t *testing.T) {
	made := now.Add(-24 * time.Hour)
	for _, c := range []struct {
		name string
		t    domain.TriggerFacts
		want domain.TriggerCondition
		late time.Duration
	}{
		{"C98 due 2m59s ago", domain.TriggerFacts{Enabled: true, NextRunAt: ago(179 * time.Second), CreatedAt: made}, domain.TriggerConditionOnTime, 0},
		{"C98 due 3m01s ago", domain.TriggerFacts{Enabled: true, NextRunAt: ago(181 * time.Second), CreatedAt: made}, domain.TriggerConditionOverdue, 181 * time.Second},
		{"due exactly the grace ago", domain.TriggerFacts{Enabled: true, NextRunAt: ago(180 * time.Second), CreatedAt: made}, domain.TriggerConditionOnTime, 0},
		{"AC-OFFICE-LOOP-LIVENESS-004.15 C97 no next slot, fired 4 min ago", domain.TriggerFacts{Enabled: true, LastFiredAt: ago(4 * time.Minute), CreatedAt: made}, domain.TriggerConditionClaiming, 0},
		{"C97 no next slot, fired 6 min ago", domain.TriggerFacts{Enabled: true, LastFiredAt: ago(6 * time.Minute), CreatedAt: made}, domain.TriggerConditionStranded, 6 * time.Minute},
		{"never fired and made a day ago", domain.TriggerFacts{Enabled: true, CreatedAt: made}, domain.TriggerConditionStranded, 24 * time.Hour},
		{"never fired and just made", domain.TriggerFacts{Enabled: true, CreatedAt: now}, domain.TriggerConditionClaiming, 0},
		{"in the future", domain.TriggerFacts{Enabled: true, NextRunAt: ago(-time.Hour), CreatedAt: made}, domain.TriggerConditionOnTime, 0},
	} {
		got := c.t.Condition(now)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if dead := got == domain.TriggerConditionOverdue || got == domain.TriggerConditionStranded; dead && LateBy(c.t, now) != c.late {
			t.Errorf("%s: late by %s, want %s", c.name, LateBy(c.t, now), c.late)
		}
	}
}

func TestCutoffsAreOfOneInstant(t *testing.T) {
	got := CutoffsAt(now)
	want := Cutoffs{Now: now, Overdue: *ago(3 * time.Minute), Stranded: *ago(5 * time.Minute), Queued: *ago(2 * time.Minute), Claimed: *ago(10 * time.Minute), Window: *ago(24 * time.Hour)}
	if got != want {
		t.Errorf("AC-OFFICE-LOOP-LIVENESS-004.14 cutoffs are %+v, want %+v", got, want)
	}
}

// TestShapesAreTotal is AC-OFFICE-LOOP-LIVENESS-005.1 and 005.2: every combination of what is stored has exactly one shape,
// values that nobody enumerated too.
func TestShapesAreTotal(t *testing.T) {
	activated := now.Add(-time.Hour)
	known := map[domain.TerminalShape]bool{}
	for _, shape := range domain.TerminalShape("").Values() {
		known[domain.TerminalShape(shape)] = true
	}
	statuses := append(domain.RunStatus("").Values(), "", "EXPLODED", "finished")
	outcomes := append([]string{"", "processed", "no_agent_launched", "PROCESSED"}, domain.SkipOutcomes...)
	reasons := append(domain.EndReason("").Values(), "", "WHO_KNOWS")
	n := 0
	for _, status := range statuses {
		for _, outcome := range outcomes {
			for _, reason := range reasons {
				for _, session := range []string{"", "s"} {
					for _, at := range []*time.Time{nil, &activated, ago(-time.Hour)} {
						f := domain.ShapeFacts{Status: domain.RunStatus(status), Outcome: outcome, EndReason: domain.EndReason(reason), SessionID: session, RequestedAt: now, ActivatedAt: at}
						shape := domain.ShapeOf(f)
						terminal := f.Status != domain.RunStatusQueued && f.Status != domain.RunStatusClaimed
						switch {
						case !terminal && shape != "":
							t.Errorf("AC-OFFICE-LOOP-LIVENESS-005.9 a run that has not ended has the shape %s: %+v", shape, f)
						case terminal && !known[shape]:
							t.Errorf("AC-OFFICE-LOOP-LIVENESS-005.2 %+v has the shape %q", f, shape)
						case terminal && (at == nil || at.After(now)) != (shape == domain.TerminalShapePreActivation):
							t.Errorf("AC-OFFICE-LOOP-LIVENESS-005.6 %+v has the shape %s", f, shape)
						case shape == domain.TerminalShapeSilentSuccess && (session != "" || outcome != domain.OutcomeProcessed):
							t.Errorf("AC-OFFICE-LOOP-LIVENESS-005.4 %+v is a silent success", f)
						case session != "" && (shape == domain.TerminalShapeUnlaunchedSkipped || shape == domain.TerminalShapeUnlaunchedFailed),
							session == "" && (shape == domain.TerminalShapeLaunchedCompleted || shape == domain.TerminalShapeLaunchedFailed):
							t.Errorf("AC-OFFICE-LOOP-LIVENESS-005.3 %+v has the shape %s", f, shape)
						case shape == domain.TerminalShapeUnlaunchedSkipped && status == "FAILED", shape == domain.TerminalShapeUnlaunchedFailed && status != "FAILED":
							t.Errorf("AC-OFFICE-LOOP-LIVENESS-005.5 %+v has the shape %s", f, shape)
						}
						n++
					}
				}
			}
		}
	}
	t.Logf("%d combinations", n)
}

func TestShapeCountsListEveryShape(t *testing.T) {
	activated := now.Add(-time.Hour)
	facts := func(status domain.RunStatus, outcome, session string) domain.ShapeFacts {
		return domain.ShapeFacts{Status: status, Outcome: outcome, SessionID: session, RequestedAt: now, ActivatedAt: &activated}
	}
	got := CountShapes([]ShapeGroup{
		{facts(domain.RunStatusFinished, "processed", "s"), 3}, {facts(domain.RunStatusFinished, "processed", ""), 2},
		{facts(domain.RunStatusFailed, "", ""), 1}, {facts(domain.RunStatusClaimed, "", "s"), 9}, {facts(domain.RunStatusFinished, "idle_skipped", ""), 4},
	})
	want := map[domain.TerminalShape]int{"PRE_ACTIVATION": 0, "LAUNCHED_COMPLETED": 3, "LAUNCHED_FAILED": 0, "SILENT_SUCCESS": 2, "UNLAUNCHED_SKIPPED": 4, "UNLAUNCHED_FAILED": 1, "UNCLASSIFIED": 0}
	if !maps.Equal(got, want) {
		t.Errorf("AC-OFFICE-LOOP-LIVENESS-005.9 counts are %v, want %v", got, want)
	}
}

// TestTerminalShapes names the properties of the classification by the criteria that they prove.
func TestTerminalShapes(t *testing.T) {
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.1 and AC-OFFICE-LOOP-LIVENESS-005.2: every combination of stored values has exactly one shape of the closed set", TestShapesAreTotal)
	activated := now.Add(-time.Hour)
	shape := func(status domain.RunStatus, outcome, session string, reason domain.EndReason) domain.TerminalShape {
		return domain.ShapeOf(domain.ShapeFacts{Status: status, Outcome: outcome, SessionID: session, EndReason: reason, RequestedAt: now, ActivatedAt: &activated})
	}
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.3 a run that was launched is told from one that was not", func(t *testing.T) {
		for _, c := range []struct {
			status  domain.RunStatus
			outcome string
			reason  domain.EndReason
		}{
			{domain.RunStatusFinished, domain.OutcomeProcessed, ""}, {domain.RunStatusFinished, domain.OutcomeIdleSkipped, domain.EndReasonIdleSkipped},
			{domain.RunStatusFailed, "", domain.EndReasonRetriesExhausted}, {domain.RunStatusCancelled, "", domain.EndReasonCancelledByUser},
		} {
			if with, without := shape(c.status, c.outcome, "s", c.reason), shape(c.status, c.outcome, "", c.reason); with == without {
				t.Errorf("%s %s is %s with and without a session", c.status, c.outcome, with)
			}
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.4 success that no session proves is a silent success", func(t *testing.T) {
		if got := shape(domain.RunStatusFinished, domain.OutcomeProcessed, "", ""); got != domain.TerminalShapeSilentSuccess {
			t.Errorf("it is %s", got)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.5 a rightful skip is told from a launch that failed", func(t *testing.T) {
		for _, outcome := range domain.SkipOutcomes {
			if got := shape(domain.RunStatusFinished, outcome, "", ""); got != domain.TerminalShapeUnlaunchedSkipped {
				t.Errorf("%s is %s", outcome, got)
			}
		}
		if got := shape(domain.RunStatusFailed, "", "", domain.EndReasonNoExecutor); got != domain.TerminalShapeUnlaunchedFailed {
			t.Errorf("a run that nobody could launch is %s", got)
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-005.9 a run that has not ended has no shape", func(t *testing.T) {
		for _, status := range []domain.RunStatus{domain.RunStatusQueued, domain.RunStatusClaimed} {
			if got := shape(status, domain.OutcomeProcessed, "s", ""); got != "" {
				t.Errorf("%s has the shape %s", status, got)
			}
		}
	})
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.2 of all verdicts the first that matches counts", TestVerdictPrecedence)
	t.Run("AC-OFFICE-LOOP-LIVENESS-004.14 every threshold is applied to one instant", TestCutoffsAreOfOneInstant)
}
