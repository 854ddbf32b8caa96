package scheduler

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"rouse.dev/rouse/internal/metrics"
)

const (
	// passBudget is after how long a pass should end at its next step.
	passBudget = 30 * time.Second
	// passLimit bounds a pass with its last step, so that a connection without an answer does not stop a loop for good.
	passLimit = 2 * time.Minute
	// stopGrace is how long a step may go on after Stop. A transaction that is cut off may have committed: a claimed run
	// would then be in nobody's hands until its lease ends.
	stopGrace = 10 * time.Second
)

// pass is one look at the database. Its context outlives Stop for a while, so that a step can end. Between steps the
// pass looks at enough, which is closed at Stop, and when the pass has used its time. It answers when to look again at
// the latest; 0: at the next beat.
type pass func(ctx context.Context, enough <-chan struct{}) (again time.Duration, err error)

// loop runs one pass after the other, never two at once. A signal, its beat, and the instant that the last pass named
// each start a pass.
type loop struct {
	name     string
	beat     time.Duration
	pass     pass
	wake     chan struct{} // capacity 1
	log      *slog.Logger
	counters *metrics.Counters
	trouble  trouble
}

// Wake makes a pass begin after this call, at once or as soon as the one that runs has ended. It never blocks.
func (l *loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // a pass will begin anyway
	}
}

// follow wakes the loop at every signal from elsewhere.
func (l *loop) follow(ctx context.Context, signals <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-signals:
			if !ok {
				return
			}
			l.Wake()
		}
	}
}

func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(l.beat) // only for what comes before the next beat
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake: // taken before the pass: a signal during the pass makes another one
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		if again := l.runPass(ctx); again > 0 && again < l.beat {
			timer.Reset(again)
		} else {
			timer.Stop()
		}
	}
}

// runPass runs one pass. A pass that fails is logged and does not end the loop (C112).
func (l *loop) runPass(ctx context.Context) time.Duration {
	outlives, cancel := lasting(ctx)
	defer cancel()
	budget, done := context.WithTimeout(ctx, passBudget)
	defer done()
	again, err := l.guarded(outlives, budget.Done())
	if err != nil && ctx.Err() != nil && outlives.Err() != nil {
		return 0 // cut off after Stop: nothing failed
	}
	if err != nil {
		l.counters.LoopFailed(l.name)
	}
	l.trouble.tell(l.log, err)
	return again
}

// guarded turns a panic into an error.
func (l *loop) guarded(ctx context.Context, enough <-chan struct{}) (again time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			again, err = 0, &panicError{value: r, stack: string(debug.Stack())}
		}
	}()
	return l.pass(ctx, enough)
}

// lasting is a context that ends stopGrace after ctx, or when the pass has taken too long.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	outlives, cancel := context.WithTimeout(context.WithoutCancel(ctx), passLimit)
	forget := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(stopGrace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-outlives.Done():
		}
	})
	return outlives, func() { forget(); cancel() }
}

// closed reports whether the channel is closed; nothing is ever sent on it.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
