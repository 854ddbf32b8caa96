package edge

import (
	"context"
	"fmt"
	"sync"
)

// sockets knows every WebSocket from the request to the end of its last goroutine.
type sockets struct {
	mu     sync.Mutex
	closed bool
	open   map[*socket]bool // true once the connection is upgraded
	empty  chan struct{}    // closed when closed is set and open is empty
}

// enter takes in a request for a WebSocket; false during and after shutdown.
func (s *sockets) enter(c *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.open == nil {
		s.open = map[*socket]bool{}
	}
	s.open[c] = false
	return true
}

// opened marks c as upgraded, so that shutdown closes it; false when shutdown has begun in the meantime and did not see it.
func (s *sockets) opened(c *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = true
	return !s.closed
}

func (s *sockets) leave(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if s.closed && len(s.open) == 0 {
		close(s.empty)
	}
}

// shutdown may be called again; each call waits for the same end.
func (s *sockets) shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.empty = make(chan struct{})
		if len(s.open) == 0 {
			close(s.empty)
		}
	}
	for c, upgraded := range s.open {
		switch {
		case upgraded && c.known.Load():
			go c.close(closeServiceRestart, restartReason) // ends before c leaves: its handler waits for the one end of the socket
		case upgraded:
			go c.cut() // a stranger: nobody waits for its answer to a close frame
		}
	}
	s.mu.Unlock()
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, upgraded := range s.open {
		if upgraded {
			go c.cut()
		}
	}
	return fmt.Errorf("shut down sockets: %d of them had not ended in time and were cut: %w", len(s.open), ctx.Err())
}
