package edge

import (
	"fmt"
	"testing"
	"time"
)

func TestABucketFillsWithTime(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var b bucket
	var waits []time.Duration
	for _, pass := range []time.Duration{0, 0, 0, 500 * time.Millisecond, 500 * time.Millisecond, time.Hour, 0, 0} {
		now = now.Add(pass)
		waits = append(waits, b.take(now, 2, time.Second))
	}
	if got := fmt.Sprint(waits); got != "[0s 0s 1s 500ms 0s 0s 0s 1s]" {
		t.Error(got)
	}
}
