package store

import (
	"log/slog"
	"sync"
	"time"
)

// grumblePause is for how long what keeps going wrong in the same way is not told again.
const grumblePause = time.Minute

// grumbles tells the log what goes wrong in calls that others make again and again: workers ask every second.
type grumbles struct {
	mu   sync.Mutex
	told map[string]time.Time // when each text was told
}

// tell logs each of the errors that err joins, unless the same was told a moment ago.
func (g *grumbles) tell(log *slog.Logger, message string, err error) {
	for _, err := range unjoined(err) {
		if g.isNew(err.Error(), time.Now()) {
			log.Warn(message, "error", err)
		}
	}
}

func (g *grumbles) isNew(text string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for old, at := range g.told {
		if now.Sub(at) >= grumblePause {
			delete(g.told, old)
		}
	}
	if _, told := g.told[text]; told {
		return false
	}
	if g.told == nil {
		g.told = map[string]time.Time{}
	}
	g.told[text] = now
	return true
}

// unjoined is the errors that an error joins.
func unjoined(err error) (all []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, unjoined(e)...)
	}
	return all
}
