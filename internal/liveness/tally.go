package liveness

import (
	"time"

	"rouse.dev/rouse/internal/domain"
)

// Ended runs never change, so those of a minute are counted once, when no transaction can add one to it any more. The
// verdict adds up the counts of minutes and looks at runs themselves only before the first whole minute of its window
// and after the last one that was counted.
const (
	TallyMinute = time.Minute
	TallyStep   = time.Hour // most that one transaction counts
)

// TallyMark says which minutes are counted, and what tells that more of them are settled.
type TallyMark struct {
	Since, Until time.Time // minutes from the one on and before the other are counted
	domain.Watermark
	Activated *time.Time // by which runs were told apart
}

// TallyFacts are what the next step of counting is decided from.
type TallyFacts struct {
	Mark      TallyMark
	Now       time.Time
	Oldest    int64 // number of the oldest transaction that may still write
	Next      int64 // number that no transaction has yet
	Activated *time.Time
	Ended     bool // runs ended since Mark.Until
}

// TallyPlan is what to do: forget the counts of minutes before Forget, all of them when Reset is set, then count the
// runs that ended from From on and before To, if that is later.
type TallyPlan struct {
	Reset    bool
	Forget   time.Time
	From, To time.Time
	Mark     TallyMark // from then on
	Change   bool      // Mark is another one
	More     bool      // another step can be made at once
}

// PlanTally decides a step of counting.
func PlanTally(f TallyFacts) TallyPlan {
	m, start := f.Mark, f.Now.Add(-Window).Truncate(TallyMinute)
	p := TallyPlan{Forget: start}
	if !sameInstant(m.Activated, f.Activated) || m.Until.Before(start) {
		p.Reset, p.Change = true, true
		p.Mark = TallyMark{Since: start, Until: start, Watermark: domain.Watermark{Seen: f.Now, Horizon: f.Next}, Activated: f.Activated}
		return p
	}
	p.From, p.To, p.Mark = m.Until, m.Until, m
	if !f.Ended {
		return p
	}
	limit, settled := m.Settled(f.Oldest)
	if limit = limit.Truncate(TallyMinute); !settled || limit.Before(m.Until) {
		limit = m.Until
	}
	p.To = earlier(limit, m.Until.Add(TallyStep))
	p.More = p.To.Before(limit)
	p.Mark.Until, p.Mark.Since = p.To, later(m.Since, start)
	if settled && !p.More {
		p.Mark.Seen, p.Mark.Horizon = f.Now, f.Next
	}
	p.Change = p.Mark != m
	return p
}

func sameInstant(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
