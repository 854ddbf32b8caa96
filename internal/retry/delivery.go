package retry

import (
	"math"
	"time"
)

// deliveries are the pauses after each failed attempt to deliver a notification. The last attempt is 22 to 27 hours after
// the first, so that a receiver may be away for a night.
var deliveries = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour}

// MaxDeliveries is how many attempts a notification gets.
var MaxDeliveries = len(deliveries) + 1

// longestWait is the longest pause that a receiver may ask for.
const longestWait = 24 * time.Hour

// Delivered is what came of an attempt to deliver a notification.
type Delivered struct {
	OK    bool
	Never bool          // the receiver wants it never again: its address is gone
	After time.Duration // not before so much time has passed, as the receiver says; 0: it does not say
}

// Delivery says when a notification is tried again after its attempts so far, the one that just ended among them; again false: it
// is done with. jitter is a random number in [0, 1).
func Delivery(now time.Time, attempts int, d Delivered, jitter float64) (at time.Time, again bool) {
	if d.OK || d.Never || attempts >= MaxDeliveries {
		return time.Time{}, false
	}
	if math.IsNaN(jitter) {
		jitter = 0
	}
	pause := deliveries[max(attempts, 1)-1]
	pause += time.Duration(float64(pause) * min(max(jitter, 0), math.Nextafter(1, 0)) * maxJitter)
	return now.Add(max(pause, min(d.After, longestWait))), true
}
