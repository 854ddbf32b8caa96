package domain

import "time"

// Bounds of a routine's catch_up_max (SPEC S4.5).
const (
	MinCatchUpMax     = 1
	MaxCatchUpMax     = 1000
	DefaultCatchUpMax = 25
)

// ClampCatchUpMax brings the setting into its bounds, and says whether it was outside (C42).
func ClampCatchUpMax(n int) (int, bool) {
	clamped := min(max(n, MinCatchUpMax), MaxCatchUpMax)
	return clamped, clamped != n
}

// CatchUpLimit is how many of the elapsed slots may fire under a policy: the number to ask the schedule for.
func CatchUpLimit(policy CatchUpPolicy, catchUpMax int) int {
	if policy == CatchUpPolicySkipMissed {
		return 1
	}
	limit, _ := ClampCatchUpMax(catchUpMax)
	return limit
}

// Missed is the slots that a catch-up leaves out. Ticks is exact unless Truncated, then it is the most that is counted;
// Since is the oldest of them, zero when there are none.
type Missed struct {
	Ticks     int
	Since     time.Time
	Truncated bool
}

// ElapsedSlots is the time since a trigger's cursor, in slots: the newest ones, oldest first, and what is older.
type ElapsedSlots struct {
	Slots  []time.Time
	Missed Missed
}

// SlotFire is one slot to fire, with what its prompt says of slots left out. LateBy is how far behind it fires; 0 up to a minute.
type SlotFire struct {
	Slot   time.Time
	Missed Missed
	LateBy time.Duration
}

// maxMissedTicks is the most missed slots that are counted.
const maxMissedTicks = 10_000

// And is what is missed together with what was missed before it.
func (m Missed) And(older Missed) Missed {
	switch {
	case older.Ticks == 0:
		return m
	case m.Ticks == 0:
		return older
	}
	sum := Missed{Ticks: m.Ticks + older.Ticks, Since: m.Since, Truncated: m.Truncated || older.Truncated}
	if older.Since.Before(m.Since) {
		sum.Since = older.Since
	}
	if sum.Ticks > maxMissedTicks {
		sum.Ticks, sum.Truncated = maxMissedTicks, true
	}
	return sum
}

// All is all elapsed slots as missed ones.
func (e ElapsedSlots) All() Missed {
	if len(e.Slots) == 0 {
		return e.Missed
	}
	return Missed{Ticks: len(e.Slots), Since: e.Slots[0]}.And(e.Missed)
}

// TellMissed lets the oldest fire tell of slots that were too old to fire. Where none fires they are left for the next one.
func TellMissed(fires []SlotFire, tooOld Missed) (told []SlotFire, left Missed) {
	if len(fires) == 0 {
		return fires, tooOld
	}
	fires[0].Missed = fires[0].Missed.And(tooOld)
	return fires, Missed{}
}

// lateGrace is how far behind its slot a fire is not late.
const lateGrace = time.Minute

// Lateness is how far behind it is that something due at an instant fires now; 0 up to a minute.
func Lateness(due, now time.Time) time.Duration {
	if late := now.Sub(due); late > lateGrace {
		return late
	}
	return 0
}

// LateText is what an agent is told of a fire that is late; "" of one that is not.
func LateText(late time.Duration) string {
	if late <= 0 {
		return ""
	}
	return "It fires " + late.Truncate(time.Second).String() + " late."
}

// PlanCatchUp turns elapsed slots, asked for with CatchUpLimit, into fires, oldest first (SPEC S4.5, C39 to C45).
// SKIP_MISSED fires the newest and names none. Otherwise the oldest fire carries what was left out. Under every
// concurrency policy that fire makes or joins a run, so the prompt says it once.
func PlanCatchUp(policy CatchUpPolicy, elapsed ElapsedSlots) []SlotFire {
	fires := make([]SlotFire, len(elapsed.Slots))
	for i, slot := range elapsed.Slots {
		fires[i].Slot = slot
	}
	switch {
	case len(fires) == 0:
	case policy == CatchUpPolicySkipMissed:
		fires = fires[len(fires)-1:]
	default:
		fires[0].Missed = elapsed.Missed
	}
	return fires
}
