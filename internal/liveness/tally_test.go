package liveness

import (
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

func TestPlanTally(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)
	at := func(ago time.Duration) time.Time { return now.Add(-ago).Truncate(time.Minute) }
	activated := now.Add(-48 * time.Hour)
	other := activated.Add(time.Second)
	mark := TallyMark{Since: at(Window), Until: at(10 * time.Minute), Watermark: domain.Watermark{Seen: now.Add(-25 * time.Second), Horizon: 100}, Activated: &activated}
	changed := func(change func(*TallyMark)) TallyMark {
		m := mark
		change(&m)
		return m
	}
	fresh := TallyMark{Since: at(Window), Until: at(Window), Watermark: domain.Watermark{Seen: now, Horizon: 120}, Activated: &activated}
	for _, c := range []struct {
		name   string
		facts  TallyFacts
		reset  bool
		counts [2]time.Time
		mark   TallyMark
		more   bool
	}{
		{"nothing was counted before: counting begins with the window, and nothing of it is settled yet",
			TallyFacts{Mark: TallyMark{}, Activated: &activated, Ended: true, Oldest: 120}, true, [2]time.Time{}, fresh, false},
		{"the counts are older than the window", TallyFacts{Mark: changed(func(m *TallyMark) { m.Until = at(Window + time.Minute) }), Activated: &activated, Ended: true, Oldest: 120},
			true, [2]time.Time{}, fresh, false},
		{"runs were told apart by another activation", TallyFacts{Mark: changed(func(m *TallyMark) { m.Activated = &other }), Activated: &activated, Ended: true, Oldest: 120},
			true, [2]time.Time{}, fresh, false},
		{"the activation is not published any more", TallyFacts{Mark: mark, Ended: true, Oldest: 120}, true, [2]time.Time{},
			TallyMark{Since: at(Window), Until: at(Window), Watermark: domain.Watermark{Seen: now, Horizon: 120}}, false},
		{"nothing ended: nothing is written", TallyFacts{Mark: mark, Activated: &activated, Oldest: 120}, false, [2]time.Time{}, mark, false},
		{"all who might have ended a run are done: minutes up to when they were noted are counted, but for the slack",
			TallyFacts{Mark: mark, Activated: &activated, Ended: true, Oldest: 100}, false, [2]time.Time{mark.Until, at(time.Minute)},
			changed(func(m *TallyMark) { m.Until, m.Seen, m.Horizon = at(time.Minute), now, 120 }), false},
		{"one of them is still at work: nothing is counted and the note stays",
			TallyFacts{Mark: mark, Activated: &activated, Ended: true, Oldest: 99}, false, [2]time.Time{mark.Until, mark.Until}, mark, false},
		{"a long time is counted in steps, by the same note",
			TallyFacts{Mark: changed(func(m *TallyMark) { m.Until = at(3 * time.Hour) }), Activated: &activated, Ended: true, Oldest: 100}, false,
			[2]time.Time{at(3 * time.Hour), at(2 * time.Hour)}, changed(func(m *TallyMark) { m.Until = at(2 * time.Hour) }), true},
		{"minutes that left the window are forgotten", TallyFacts{Mark: changed(func(m *TallyMark) { m.Since = at(Window + time.Hour) }), Activated: &activated, Ended: true, Oldest: 100}, false,
			[2]time.Time{mark.Until, at(time.Minute)}, changed(func(m *TallyMark) { m.Until, m.Seen, m.Horizon = at(time.Minute), now, 120 }), false},
		{"a note that is not older than what was counted settles nothing", TallyFacts{Mark: changed(func(m *TallyMark) { m.Seen = m.Until.Add(5 * time.Second) }), Activated: &activated, Ended: true, Oldest: 120}, false,
			[2]time.Time{mark.Until, mark.Until}, changed(func(m *TallyMark) { m.Seen, m.Horizon = now, 120 }), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.Now, c.facts.Next = now, 120
			p := PlanTally(c.facts)
			if p.Reset != c.reset || p.More != c.more || p.Mark != c.mark || p.Forget != at(Window) || p.Change != (c.mark != c.facts.Mark) {
				t.Errorf("planned %+v", p)
			}
			if from, to := c.counts[0], c.counts[1]; !from.Equal(to) && (p.From != from || p.To != to) || from.Equal(to) && p.From.Before(p.To) {
				t.Errorf("counts from %v to %v, want %v", p.From, p.To, c.counts)
			}
		})
	}
}
