// Package store owns every write and all SQL. A method is one transaction, named for the transition it makes; what
// follows from it (signals, counters) happens only after its commit. Decisions are made by the pure rules of
// internal/domain and its siblings: a method gathers their facts under locks and writes down what they decide.
//
// A Store is made of five parts, each of which stands on the one before: Queue, Tasks, Routines, Attempts and Records. The
// receiver of a method says of which part it is, and internal/archtest lets no file refer to a part above its own
// (docs/decisions/0023-rooms-of-the-store.md).
//
// The lock order of every transaction is: mutation key, agent lane, tasks, routines, triggers, workspace lane, budgets,
// runs, attempts and requests, then inserts only (docs/architecture.md).
package store

import (
	"cmp"
	"context"
	"database/sql"
	"log/slog"
	"time"

	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/sparing"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/store/reads"
)

// Publisher tells others, after a commit, that something changed. It never blocks.
type Publisher = pgtx.Publisher

// Options are what a Store needs besides the database. Jitter returns a number in [0,1) for retry delays.
type Options struct {
	Events   Publisher
	Counters *metrics.Counters
	Log      *slog.Logger
	Jitter   func() float64
	Tracer   Tracer  // nil: no traces
	Together int     // how many calls share a transaction at most; 0: as many as is good
	Reads    *sql.DB // what the API shows is read through it, so that nobody who looks holds up the queue; nil: the store's own
}

// Store is the database of one process: all parts, and what the API shows. Who needs one part is handed that part. It is
// safe for concurrent use.
type Store struct {
	*Queue
	*Tasks
	*Routines
	*Attempts
	*Records
	*reads.Reads
}

// New makes a store on an open, migrated database.
func New(db *sql.DB, o Options) *Store {
	shown := o.Reads
	if shown == nil {
		shown = db
	}
	client := pgtx.Client(db)
	b := &base{
		db:           db,
		client:       client,
		lanes:        pgtx.NewTurn(),
		claims:       pgtx.NewTurn(),
		transactions: pgtx.DB{Client: client, Events: o.Events, Counters: o.Counters},
		events:       o.Events,
		counters:     o.Counters,
		log:          o.Log,
		jitter:       o.Jitter,
		tracer:       o.Tracer,
		limitedLog:   sparing.Repeats{Pause: time.Minute},
		last:         (*tx).finishLast,
		reads:        shown,
		readClient:   pgtx.Client(shown),
	}
	most := cmp.Or(o.Together, mostTogether)
	s := &Store{Queue: newQueue(b, most), Reads: reads.New(shown, o.Counters)}
	s.Tasks = &Tasks{s.Queue}
	s.Routines = newRoutines(s.Tasks, most)
	s.Attempts = newAttempts(s.Routines, most)
	s.Records = &Records{Attempts: s.Attempts}
	return s
}

// finishLast does what each transaction does when all else is written.
func (t *tx) finishLast(ctx context.Context) error {
	if err := t.leaveAll(ctx); err != nil {
		return err
	}
	_, err := t.endWaiting(ctx)
	return err
}
