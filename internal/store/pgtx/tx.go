// Package pgtx is what all transactions of the store share: how one is begun, repeated and ended, what follows from it after
// its commit, the database's clock, and the helpers that run SQL. It knows no table.
package pgtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/postgres"
)

// Publisher tells others, after a commit, that something changed. It never blocks.
type Publisher interface{ Publish(events ...event.Event) }

// DB begins transactions.
type DB struct {
	Client   *ent.Client
	Events   Publisher
	Counters *metrics.Counters
}

// Client gives access by ent to an open database.
func Client(db *sql.DB) *ent.Client {
	return ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db)))
}

// effects are what a transaction causes outside the database, once it has committed.
type effects struct {
	events []event.Event
	counts []func(*metrics.Counters)
	then   []func()
}

// Tx is one transaction. Now is read from the database's clock after the first lock and decides everything in it; the
// process's own clock decides nothing (docs/queue.md rule 7).
type Tx struct {
	*ent.Tx
	Now time.Time
	effects
	spoiled error // why it must not be committed, whatever its caller made of the error
}

// Publish tells others of events after the commit.
func (t *Tx) Publish(events ...event.Event) { t.events = append(t.events, events...) }

// Count counts something after the commit.
func (t *Tx) Count(f func(c *metrics.Counters)) { t.counts = append(t.counts, f) }

// OnCommit calls f after the commit.
func (t *Tx) OnCommit(f func()) { t.then = append(t.then, f) }

// MaxTries bounds how often a transaction that lost a deadlock or a serialization race is repeated.
const MaxTries = 5

// Run runs f in one transaction, repeats it after a deadlock or a lost race, and lets its effects happen after commit.
func (db *DB) Run(ctx context.Context, f func(*Tx) error) error {
	for tries := 1; ; tries++ {
		done, err := db.try(ctx, f)
		if err == nil {
			db.apply(done)
			return nil
		}
		if !Retryable(err) || tries >= triesFor(err) {
			return err
		}
	}
}

// triesFor is how often a transaction is begun that ends so. A transaction that found other records than it had read
// without locks has waited for the one that changed them, so it succeeds sooner or later.
func triesFor(err error) int {
	if errors.Is(err, ErrChanged) {
		return 20 * MaxTries
	}
	return MaxTries
}

func (db *DB) try(ctx context.Context, f func(*Tx) error) (effects, error) {
	et, err := db.Client.Tx(ctx)
	if err != nil {
		return effects{}, fmt.Errorf("begin transaction: %w", err)
	}
	t := &Tx{Tx: et}
	finished := false
	defer func() {
		if !finished { // f panicked: the connection must not stay in a transaction
			_ = et.Rollback()
		}
	}()
	err = f(t)
	finished = true
	if err == nil {
		err = t.spoiled
	}
	if err != nil {
		return effects{}, errors.Join(err, Rollback(et))
	}
	if err := et.Commit(); err != nil {
		return effects{}, fmt.Errorf("commit: %w", err)
	}
	return t.effects, nil
}

// Rollback ends a failed transaction; that the connection was already gone is no further error.
func Rollback(et *ent.Tx) error {
	err := et.Rollback()
	if err == nil || errors.Is(err, sql.ErrTxDone) || postgres.Away(err) {
		return nil
	}
	return fmt.Errorf("roll back: %w", err)
}

func (db *DB) apply(e effects) {
	for _, f := range e.counts {
		f(db.Counters)
	}
	if len(e.events) > 0 {
		db.Events.Publish(e.events...)
	}
	for _, f := range e.then {
		f()
	}
}

// ReadClock sets Now in a transaction that locks no lane.
func (t *Tx) ReadClock(ctx context.Context) (err error) {
	t.Now, err = Clock(ctx, t)
	return err
}

// Clock is the instant by the database's clock.
func Clock(ctx context.Context, q Querier) (time.Time, error) {
	now, err := QueryOne[time.Time](ctx, q, `SELECT clock_timestamp()`)
	return now.UTC(), Wrap("read the database's clock", err)
}

// Savepoint runs f so that its failure undoes only its own statements, and what they would have caused after the commit.
// It returns f's error; the transaction goes on. One whose savepoint could not be ended is never committed, since nobody
// knows what of it is undone.
func (t *Tx) Savepoint(ctx context.Context, f func() error) error {
	if _, err := Exec(ctx, t, `SAVEPOINT part`); err != nil {
		return fmt.Errorf("set savepoint: %w", err)
	}
	before := t.effects
	if err := f(); err != nil {
		t.effects = before
		if _, back := Exec(ctx, t, `ROLLBACK TO SAVEPOINT part`); back != nil {
			t.spoiled = errors.Join(err, fmt.Errorf("roll back to savepoint: %w", back))
			return t.spoiled
		}
		return err
	}
	if _, err := Exec(ctx, t, `RELEASE SAVEPOINT part`); err != nil {
		t.spoiled = fmt.Errorf("release savepoint: %w", err)
	}
	return t.spoiled
}
