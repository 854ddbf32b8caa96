//go:build unix

package executor

import (
	"sync"

	"rouse.dev/rouse/internal/domain"
)

// oneAtATime calls a sink for several goroutines, one after the other.
type oneAtATime struct {
	mu   sync.Mutex
	sink Sink
}

// Process passes on.
func (s *oneAtATime) Process(g ProcessGroup) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sink.Process(g)
}

// Session passes on.
func (s *oneAtATime) Session(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sink.Session(id)
}

// WorkingCopy passes on.
func (s *oneAtATime) WorkingCopy(w domain.WorkingCopy) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sink.WorkingCopy(w)
}

// Line passes on.
func (s *oneAtATime) Line(stream domain.LogStream, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink.Line(stream, text)
}

// Progress passes on.
func (s *oneAtATime) Progress(step map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink.Progress(step)
}
