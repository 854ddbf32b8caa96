//go:build unix

package executor

import (
	"sync"
	"time"
)

// Lease is until when an attempt may run. Should this process hang, so that it cannot end the attempt itself, the watchdog does at that
// time.
type Lease struct {
	mu    sync.Mutex
	until time.Time
	told  func(until time.Time)
}

// NewLease makes a lease that ends at an instant.
func NewLease(until time.Time) *Lease { return &Lease{until: until} }

// Extend moves its end.
func (l *Lease) Extend(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
	if l.told != nil {
		l.told(until)
	}
}

// follow tells f of the end, now and whenever it moves, until stop is called. A nil lease has none.
func (l *Lease) follow(f func(until time.Time)) (stop func()) {
	if l == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = f
	f(l.until)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told = nil
	}
}
