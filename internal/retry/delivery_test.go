package retry

import (
	"math"
	"testing"
	"time"
)

func TestNotificationsAreTriedAgain(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name     string
		attempts int
		d        Delivered
		jitter   float64
		want     time.Duration // 0: not again
	}{
		{"taken", 1, Delivered{OK: true}, 0, 0},
		{"refused for ever", 1, Delivered{Never: true}, 0, 0},
		{"failed once", 1, Delivered{}, 0, 10 * time.Second},
		{"failed once, with jitter", 1, Delivered{}, 0.5, 11250 * time.Millisecond},
		{"a jitter that is none", 1, Delivered{}, math.NaN(), 10 * time.Second},
		{"failed twice", 2, Delivered{}, 0, time.Minute},
		{"failed before the last", 8, Delivered{}, 0, 12 * time.Hour},
		{"failed at last", 9, Delivered{}, 0, 0},
		{"asked to wait", 1, Delivered{After: time.Hour}, 0, time.Hour},
		{"asked to wait less than it would anyway", 2, Delivered{After: time.Second}, 0, time.Minute},
		{"asked to wait for a year", 1, Delivered{After: 365 * 24 * time.Hour}, 0, 24 * time.Hour},
		{"no attempt yet", 0, Delivered{}, 0, 10 * time.Second},
	} {
		at, again := Delivery(now, c.attempts, c.d, c.jitter)
		if again != (c.want > 0) || again && at.Sub(now) != c.want {
			t.Errorf("%s: got %v, %v, want after %v", c.name, at, again, c.want)
		}
	}
}

func TestAReceiverMayBeAwayForANight(t *testing.T) {
	total := time.Duration(0)
	for _, pause := range deliveries {
		total += pause
	}
	if MaxDeliveries != 9 || total < 20*time.Hour {
		t.Errorf("%d attempts within %v", MaxDeliveries, total)
	}
}
