package domain

import "time"

// TallySlack is how long before its first write a transaction may have read the clock that dates what it writes.
const TallySlack = 10 * time.Second

// Watermark tells up to when all is there that transactions date by the clock: those that were numbered before Horizon may
// still write something dated before Seen, later ones may not.
type Watermark struct {
	Seen    time.Time
	Horizon int64
}

// Settled is the instant before which nothing can be added any more; false while a transaction that might add something is at
// work. Oldest is the number of the oldest transaction that may still write.
func (w Watermark) Settled(oldest int64) (before time.Time, settled bool) {
	return w.Seen.Add(-TallySlack), oldest >= w.Horizon
}
