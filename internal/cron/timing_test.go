package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

func timing(t *testing.T, spec Spec) Timing {
	t.Helper()
	parsed, err := ParseTiming(spec)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// Known answers: the next fires after an instant.
func TestWhenASchedulesSlotsAreDue(t *testing.T) {
	day := func(text string) *time.Time { at := instant(t, text); return &at }
	for _, c := range []struct {
		name  string
		spec  Spec
		after string
		want  string // dates and times in UTC, "none" where it ends
	}{
		{"an expression alone fires as ever", Spec{Expression: "0 9 * * *", Zone: "UTC"}, "2026-12-01T08:00:00Z", "12-01 09:00, 12-02 09:00, 12-03 09:00"},
		{"one instant fires once", Spec{At: day("2026-12-01T09:30:00+01:00"), Zone: "Europe/Berlin"}, "2026-12-01T00:00:00Z", "12-01 08:30, none"},
		{"one instant that is over fires no more", Spec{At: day("2026-12-01T09:00:00Z"), Zone: "UTC"}, "2026-12-01T09:00:00Z", "none"},
		{"nothing fires before it starts", Spec{Expression: "0 9 * * *", Zone: "UTC", StartsAt: day("2026-12-10T00:00:00Z")}, "2026-12-01T08:00:00Z", "12-10 09:00, 12-11 09:00, 12-12 09:00"},
		{"a slot at the start fires", Spec{Expression: "0 9 * * *", Zone: "UTC", StartsAt: day("2026-12-10T09:00:00Z")}, "2026-12-01T08:00:00Z", "12-10 09:00, 12-11 09:00, 12-12 09:00"},
		{"a start within a minute leaves that minute's slot out", Spec{Expression: "0 9 * * *", Zone: "UTC", StartsAt: day("2026-12-10T09:00:01Z")}, "2026-12-01T08:00:00Z", "12-11 09:00, 12-12 09:00, 12-13 09:00"},
		{"a slot at the end does not fire", Spec{Expression: "0 9 * * *", Zone: "UTC", EndsAt: day("2026-12-03T09:00:00Z")}, "2026-12-01T08:00:00Z", "12-01 09:00, 12-02 09:00, none"},
		{"an end before the first slot lets none fire", Spec{Expression: "0 9 * * *", Zone: "UTC", EndsAt: day("2026-12-01T08:30:00Z")}, "2026-12-01T08:00:00Z", "none"},
		{"dates are left out", Spec{Expression: "0 9 * * *", Zone: "UTC", SkipDates: []string{"2026-12-02", "2026-12-03"}}, "2026-12-01T08:00:00Z", "12-01 09:00, 12-04 09:00, 12-05 09:00"},
		{"a date is one of the zone: 23:30 in New York is the next day's morning in UTC", Spec{Expression: "30 23 * * *", Zone: "America/New_York", SkipDates: []string{"2026-12-01"}}, "2026-12-01T00:00:00Z", "12-01 04:30, 12-03 04:30, 12-04 04:30"},
		{"a date on which the clock goes forward has no slot either", Spec{Expression: "0 3 * * *", Zone: "Europe/Berlin", SkipDates: []string{"2027-03-28"}}, "2027-03-27T00:00:00Z", "03-27 02:00, 03-29 01:00, 03-30 01:00"},
		{"a date on which the clock goes back has no slot either", Spec{Expression: "30 2 * * *", Zone: "Europe/Berlin", SkipDates: []string{"2026-10-25"}}, "2026-10-24T00:00:00Z", "10-24 00:30, 10-26 01:30, 10-27 01:30"},
		{"a repeated slot between bounds fires the first time only", Spec{Expression: "30 2 * * *", Zone: "Europe/Berlin", StartsAt: day("2026-10-25T00:00:00Z"), EndsAt: day("2026-10-26T00:00:00Z")}, "2026-10-24T00:00:00Z", "10-25 00:30, none"},
		{"bounds and dates hold together", Spec{Expression: "0 9 * * *", Zone: "UTC", StartsAt: day("2026-12-02T00:00:00Z"), EndsAt: day("2026-12-05T00:00:00Z"), SkipDates: []string{"2026-12-03"}}, "2026-12-01T08:00:00Z", "12-02 09:00, 12-04 09:00, none"},
	} {
		var got []string
		after := instant(t, c.after)
		for range 3 {
			next := timing(t, c.spec).NextDue(after)
			if next.IsZero() {
				got = append(got, "none")
				break
			}
			got, after = append(got, next.Format("01-02 15:04")), next
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

// The jitter of a slot is the same whenever it is asked, differs between triggers and slots, and lets no slot overtake another.
func TestJitterIsStableAndKeepsTheOrder(t *testing.T) {
	hourly := func(seed string, jitter time.Duration) Timing {
		return timing(t, Spec{Expression: "0 * * * *", Zone: "UTC", Jitter: jitter, Seed: seed})
	}
	a, b := hourly("sch_a", 10*time.Minute), hourly("sch_b", 10*time.Minute)
	slot := instant(t, "2026-12-01T09:00:00Z")
	var offsets, others []time.Duration
	for range 50 {
		late := a.Due(slot).Sub(slot)
		if late < 0 || late > 10*time.Minute || late != a.Due(slot).Sub(slot) {
			t.Fatalf("the slot %s is due %s later", slot, late)
		}
		offsets, others = append(offsets, late), append(others, b.Due(slot).Sub(slot))
		slot = slot.Add(time.Hour)
	}
	slices.Sort(offsets)
	if distinct := len(slices.Compact(offsets)); distinct < 40 || slices.Equal(offsets, others) {
		t.Errorf("of 50 slots %d differ: %v", distinct, offsets)
	}
	wide := timing(t, Spec{Expression: "* * * * *", Zone: "UTC", Jitter: time.Hour, Seed: "x"})
	last := time.Time{}
	n := 0
	for fire := range wide.Fires(slot) {
		if !fire.Due.After(last) || fire.Due.Before(fire.Slot) || !fire.Due.Before(fire.Slot.Add(time.Minute)) {
			t.Fatalf("the slot %s is due at %s, after %s", fire.Slot, fire.Due, last)
		}
		if last = fire.Due; n > 200 {
			break
		}
		n++
	}
}

// However a time is cut, each slot elapses once, in the part in which it was due.
func TestEachSlotElapsesOnceHoweverOftenOneLooks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	from := instant(t, "2027-03-27T00:00:00Z")
	for round := range 200 {
		until := from.Add(3 * 24 * time.Hour)
		starts, ends := from.Add(5*time.Hour), until.Add(-5*time.Hour)
		x := timing(t, Spec{Expression: []string{"*/7 * * * *", "30 2 * * *", "* * * * *"}[round%3], Zone: "Europe/Berlin", Seed: fmt.Sprint(round),
			Jitter: time.Duration(round%4) * 11 * time.Minute, SkipDates: []string{"2027-03-29"}, StartsAt: &starts, EndsAt: &ends})
		var want, got []time.Time
		for fire := range x.Fires(from) {
			if fire.Due.After(until) {
				break
			}
			want = append(want, fire.Slot)
		}
		cursor := x.NextDue(from)
		for at := from; at.Before(until); {
			if at = at.Add(time.Duration(random.Int64N(int64(9 * time.Hour)))); at.After(until) {
				at = until
			}
			at = at.Truncate(time.Second)
			if cursor.IsZero() || cursor.After(at) {
				continue
			}
			e := x.Elapsed(cursor, at, 10_000)
			got, cursor = append(got, e.Slots...), x.NextDue(at)
			if e.Missed.Ticks > 0 {
				t.Fatalf("%d slots are left out", e.Missed.Ticks)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: %d slots elapsed, want %d", round, len(got), len(want))
		}
	}
}

// What is left out is counted, also with a jitter; and a year of minutes costs no more than before.
func TestALongOutageOfAJitteredScheduleIsCounted(t *testing.T) {
	x := timing(t, Spec{Expression: "* * * * *", Zone: "UTC", Jitter: 30 * time.Second, Seed: "s"})
	now := instant(t, "2026-12-01T09:00:59Z")
	if e := x.Elapsed(x.Due(now.Truncate(time.Minute).Add(-9*time.Minute)), now, 4); len(e.Slots) != 4 || e.Missed.Ticks != 6 || !e.Missed.Since.Equal(now.Truncate(time.Minute).Add(-9*time.Minute)) {
		t.Errorf("ten minutes: %+v", e)
	}
	if e := x.Elapsed(now.AddDate(-1, 0, 0), now, 25); len(e.Slots) != 25 || !e.Missed.Truncated || e.Missed.Ticks != MaxMissed {
		t.Errorf("a year: %d slots, %+v", len(e.Slots), e.Missed)
	}
	if e := x.Elapsed(now.Add(time.Hour), now, 25); len(e.Slots) != 0 || e.Missed != (domain.Missed{}) {
		t.Errorf("a cursor to come: %+v", e)
	}
}

func TestATimingIsTold(t *testing.T) {
	at := instant(t, "2026-12-24T18:00:00Z")
	if got := timing(t, Spec{At: &at, Zone: "Europe/Berlin"}).Explain(); got != "once, on 2026-12-24 19:00" {
		t.Error(got)
	}
	if got := timing(t, Spec{Expression: "0 9 * * *", Zone: "UTC", StartsAt: &at, SkipDates: []string{"2026-12-25", "2026-12-26"}, Jitter: time.Minute}).Explain(); got != "at 09:00 every day, from 2026-12-24 18:00 on, not on 2 dates, up to 1m0s later" {
		t.Error(got)
	}
	if _, err := ParseTiming(Spec{At: &at, Zone: "Mars/Olympus"}); err == nil {
		t.Error("a zone that is none is taken")
	}
}
