package store

import (
	"context"
	"errors"
	"sync"

	"rouse.dev/rouse/internal/xid"
)

// awaited are the queues at which workers wait for a run through this process.
type awaited struct {
	mu  sync.Mutex
	who map[awaitedQueue]int
}

type awaitedQueue struct {
	workspaceID xid.ID
	queue       string
}

// AwaitOffers says that a worker waits at a queue, until leave is called.
func (s *Store) AwaitOffers(workspaceID xid.ID, queue string) (leave func()) {
	q := awaitedQueue{workspaceID, queue}
	s.awaited.add(q, 1)
	return sync.OnceFunc(func() { s.awaited.add(q, -1) })
}

func (w *awaited) add(q awaitedQueue, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.who == nil {
		w.who = map[awaitedQueue]int{}
	}
	if w.who[q] += n; w.who[q] == 0 {
		delete(w.who, q)
	}
}

func (w *awaited) list() (all []awaitedQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for q := range w.who {
		all = append(all, q)
	}
	return all
}

// OfferAwaited offers what is due of the queues at which workers wait. It is for a process that has no free slot and so
// claims nothing: offers need none.
func (s *Store) OfferAwaited(ctx context.Context) error {
	queues := s.awaited.list()
	if len(queues) == 0 {
		return nil
	}
	problems := []error{s.promoteDue(ctx)}
	for _, q := range queues {
		_, err := s.offerDue(ctx, Acquire{WorkspaceID: q.workspaceID, Queue: q.queue})
		problems = append(problems, err)
	}
	return wrap("offer runs to waiting workers", errors.Join(problems...))
}
