package topic

import (
	"context"
	"sync"
)

// Key stands for one way to write an item: the same document, variables and rights give the same key.
type Key [32]byte

// mostWays bounds in how many ways one item is kept. Who asks in yet another way writes it for himself.
const mostWays = 8

// Shared is what was written of one item, by key. The zero value is ready.
type Shared struct {
	mu   sync.Mutex
	ways map[Key]*written
}

// written is an item as one watcher wrote it for all with his key. text is nil when it could not be shared.
type written struct {
	done chan struct{}
	text []byte
}

// Text gives an item as it is written for a key. The first who asks writes it, and others wait for that; write says
// whether others may have the text as well. Nil means that the caller has to write for himself: he did already, when
// wrote says so.
func (s *Shared) Text(ctx context.Context, key Key, write func() []byte) (text []byte, wrote bool) {
	w, first := s.of(key)
	switch {
	case w == nil:
		return nil, false
	case first:
		defer close(w.done)
		w.text = write()
		return w.text, true
	}
	select {
	case <-w.done:
		return w.text, false
	case <-ctx.Done():
		return nil, false
	}
}

func (s *Shared) of(key Key) (w *written, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w = s.ways[key]; w != nil || len(s.ways) >= mostWays {
		return w, false
	}
	if s.ways == nil {
		s.ways = map[Key]*written{}
	}
	w = &written{done: make(chan struct{})}
	s.ways[key] = w
	return w, true
}
