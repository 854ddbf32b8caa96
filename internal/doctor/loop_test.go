package doctor

import (
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
)

func TestOnlyADeadLoopIsUnwell(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	dead := reads.TriggerEvidence{Total: 2, Rows: []reads.DeadTrigger{{ID: "sch_1", Condition: domain.TriggerConditionOverdue, LateBy: time.Hour}}}
	for _, c := range []struct {
		name   string
		read   reads.Liveness
		ok     bool
		detail string
	}{
		{"healthy", reads.Liveness{Verdict: domain.LoopVerdictHealthy}, true, "HEALTHY"},
		{"not armed", reads.Liveness{Verdict: domain.LoopVerdictNotArmed}, true, "NOT_ARMED"},
		{"degraded", reads.Liveness{Verdict: domain.LoopVerdictDegraded, StuckRuns: reads.RunEvidence{Total: 3}}, true, "3 runs are stuck"},
		{"dead", reads.Liveness{Verdict: domain.LoopVerdictDead, EvaluatedAt: now, Triggers: dead}, false, "2 due triggers did not fire, sch_1 is OVERDUE since 2026-11-29T11:00:00Z"},
	} {
		got := loopCheck(&c.read)
		if got.OK != c.ok || !strings.Contains(got.Detail, c.detail) || (got.Hint == "") != (c.read.Verdict == domain.LoopVerdictHealthy) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
