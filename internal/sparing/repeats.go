package sparing

import (
	"log/slog"
	"sync"
	"time"
)

// mostTexts bounds what a Repeats remembers: texts that hold numbers are many.
const mostTexts = 1000

// Repeats is a rate-limited log for failures of calls that others make again and again. It logs each text once within
// Pause, or once for good when Pause is zero. It is safe for concurrent use, and its zero value is ready.
type Repeats struct {
	Pause time.Duration

	mu   sync.Mutex
	told map[string]time.Time // when each text was told
}

// Warn logs each of the errors that err joins, unless the same was told a moment ago.
func (r *Repeats) Warn(log *slog.Logger, message string, err error) {
	for _, err := range Unjoin(err) {
		if r.isNew(err.Error(), time.Now()) {
			log.Warn(message, "error", err)
		}
	}
}

// isNew notes a text that is to be told. When too many texts are remembered, new ones are not logged until others are
// forgotten.
func (r *Repeats) isNew(text string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for old, at := range r.told {
		if r.Pause > 0 && now.Sub(at) >= r.Pause {
			delete(r.told, old)
		}
	}
	if _, told := r.told[text]; told || len(r.told) >= mostTexts {
		return false
	}
	if r.told == nil {
		r.told = map[string]time.Time{}
	}
	r.told[text] = now
	return true
}

// Unjoin is the errors that an error joins.
func Unjoin(err error) (all []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, Unjoin(e)...)
	}
	return all
}
