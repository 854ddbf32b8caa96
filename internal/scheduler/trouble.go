package scheduler

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"rouse.dev/rouse/internal/sparing"
)

const (
	// repeatLog is how often a loop that keeps failing in the same way says so.
	repeatLog = time.Minute
	// mostFailures bounds how many failures of one pass are logged.
	mostFailures = 5
)

// panicError is a pass that panicked.
type panicError struct {
	value any
	stack string
}

// Error says what it panicked with.
func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// failures gathers what went wrong in a pass that goes on past failures. The same failure is listed once.
type failures struct {
	told []error
	more int
}

// add notes an error. An error that joins several counts as several.
func (f *failures) add(err error) {
	for _, err := range sparing.Unjoin(err) {
		switch {
		case slices.ContainsFunc(f.told, func(e error) bool { return e.Error() == err.Error() }):
		case len(f.told) < mostFailures:
			f.told = append(f.told, err)
		default:
			f.more++
		}
	}
}

// err is nil when nothing went wrong.
func (f *failures) err() error {
	if f.more == 0 {
		return errors.Join(f.told...)
	}
	return errors.Join(append(f.told, fmt.Errorf("and %d more", f.more))...)
}

// trouble tells that passes fail: at the first failure, once a minute while they go on, and when they are over. A
// database that is away for an hour is not four thousand lines. A new panic is always told.
type trouble struct {
	panicked string // what the last panic said
	told     time.Time
	failures int
}

func (t *trouble) tell(log *slog.Logger, err error) {
	if err == nil {
		if t.failures > 0 {
			log.Info("passes succeed again", "failures", t.failures)
		}
		*t = trouble{}
		return
	}
	t.failures++
	panicked := (*panicError)(nil)
	isNew := errors.As(err, &panicked) && panicked.Error() != t.panicked
	if t.failures > 1 && !isNew && time.Since(t.told) < repeatLog {
		return
	}
	t.told = time.Now()
	if panicked == nil {
		log.Error("a pass failed; the next one tries again", "error", err, "failures", t.failures)
		return
	}
	t.panicked = panicked.Error()
	log.Error("a pass panicked, which is a fault of rouse; the next one runs as usual", "error", err, "failures", t.failures, "stack", panicked.stack)
}
