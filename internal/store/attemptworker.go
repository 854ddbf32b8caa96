package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Worker is what a worker says of itself with a call for a run. One that gives no name is called as its token is.
type Worker struct {
	Name    string
	Host    string
	Version string
}

const (
	workerBeat    = 15 * time.Second // how often a worker's sign of life is written
	workersMost   = 1000             // rows of a workspace: a worker is in one for each queue
	workersKnown  = 4096             // signs of life that a process remembers
	workerIDBytes = 13
)

// workerSigns remembers when a sign of life was written, so that a worker of many short runs writes few.
type workerSigns struct {
	mu      sync.Mutex
	written map[string]time.Time
	now     func() time.Time
}

func newWorkerSigns() *workerSigns {
	return &workerSigns{written: map[string]time.Time{}, now: time.Now}
}

// due says whether a sign is to be written, and takes it as written.
func (w *workerSigns) due(sign string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if last, known := w.written[sign]; known && now.Sub(last) < workerBeat {
		return false
	}
	if len(w.written) >= workersKnown {
		clear(w.written)
	}
	w.written[sign] = now
	return true
}

// id is the same for all calls of a worker: those with its name and host, and without a name those by one token.
func (w Worker) id(workspaceID, token xid.ID) xid.ID {
	named := "name " + w.Name
	if w.Name == "" {
		named = "token " + token.String()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", workspaceID, named, w.Host))
	return xid.ID("wrk_" + hex.EncodeToString(sum[:workerIDBytes]))
}

// WorkerAsks notes that a worker asks a queue for runs, now and then. A workspace that has very many workers is not told of more.
func (s *Attempts) WorkerAsks(ctx context.Context, workspaceID xid.ID, queue string, w Worker) error {
	caller, _ := auth.FromContext(ctx)
	id := w.id(workspaceID, caller.TokenID)
	if !s.workers.due(id.String() + " " + w.Version + " " + queue) {
		return nil
	}
	const query = `
-- $1 id, $2 queue, $3 workspace, $4 name; "": that of the token, $5 token, $6 host, $7 version, $8 most rows
INSERT INTO workers (id, queue, workspace_id, name, host, version, seen_at)
SELECT $1::text, $2::text, $3::text,
  coalesce(NULLIF($4::text, ''), (SELECT name FROM api_tokens WHERE id = $5), 'a worker without a token'),
  $6::text, $7::text, clock_timestamp()
WHERE EXISTS (SELECT 1 FROM workers WHERE id = $1 AND queue = $2)
  OR (SELECT count(*) FROM workers WHERE workspace_id = $3) < $8
ON CONFLICT (id, queue) DO UPDATE SET name = excluded.name, version = excluded.version, seen_at = excluded.seen_at`
	_, err := pgtx.Exec(ctx, s.db, query, id, queue, workspaceID, w.Name, caller.TokenID, w.Host, w.Version, workersMost)
	return pgtx.Wrap("note that a worker asks for runs", err)
}
