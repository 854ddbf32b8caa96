package domain

import (
	"testing"
	"time"
)

func TestLaneRest(t *testing.T) {
	for failures, want := range map[int]time.Duration{-1: 0, 0: 0, 1: 0, 2: time.Second, 3: 2 * time.Second, 7: 32 * time.Second, 8: time.Minute, 9: time.Minute, 1 << 40: time.Minute} {
		if got := LaneRest(failures); got != want {
			t.Errorf("after %d failures in a row a lane rests %s, want %s", failures, got, want)
		}
	}
}
