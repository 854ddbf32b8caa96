package liveness

import (
	"testing"
	"time"
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
		want  Verdict
	}{
		{"AC-OFFICE-LOOP-LIVENESS-004.3 C96 unpublished activation", Facts{DeadTriggers: 1, StuckRuns: 1, EligibleTriggers: 1}, Unknown},
		{"AC-OFFICE-LOOP-LIVENESS-004.4 C96 one overdue and one stuck", Facts{ActivatedAt: active, DeadTriggers: 1, StuckRuns: 1, EligibleTriggers: 1}, Dead},
		{"AC-OFFICE-LOOP-LIVENESS-004.5 C96 one stuck", Facts{ActivatedAt: active, StuckRuns: 1, EligibleTriggers: 1}, Degraded},
		{"AC-OFFICE-LOOP-LIVENESS-004.5 C96 one silent success", Facts{ActivatedAt: active, SilentSuccesses: 1, EligibleTriggers: 1}, Degraded},
		{"AC-OFFICE-LOOP-LIVENESS-004.6 C96 empty workspace", Facts{ActivatedAt: active}, NotArmed},
		{"AC-OFFICE-LOOP-LIVENESS-004.1 C96 one armed trigger", Facts{ActivatedAt: active, EligibleTriggers: 1}, Healthy},
		{"degraded comes before not armed", Facts{ActivatedAt: active, StuckRuns: 1}, Degraded},
	} {
		if got := Judge(c.facts); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestVerdictPrecedence is AC-OFFICE-LOOP-LIVENESS-004.2: every combination of facts gives the first verdict that matches.
func TestVerdictPrecedence(t *testing.T) {
	for mask := range 32 {
		has := func(bit int) int { return mask >> bit & 1 }
		f := Facts{DeadTriggers: has(1), StuckRuns: has(2), SilentSuccesses: has(3), EligibleTriggers: has(4)}
		if has(0) == 1 {
			f.ActivatedAt = ago(time.Hour)
		}
		want := Healthy
		for _, rule := range []struct {
			matches bool
			verdict Verdict
		}{{f.EligibleTriggers == 0, NotArmed}, {f.StuckRuns+f.SilentSuccesses > 0, Degraded}, {f.DeadTriggers > 0, Dead}, {f.ActivatedAt == nil, Unknown}} {
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
		t    Trigger
		want TriggerCondition
		late time.Duration
	}{
		{"C98 due 2m59s ago", Trigger{NextRunAt: ago(179 * time.Second), CreatedAt: made}, OnTime, 0},
		{"C98 due 3m01s ago", Trigger{NextRunAt: ago(181 * time.Second), CreatedAt: made}, Overdue, 181 * time.Second},
		{"due exactly the grace ago", Trigger{NextRunAt: ago(180 * time.Second), CreatedAt: made}, OnTime, 0},
		{"AC-OFFICE-LOOP-LIVENESS-004.15 C97 no next slot, fired 4 min ago", Trigger{LastFiredAt: ago(4 * time.Minute), CreatedAt: made}, Claiming, 0},
		{"C97 no next slot, fired 6 min ago", Trigger{LastFiredAt: ago(6 * time.Minute), CreatedAt: made}, Stranded, 6 * time.Minute},
		{"never fired and made a day ago", Trigger{CreatedAt: made}, Stranded, 24 * time.Hour},
		{"never fired and just made", Trigger{CreatedAt: now}, Claiming, 0},
		{"in the future", Trigger{NextRunAt: ago(-time.Hour), CreatedAt: made}, OnTime, 0},
	} {
		got := c.t.Condition(now)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if (got == Overdue || got == Stranded) && c.t.LateBy(now) != c.late {
			t.Errorf("%s: late by %s, want %s", c.name, c.t.LateBy(now), c.late)
		}
	}
}

func TestQueuedRuns(t *testing.T) {
	for _, c := range []struct {
		name     string
		asked    *time.Time
		eligible []time.Time
		want     bool
	}{
		{"asked 10 min ago, nothing held it", ago(10 * time.Minute), nil, true},
		{"asked exactly the grace ago", ago(QueuedGrace), nil, false},
		{"AC-OFFICE-LOOP-LIVENESS-004.17 C99 a retry that passed 1 min ago", ago(time.Hour), []time.Time{*ago(time.Minute)}, false},
		{"AC-OFFICE-LOOP-LIVENESS-004.17 C99 a retry that passed 3 min ago", ago(time.Hour), []time.Time{*ago(3 * time.Minute)}, true},
		{"rested until a moment ago, parked before", ago(time.Hour), []time.Time{*ago(30 * time.Minute), *ago(time.Second)}, false},
		{"zero instants do not count", ago(10 * time.Minute), []time.Time{{}, {}}, true},
	} {
		if got := QueuedStuck(QueueEligible(*c.asked, c.eligible...), now); got != c.want {
			t.Errorf("%s: stuck is %v", c.name, got)
		}
	}
}

func TestClaimedRuns(t *testing.T) {
	for _, c := range []struct {
		name string
		run  Claimed
		want bool
	}{
		{"C100 claimed 11 min ago, lease not renewed", Claimed{ClaimedAt: ago(11 * time.Minute), SignOfLife: ago(640 * time.Second)}, true},
		{"C100 claimed 11 min ago, no lease", Claimed{ClaimedAt: ago(11 * time.Minute)}, true},
		{"C100 claimed_at NULL", Claimed{}, true},
		{"C100 stuck for 3 days", Claimed{ClaimedAt: ago(72 * time.Hour)}, true},
		{"C100 claimed 3 h ago, lease renewed 10 s ago", Claimed{ClaimedAt: ago(3 * time.Hour), SignOfLife: ago(-10 * time.Second)}, false},
		{"claimed 9 min ago", Claimed{ClaimedAt: ago(9 * time.Minute)}, false},
		{"exactly the grace", Claimed{ClaimedAt: ago(ClaimedGrace)}, false},
	} {
		if got := c.run.Stuck(now); got != c.want {
			t.Errorf("%s: stuck is %v", c.name, got)
		}
	}
}

func TestWindow(t *testing.T) {
	for _, c := range []struct {
		name            string
		finished, asked *time.Time
		want            bool
	}{
		{"AC-OFFICE-LOOP-LIVENESS-004.16 ended inside, asked for before", ago(23 * time.Hour), ago(48 * time.Hour), true},
		{"AC-OFFICE-LOOP-LIVENESS-004.16 ended before", ago(25 * time.Hour), ago(26 * time.Hour), false},
		{"AC-OFFICE-LOOP-LIVENESS-004.16 no end, asked for inside", nil, ago(time.Hour), true},
		{"AC-OFFICE-LOOP-LIVENESS-004.16 no end, asked for before", nil, ago(25 * time.Hour), false},
	} {
		if got := InWindow(Terminal(c.finished, *c.asked), now); got != c.want {
			t.Errorf("%s: in the window is %v", c.name, got)
		}
	}
}
