package store

import (
	"context"
	"sync"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
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
func (s *Queue) AwaitOffers(workspaceID xid.ID, queue string) (leave func()) {
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

// Workers is what the store knows of a queue's workers: how many runs they hold, and whether one waits at this process. A
// process that serves no workers cannot know the latter, and says so with serves.
func (s *Queue) Workers(ctx context.Context, workspaceID xid.ID, queue string, serves bool) (domain.WorkerFacts, error) {
	f := domain.WorkerFacts{WorkspaceID: string(workspaceID), Queue: queue}
	if serves {
		f.Waits = pgtx.Ptr(s.awaited.has(awaitedQueue{workspaceID, queue}))
	}
	var err error
	f.AtWork, err = pgtx.QueryOne[int](ctx, s.reads, `SELECT count(*) FROM attempt_leases WHERE workspace_id = $1 AND queue = $2 AND owner IS NOT NULL`, workspaceID, queue)
	return f, pgtx.Wrap("count the runs that workers hold", err)
}

func (w *awaited) has(q awaitedQueue) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.who[q] > 0
}
