// Package reads is what the API shows. It is given the read pool alone, writes nothing, and holds up no claim, lease or
// report.
package reads

import (
	"database/sql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Reads reads for the API. It is safe for concurrent use.
type Reads struct {
	pool     *sql.DB
	client   *ent.Client
	counters *metrics.Counters
	stats    statsCache
}

// New reads through a pool.
func New(pool *sql.DB, counters *metrics.Counters) *Reads {
	return &Reads{pool: pool, client: pgtx.Client(pool), counters: counters}
}

// Counters are the counters of one workspace since the process began.
func (s *Reads) Counters(workspaceID xid.ID) metrics.WorkspaceCounters {
	return s.counters.Workspace(workspaceID)
}
