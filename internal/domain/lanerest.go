package domain

import "time"

// LongestLaneRest bounds LaneRest.
const LongestLaneRest = time.Minute

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
