// Package store owns every write and all SQL. A method is one transaction, named for the transition it makes; what
// follows from it (signals, counters) happens only after its commit. Decisions are made by the pure rules of
// internal/domain and its siblings: a method gathers their facts under locks and writes down what they decide.
//
// The lock order of every transaction is: mutation key, agent lane, tasks, routines, triggers, workspace lane, budgets,
// runs, attempts and requests, then inserts only (docs/queue.md rule 2).
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/sparing"
	"rouse.dev/rouse/internal/xid"
)

// ErrFenced says that another attempt, or none, owns the run: the report of this one changes nothing (SPEC S7.7).
var ErrFenced = errors.New("the attempt no longer owns its run")

// Publisher tells others, after a commit, that something changed. It never blocks.
type Publisher interface{ Publish(events ...event.Event) }

// Options are what a Store needs besides the database. Jitter returns a number in [0,1) for retry delays.
type Options struct {
	Events   Publisher
	Counters *metrics.Counters
	Log      *slog.Logger
	Jitter   func() float64
	Tracer   Tracer  // nil: no traces
	Reads    *sql.DB // what the API shows is read through it, so that nobody who looks holds up the queue; nil: the store's own
}

// Store is the database of one process. It is safe for concurrent use.
type Store struct {
	db       *sql.DB
	client   *ent.Client
	events   Publisher
	counters *metrics.Counters
	log      *slog.Logger
	jitter   func() float64
	tracer   Tracer // nil: no traces
	starved  starved
	stats    statsCache
	awaited  awaited
	grumbles sparing.Repeats // of calls that others make again and again: workers ask every second
	turn     turn
	resting  struct{ claim, promote *resting } // lanes that fail

	// Of what the API shows: claims, leases and reports never wait for one of these connections.
	reads      *sql.DB
	readClient *ent.Client

	finishers finishers

	activated atomic.Pointer[time.Time] // the activation instant, once Activate has read it
}

// New makes a store on an open, migrated database.
func New(db *sql.DB, o Options) *Store {
	reads := o.Reads
	if reads == nil {
		reads = db
	}
	return &Store{
		db:         db,
		resting:    struct{ claim, promote *resting }{newResting(), newResting()},
		client:     clientOf(db),
		reads:      reads,
		readClient: clientOf(reads),
		events:     o.Events,
		counters:   o.Counters,
		log:        o.Log,
		jitter:     o.Jitter,
		grumbles:   sparing.Repeats{Pause: time.Minute},
		tracer:     o.Tracer,
	}
}

func clientOf(db *sql.DB) *ent.Client {
	return ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db)))
}

// effects are what a transaction causes outside the database, once it has committed.
type effects struct {
	events []event.Event
	counts []func(*metrics.Counters)
	then   []func(*Store)
	sent   []xid.ID // requests that it made or sent again
	over   []xid.ID // tasks that have ended: what waits about them ends at the end of the transaction (endWaiting)
}

// tx is one transaction. now is read from the database's clock after the first lock and decides everything in it; the
// process's own clock decides nothing (docs/queue.md rule 7).
type tx struct {
	*ent.Tx
	now time.Time
	effects
	causes  map[xid.ID]bool // that it told the traces of
	held    laneSet         // lanes that it has locked
	also    []string        // agents whose lanes it is to lock before all else, since the try before this one lacked them
	spoiled error           // why it must not be committed, whatever its caller made of the error
}

func (t *tx) publish(events ...event.Event)     { t.events = append(t.events, events...) }
func (t *tx) count(f func(c *metrics.Counters)) { t.counts = append(t.counts, f) }
func (t *tx) onCommit(f func(s *Store))         { t.then = append(t.then, f) }

// maxTries bounds how often a transaction that lost a deadlock or a serialization race is repeated.
const maxTries = 5

// inTx runs f in one transaction, repeats it after a deadlock or a lost race, and lets its effects happen after commit.
func (s *Store) inTx(ctx context.Context, f func(*tx) error) error {
	var also []string
	for tries := 1; ; tries++ {
		done, err := s.tryTx(ctx, also, f)
		if err == nil {
			s.apply(done)
			return nil
		}
		if lacked, ok := errors.AsType[*lanesNeeded](err); ok {
			also = append(also, lacked.agents...)
		}
		if !isRetryable(err) || tries >= triesFor(err) {
			return err
		}
	}
}

// triesFor is how often a transaction is begun that ends so. One that found other records than it had read without locks
// waited for who changed them: it is next, sooner or later.
func triesFor(err error) int {
	if errors.Is(err, errChanged) {
		return 20 * maxTries
	}
	return maxTries
}

func (s *Store) tryTx(ctx context.Context, also []string, f func(*tx) error) (effects, error) {
	et, err := s.client.Tx(ctx)
	if err != nil {
		return effects{}, fmt.Errorf("begin transaction: %w", err)
	}
	t := &tx{Tx: et, held: laneSet{}, also: also}
	finished := false
	defer func() {
		if !finished { // f panicked: the connection must not stay in a transaction
			_ = et.Rollback()
		}
	}()
	if err = f(t); err == nil {
		_, err = t.endWaiting(ctx)
	}
	finished = true
	if err == nil {
		err = t.spoiled
	}
	if err != nil {
		return effects{}, errors.Join(err, rollback(et))
	}
	if err := et.Commit(); err != nil {
		return effects{}, fmt.Errorf("commit: %w", err)
	}
	return t.effects, nil
}

// rollback ends a failed transaction; that the connection was already gone is no further error.
func rollback(et *ent.Tx) error {
	err := et.Rollback()
	if err == nil || errors.Is(err, sql.ErrTxDone) || isConnectionError(err) {
		return nil
	}
	return fmt.Errorf("roll back: %w", err)
}

func (s *Store) apply(e effects) {
	for _, f := range e.counts {
		f(s.counters)
	}
	if len(e.events) > 0 {
		s.events.Publish(e.events...)
	}
	for _, f := range e.then {
		f(s)
	}
}

// isRetryable is true for a deadlock, for a lost serialization race, and for what was changed before it was locked.
func isRetryable(err error) bool { return hasCode(err, "40P01", "40001") || errors.Is(err, errChanged) }

// isLockTimeout says that somebody held a row for longer than the transaction waits.
func isLockTimeout(err error) bool { return hasCode(err, "55P03") }

func hasCode(err error, codes ...pqerror.Code) bool {
	var pe *pq.Error
	if !errors.As(err, &pe) {
		return false
	}
	for _, c := range codes {
		if pe.Code == c {
			return true
		}
	}
	return false
}

// uniqueViolation names the constraint that an insert ran into, or "".
func uniqueViolation(err error) string {
	var pe *pq.Error
	if errors.As(err, &pe) && pe.Code == "23505" {
		return pe.Constraint
	}
	return ""
}

// readClock sets now in a transaction that locks no lane.
func (t *tx) readClock(ctx context.Context) error {
	now, err := queryOne[time.Time](ctx, t, `SELECT clock_timestamp()`)
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	t.now = now.UTC()
	return nil
}
