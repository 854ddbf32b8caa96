package domain

import (
	"testing"
	"time"
)

func TestPlanCostTally(t *testing.T) {
	now := instantOf(t, "2026-03-10T12:00:30Z")
	at := func(text string) time.Time { return instantOf(t, text) }
	mark := func(until, seen string) CostMark {
		return CostMark{Until: at(until), Watermark: Watermark{Seen: at(seen), Horizon: 100}}
	}
	noted := func(until string) CostMark {
		return CostMark{Until: at(until), Watermark: Watermark{Seen: now, Horizon: 120}}
	}
	fresh := CostMark{Until: at("1970-01-01T00:00:00Z"), Watermark: Watermark{Seen: at("1970-01-01T00:00:00Z")}}
	for _, c := range []struct {
		name     string
		mark     CostMark
		first    string // "": nothing is left to count
		oldest   int64
		from, to string // "": nothing is counted
		day      string
		then     CostMark
		more     bool
	}{
		{"nothing was counted before: what is settled is noted first", fresh, "2026-03-08T07:30:00Z", 100, "", "", "", noted("1970-01-01T00:00:00Z"), false},
		{"no costs are left to count: nothing is written", mark("2026-03-10T11:00:00Z", "2026-03-10T11:00:20Z"), "", 100, "", "", "", mark("2026-03-10T11:00:00Z", "2026-03-10T11:00:20Z"), false},
		{"the hour is not over: nothing is written", mark("2026-03-10T12:00:00Z", "2026-03-10T12:00:15Z"), "2026-03-10T12:00:20Z", 120, "", "", "",
			mark("2026-03-10T12:00:00Z", "2026-03-10T12:00:15Z"), false},
		{"days without costs are passed over, and the first one with some is added up as a whole", CostMark{Until: fresh.Until, Watermark: noted("1970-01-01T00:00:00Z").Watermark},
			"2026-03-08T07:30:00Z", 120, "2026-03-08T00:00:00Z", "2026-03-09T00:00:00Z", "2026-03-08T00:00:00Z",
			CostMark{Until: at("2026-03-09T00:00:00Z"), Watermark: noted("1970-01-01T00:00:00Z").Watermark}, true},
		{"a day that was begun is ended before others are passed over", mark("2026-03-07T05:00:00Z", "2026-03-10T12:00:20Z"), "2026-03-09T07:30:00Z", 100,
			"2026-03-07T05:00:00Z", "2026-03-08T00:00:00Z", "2026-03-07T00:00:00Z", mark("2026-03-08T00:00:00Z", "2026-03-10T12:00:20Z"), true},
		{"hours of today are counted when they are over", mark("2026-03-10T10:00:00Z", "2026-03-10T12:00:20Z"), "2026-03-10T10:30:00Z", 100,
			"2026-03-10T10:00:00Z", "2026-03-10T12:00:00Z", "", mark("2026-03-10T12:00:00Z", "2026-03-10T12:00:20Z"), false},
		{"a transaction may have read the clock a little before it began to write", mark("2026-03-10T11:00:00Z", "2026-03-10T12:00:05Z"), "2026-03-10T11:30:00Z", 100,
			"", "", "", noted("2026-03-10T11:00:00Z"), false},
		{"one that may still write is at work: nothing is counted and the note stays", mark("2026-03-10T10:00:00Z", "2026-03-10T12:00:20Z"), "2026-03-10T10:30:00Z", 99,
			"", "", "", mark("2026-03-10T10:00:00Z", "2026-03-10T12:00:20Z"), false},
		{"the last hour of a day makes the day whole", mark("2026-03-09T23:00:00Z", "2026-03-10T00:00:20Z"), "2026-03-09T23:30:00Z", 100,
			"2026-03-09T23:00:00Z", "2026-03-10T00:00:00Z", "2026-03-09T00:00:00Z", noted("2026-03-10T00:00:00Z"), false},
		{"costs of a day that is not settled are not passed over to", mark("2026-03-10T00:00:00Z", "2026-03-10T00:00:20Z"), "2026-03-11T07:30:00Z", 99, "", "", "",
			mark("2026-03-10T00:00:00Z", "2026-03-10T00:00:20Z"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := CostFacts{Mark: c.mark, Now: now, Oldest: c.oldest, Next: 120}
			if c.first != "" {
				f.First = new(at(c.first))
			}
			p := PlanCostTally(f)
			if p.Mark != c.then || p.More != c.more || p.Change != (c.then != c.mark) {
				t.Errorf("planned %+v", p)
			}
			if c.from == "" && p.From.Before(p.To) || c.from != "" && (!p.From.Equal(at(c.from)) || !p.To.Equal(at(c.to))) {
				t.Errorf("counts from %v to %v, want %s to %s", p.From, p.To, c.from, c.to)
			}
			if (p.Day == nil) != (c.day == "") || p.Day != nil && !p.Day.Equal(at(c.day)) {
				t.Errorf("the whole day is %v, want %q", p.Day, c.day)
			}
		})
	}
}
