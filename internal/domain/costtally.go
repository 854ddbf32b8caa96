package domain

import "time"

// Entries of costs never change, so those of an hour are added up once, when no transaction can add one to it any more, and
// the hours of a day once more when the day is whole. Sums of a month add up its days; they read entries only of the hours at
// both ends that are not whole, and of those that are not counted yet.
const (
	CostHour = time.Hour
	CostDay  = 24 * time.Hour // of UTC
)

// CostMark says which hours are counted, all before Until, and what tells that more of them are settled.
type CostMark struct {
	Until time.Time
	Watermark
}

// CostFacts are what the next step of counting is decided from.
type CostFacts struct {
	Mark         CostMark
	Now          time.Time
	Oldest, Next int64      // number of the oldest transaction that may still write, and one that no transaction has yet
	First        *time.Time // the first entry that is not counted; nil: there is none
}

// CostPlan is what to do: count the hours from From on and before To, which are of one day, and the day itself when To ends it.
type CostPlan struct {
	From, To time.Time
	Day      *time.Time // the day that is whole now
	Mark     CostMark   // from then on
	Change   bool       // Mark is another one
	More     bool       // another step can be made at once
}

// PlanCostTally decides a step of counting.
func PlanCostTally(f CostFacts) CostPlan {
	m := f.Mark
	p := CostPlan{From: m.Until, To: m.Until, Mark: m}
	if f.First == nil {
		return p
	}
	limit, settled := m.Settled(f.Oldest)
	if limit = limit.Truncate(CostHour); !settled || limit.Before(m.Until) {
		limit = m.Until
	}
	if day := f.First.Truncate(CostDay); m.Until.Equal(m.Until.Truncate(CostDay)) && day.After(m.Until) && day.Before(limit) {
		p.From = day // the days between have nothing to count
	}
	if end := p.From.Truncate(CostDay).Add(CostDay); end.After(limit) {
		p.To = limit
	} else {
		p.To = end
		p.Day = new(end.Add(-CostDay))
	}
	p.Mark.Until, p.More = p.To, p.To.Before(limit)
	if settled && !p.More && f.Now.Add(-TallySlack).Truncate(CostHour).After(p.To) {
		p.Mark.Seen, p.Mark.Horizon = f.Now, f.Next
	}
	p.Change = p.Mark != m
	return p
}
