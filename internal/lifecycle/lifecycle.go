// Package lifecycle is the one way in which Rouse's long-lived parts begin and end (SPEC S11). Starting and stopping
// are idempotent. Stopping waits until the work has ended. The end of the parent context is a stop like any other.
package lifecycle

import (
	"context"
	"sync"
)

// State is where a Lifecycle stands.
type State int

// The states of a Lifecycle.
const (
	Stopped  State = iota // nothing runs
	Running               // the work runs
	Stopping              // the work was asked to end and has not ended yet
)

// String is the state's name.
func (s State) String() string { return [...]string{"stopped", "running", "stopping"}[s] }

// Lifecycle runs one piece of work at a time. The zero Lifecycle is stopped and ready.
type Lifecycle struct {
	mu  sync.Mutex
	now *period // nil while stopped
}

// period is the time from one start to the end of its work.
type period struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

// Start runs work in a goroutine, with a context that ends at Stop or with ctx. It reports false, and does nothing, when
// work runs already; work that is being stopped is waited for first. Work must return soon after its context ended,
// having joined every goroutine that it started.
func (l *Lifecycle) Start(ctx context.Context, work func(context.Context)) bool {
	for {
		current, started := l.begin(ctx, work)
		if started || current.ctx.Err() == nil {
			return started
		}
		<-current.done
	}
}

// begin starts a period, unless there is one: then it is returned.
func (l *Lifecycle) begin(ctx context.Context, work func(context.Context)) (current *period, started bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != nil {
		return l.now, false
	}
	p := &period{done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(ctx)
	l.now = p
	go func() {
		defer l.end(p)
		work(p.ctx)
	}()
	return p, true
}

func (l *Lifecycle) end(p *period) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.cancel()
	l.now = nil
	close(p.done)
}

// Stop asks the work to end and waits until it has ended. Any number of calls, at once or one after the other, are one
// stop; without work Stop returns at once.
func (l *Lifecycle) Stop() {
	if p := l.period(); p != nil {
		p.cancel()
		<-p.done
	}
}

// State is where the work stands.
func (l *Lifecycle) State() State {
	p := l.period()
	switch {
	case p == nil:
		return Stopped
	case p.ctx.Err() != nil:
		return Stopping
	}
	return Running
}

func (l *Lifecycle) period() *period {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}
