package event

import (
	"log/slog"
	"sync"
)

// outageLog logs that the database went away and that it came back, each once, however often it was tried between.
type outageLog struct {
	log        *slog.Logger
	lost, back string
	mu         sync.Mutex
	away       bool
}

// set takes the outcome of a try.
func (r *outageLog) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && !r.away:
		r.log.Warn(r.lost, "error", err)
	case err == nil && r.away:
		r.log.Info(r.back)
	}
	r.away = err != nil
}
