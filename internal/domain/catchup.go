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

// SlotFire is one slot to fire, with what its prompt says of slots left out.
type SlotFire struct {
	Slot   time.Time
	Missed Missed
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
