package edge

import "time"

// bucket fills with time and is emptied by what happens: so often at once, and so often a second. Its zero value is full.
type bucket struct {
	level float64
	at    time.Time
}

// take takes one out, if there is one; else it says how long that takes.
func (b *bucket) take(now time.Time, burst int, each time.Duration) (wait time.Duration) {
	if b.level = min(float64(burst), b.level+float64(now.Sub(b.at))/float64(each)); b.at.IsZero() {
		b.level = float64(burst)
	}
	b.at = now
	if b.level < 1 {
		return time.Duration((1 - b.level) * float64(each))
	}
	b.level--
	return 0
}
