package domain

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWhenAScheduleMayFire(t *testing.T) {
	at, day := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), 24*time.Hour
	later := at.Add(day)
	base := TriggerSettings{Kind: TriggerKindSchedule, Cron: "0 9 * * *", TimeZone: "UTC"}
	for _, c := range []struct {
		name string
		of   func(*TriggerSettings)
		want string
	}{
		{"an expression alone", func(*TriggerSettings) {}, ""},
		{"one instant alone", func(s *TriggerSettings) { s.Cron, s.At = "", &at }, ""},
		{"neither", func(s *TriggerSettings) { s.Cron = "" }, "INVALID cron"},
		{"both", func(s *TriggerSettings) { s.At = &at }, "INVALID at"},
		{"one instant has no jitter", func(s *TriggerSettings) { s.Cron, s.At, s.Jitter = "", &at, time.Minute }, "INVALID jitter"},
		{"one instant has no bounds", func(s *TriggerSettings) { s.Cron, s.At, s.EndsAt = "", &at, &later }, "INVALID endsAt"},
		{"an end after the start", func(s *TriggerSettings) { s.StartsAt, s.EndsAt = &at, &later }, ""},
		{"an end at the start", func(s *TriggerSettings) { s.StartsAt, s.EndsAt = &at, &at }, "INVALID endsAt"},
		{"the longest jitter", func(s *TriggerSettings) { s.Jitter = MaxJitter }, ""},
		{"a longer jitter", func(s *TriggerSettings) { s.Jitter = MaxJitter + time.Second }, "OUT_OF_RANGE jitter"},
		{"a deadline of a second", func(s *TriggerSettings) { s.StartDeadline = new(time.Second) }, ""},
		{"a deadline of nothing", func(s *TriggerSettings) { s.StartDeadline = new(time.Duration(0)) }, "OUT_OF_RANGE startDeadline"},
		{"a date that there is", func(s *TriggerSettings) { s.SkipDates = []string{"2028-02-29"} }, ""},
		{"a date that there is not", func(s *TriggerSettings) { s.SkipDates = []string{"2026-12-25", "2026-02-29"} }, "INVALID skipDates.1"},
		{"more dates than a year has", func(s *TriggerSettings) { s.SkipDates = slices.Repeat([]string{"2026-12-25"}, maxSkipDates+1) }, "TOO_LONG skipDates"},
	} {
		s := base
		c.of(&s)
		var got []string
		for _, p := range CheckTiming(s) {
			got = append(got, string(p.Code)+" "+strings.Join(p.Field, "."))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %q", c.name, got, c.want)
		}
	}
}

func TestAChangeOfBoundsPlansAScheduleAnew(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	s := TriggerSettings{Kind: TriggerKindSchedule, Enabled: true, Cron: "0 9 * * *", TimeZone: "UTC", StartsAt: &at}
	for name, c := range map[string]struct {
		patch     TriggerPatch
		changed   string
		replanned bool
	}{
		"the same start":      {TriggerPatch{StartsAt: To(at.In(time.FixedZone("x", 3600)))}, "", false},
		"no start":            {TriggerPatch{StartsAt: Change[time.Time]{Set: true}}, "startsAt", true},
		"a jitter":            {TriggerPatch{Jitter: To(time.Minute)}, "jitter", true},
		"dates":               {TriggerPatch{SkipDates: To([]string{"2026-12-25"})}, "skipDates", true},
		"a deadline":          {TriggerPatch{StartDeadline: To(time.Minute)}, "startDeadline", false},
		"one instant instead": {TriggerPatch{Cron: Change[string]{Set: true}, At: To(at), StartsAt: Change[time.Time]{Set: true}}, "cron at startsAt", true},
	} {
		got, problems := s.Apply(c.patch, "UTC")
		if strings.Join(got.Changed, " ") != c.changed || got.Replanned != c.replanned || len(problems) > 0 {
			t.Errorf("%s: %v, %v, %v", name, got.Changed, got.Replanned, problems)
		}
	}
}

// SPEC S4.5: what is too old to fire is counted as missed, and told by the next fire.
func TestSlotsThatAreTooOldAreToldByTheNextFire(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	old := ElapsedSlots{Slots: []time.Time{at}, Missed: Missed{Ticks: 2, Since: at.Add(-2 * time.Hour)}}.All()
	if old != (Missed{Ticks: 3, Since: at.Add(-2 * time.Hour)}) {
		t.Errorf("all are %+v", old)
	}
	fires, left := TellMissed(nil, old)
	if len(fires) != 0 || left != old {
		t.Errorf("without a fire %+v are left", left)
	}
	fires, left = TellMissed([]SlotFire{{Slot: at, Missed: Missed{Ticks: 1, Since: at.Add(-time.Hour)}}, {Slot: at.Add(time.Hour)}}, old)
	if left != (Missed{}) || fires[0].Missed != (Missed{Ticks: 4, Since: at.Add(-2 * time.Hour)}) || fires[1].Missed.Ticks != 0 {
		t.Errorf("the fires tell %+v, %+v are left", fires, left)
	}
	if sum := (Missed{Ticks: 9_999, Since: at}).And(Missed{Ticks: 2, Since: at}); sum.Ticks != maxMissedTicks || !sum.Truncated {
		t.Errorf("the sum is %+v", sum)
	}
	if (ElapsedSlots{}).All() != (Missed{}) {
		t.Error("of no slot some are missed")
	}
}

func TestAFireIsLateAfterAMinute(t *testing.T) {
	due := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for late, want := range map[time.Duration]string{0: "", time.Minute: "", 61 * time.Second: "It fires 1m1s late.", 3*time.Hour + 400*time.Millisecond: "It fires 3h0m0s late.", -time.Hour: ""} {
		if got := LateText(Lateness(due, due.Add(late))); got != want {
			t.Errorf("%s: %q, want %q", late, got, want)
		}
	}
}

func TestASlotIsFiredAnewOnce(t *testing.T) {
	due := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	before, after := due.Add(-time.Hour), due.Add(time.Hour)
	for name, c := range map[string]struct {
		facts BackfillFacts
		want  BackfillOutcome
	}{
		"a slot that was lost fires":                  {BackfillFacts{Due: due, Cursor: &after}, BackfillOutcomeFired},
		"a slot of a schedule that is off fires":      {BackfillFacts{Due: due}, BackfillOutcomeFired},
		"a slot that has fired does not":              {BackfillFacts{Due: due, Fired: true, Cursor: &after}, BackfillOutcomeAlreadyFired},
		"a slot that the schedule stands at is its":   {BackfillFacts{Due: due, Cursor: &due}, BackfillOutcomePending},
		"a slot that the schedule has before it, too": {BackfillFacts{Due: due, Cursor: &before}, BackfillOutcomePending},
	} {
		if got := PlanBackfill(c.facts); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if len(CheckBackfill(before, due, due)) != 0 || len(CheckBackfill(due, due, due)) != 1 || len(CheckBackfill(due, after, due)) != 1 {
		t.Error("a window is wrongly judged")
	}
}
