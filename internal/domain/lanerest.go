package domain

import "time"

// LongestLaneRest bounds LaneRest.
const LongestLaneRest = time.Minute

// LaneRest is for how long a lane is left alone that has failed so often in a row: not at all after the first failure, which
// may be a passing one, then 1 s, doubling, at most a minute.
func LaneRest(failures int) time.Duration {
	switch {
	case failures < 2:
		return 0
	case failures > 8:
		return LongestLaneRest
	}
	return min(time.Second<<(failures-2), LongestLaneRest)
}
