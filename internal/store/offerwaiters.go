package store

import (
	"context"
	"sync"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// waiters are the queues at which workers wait for a run through this process.
type waiters struct {
	mu    sync.Mutex
	count map[waitedQueue]int
}

type waitedQueue struct {
	workspaceID xid.ID
	queue       string
}

// AwaitOffers says that a worker waits at a queue, until leave is called.
func (s *Queue) AwaitOffers(workspaceID xid.ID, queue string) (leave func()) {
	q := waitedQueue{workspaceID, queue}
	s.waiters.add(q, 1)
	return sync.OnceFunc(func() { s.waiters.add(q, -1) })
}

func (w *waiters) add(q waitedQueue, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count == nil {
		w.count = map[waitedQueue]int{}
	}
	if w.count[q] += n; w.count[q] == 0 {
		delete(w.count, q)
	}
}

func (w *waiters) list() (all []waitedQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for q := range w.count {
		all = append(all, q)
	}
	return all
}

// Workers is what the store knows of a queue's workers: how many runs they hold, and whether one waits at this process. A
// process that serves no workers cannot know the latter, and says so with serves.
func (s *Queue) Workers(ctx context.Context, workspaceID xid.ID, queue string, serves bool) (domain.WorkerFacts, error) {
	f := domain.WorkerFacts{WorkspaceID: string(workspaceID), Queue: queue}
	if serves {
		f.Waits = pgtx.Ptr(s.waiters.has(waitedQueue{workspaceID, queue}))
	}
	var err error
	f.AtWork, err = pgtx.QueryOne[int](ctx, s.reads, `SELECT count(*) FROM attempt_leases WHERE workspace_id = $1 AND queue = $2 AND owner IS NOT NULL`, workspaceID, queue)
	return f, pgtx.Wrap("count the runs that workers hold", err)
}

func (w *waiters) has(q waitedQueue) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count[q] > 0
}
