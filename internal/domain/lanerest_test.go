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

func TestALaneOfWhichSomebodyHoldsARowRestsALittle(t *testing.T) {
	for times, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: LongestHeldRest, 99: LongestHeldRest} {
		if got := HeldRest(times); got != want {
			t.Errorf("held %d times in a row it rests %s, want %s", times, got, want)
		}
	}
	if HeldLong(1) || HeldLong(2) || !HeldLong(3) {
		t.Error("people are told at once, or never")
	}
}
