package domain

import "time"

// LongestLaneRest bounds LaneRest.
const LongestLaneRest = time.Minute

// LongestHeldRest bounds HeldRest.
const LongestHeldRest = 5 * time.Second

// HeldRest is how long a lane rests when another connection held one of its rows this many times in a row for longer than a
// claim waits. That is no failure of the lane, and it is soon over, mostly: 1 s, doubling, 5 s at most.
func HeldRest(times int) time.Duration {
	return min(time.Second<<min(max(times-1, 0), 3), LongestHeldRest)
}

// HeldLong says whether the row was held so often in a row that people are to be told who holds it.
func HeldLong(times int) bool { return times >= 3 }

// LaneRest is how long a lane rests that failed this many times in a row. After the first failure it does not rest,
// because the failure may pass. Then it rests 1 s, doubling, a minute at most.
func LaneRest(failures int) time.Duration {
	switch {
	case failures < 2:
		return 0
	case failures > 8:
		return LongestLaneRest
	}
	return min(time.Second<<(failures-2), LongestLaneRest)
}
