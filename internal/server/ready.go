package server

import (
	"context"
	"sync"
	"time"
)

// readyFor is for how long one look at the database answers all who ask.
const readyFor = 250 * time.Millisecond

// shared answers many callers with one question. Callers that come while it is asked wait for its answer. Callers that
// come a moment later get the same answer.
type shared struct {
	ask func(context.Context) error

	mu     sync.Mutex
	at     time.Time // of the last answer
	answer error
	asking chan struct{} // closed with the answer; nil: nobody asks
}

func (s *shared) get(ctx context.Context) error {
	s.mu.Lock()
	if s.asking == nil {
		if !s.at.IsZero() && time.Since(s.at) < readyFor {
			defer s.mu.Unlock()
			return s.answer
		}
		s.asking = make(chan struct{})
		go s.question(context.WithoutCancel(ctx)) // others wait for it, too
	}
	asking := s.asking
	s.mu.Unlock()
	select {
	case <-asking:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer
}

func (s *shared) question(ctx context.Context) {
	err := s.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.at = err, time.Now()
	close(s.asking)
	s.asking = nil
}
