package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// errFault is what a statement fails with after it was executed, as if the answer had been lost.
var errFault = errors.New("fault injected by the test")

// faults fails the n-th statement from now on; it never fails what ends a transaction or a savepoint.
type faults struct {
	left atomic.Int64 // 0: none
	hit  atomic.Pointer[string]
}

func (f *faults) after(query string) error {
	if strings.HasPrefix(query, "ROLLBACK") || f.left.Load() == 0 || f.left.Add(-1) > 0 {
		return nil
	}
	f.hit.Store(&query)
	return errFault
}

// faultyConnector lends connections of a pool, which stay taken, and fails statements on them.
type faultyConnector struct {
	pool   *sql.DB
	faults *faults
}

func (c faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	lent, err := c.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var inner plainConn
	err = lent.Raw(func(conn any) error {
		var ok bool
		if inner, ok = conn.(plainConn); !ok {
			return fmt.Errorf("a connection is a %T", conn)
		}
		return nil
	})
	return &faultyConn{inner, lent, c.faults}, err
}

func (c faultyConnector) Driver() driver.Driver { return c.pool.Driver() }

// plainConn is what the program's connections can do.
type plainConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.QueryerContext
	driver.ExecerContext
	driver.NamedValueChecker
}

type faultyConn struct {
	plainConn
	lent   *sql.Conn
	faults *faults
}

func (c *faultyConn) Close() error { return c.lent.Close() }

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.plainConn.ExecContext(ctx, query, args)
	if err == nil {
		err = c.faults.after(query)
	}
	return result, err
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.plainConn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if err := c.faults.after(query); err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return rows, nil
}

// faulty is the world's store on connections whose statements can be made to fail.
func (w *world) faulty() (*Store, *faults) {
	w.Helper()
	f := &faults{}
	db := sql.OpenDB(faultyConnector{w.db, f})
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(2)
	w.Cleanup(func() { _ = db.Close() }) // its connections are the pool's
	return New(db, Options{Events: w.events, Counters: metrics.New(), Log: slog.New(slog.DiscardHandler), Jitter: func() float64 { return 0 }}), f
}

// kept is everything that a fire writes, but last_run_at, which is written in a savepoint of its own.
func (w *world) kept() string {
	w.Helper()
	return one[string](w, `
SELECT concat_ws(' ', (SELECT count(*) FROM routine_runs), (SELECT count(*) FROM wakeup_requests), (SELECT count(*) FROM activities), (SELECT count(*) FROM tasks),
  (SELECT count(*) FROM webhook_deliveries), (SELECT string_agg(concat_ws('/', id, next_run_at, last_fired_at), ',' ORDER BY id) FROM routine_triggers))`)
}

// C48, C209: whichever statement of a fire fails, and the last_run_at write excepted, nothing of it is kept; the next try
// makes it whole, once.
func TestAFaultAfterAnyStatementOfAFireLeavesAllOrNothing(t *testing.T) {
	hook := func(r *CreateRoutine) {
		r.Triggers = []TriggerSpec{{ID: NewTriggerID(domain.TriggerKindWebhook), Kind: domain.TriggerKindWebhook, Enabled: true, SigningMode: domain.SigningModeNone, ReplayWindow: time.Minute}}
	}
	for _, c := range []struct {
		name   string
		change func(*CreateRoutine)
		ready  func(w *world, trigger xid.ID)
		fire   func(ctx context.Context, w *world, s *Store, trigger xid.ID) error
		fires  int
	}{
		{"a slot", nil, func(w *world, trigger xid.ID) { w.makeDue(trigger) }, fireSlot, 1},
		{"a catch-up of five slots", nil, func(w *world, trigger xid.ID) { w.down(trigger, 4*time.Minute) }, fireSlot, 5},
		{"a catch-up with ALWAYS_ENQUEUE", func(r *CreateRoutine) { r.ConcurrencyPolicy = domain.ConcurrencyPolicyAlwaysEnqueue }, func(w *world, trigger xid.ID) { w.down(trigger, time.Minute) }, fireSlot, 2},
		{"a fire by hand", nil, func(*world, xid.ID) {}, func(ctx context.Context, w *world, s *Store, _ xid.ID) error {
			_, _, err := s.FireRoutine(ctx, FireRoutine{WorkspaceID: w.workspace, RoutineID: one[xid.ID](w, `SELECT id FROM routines`)})
			return err
		}, 1},
		{"a webhook", hook, func(*world, xid.ID) {}, func(ctx context.Context, w *world, s *Store, _ xid.ID) error {
			hook, err := s.Webhook(ctx, one[string](w, `SELECT public_id FROM routine_triggers`))
			if err != nil {
				return err
			}
			_, err = s.Deliver(ctx, Delivery{Webhook: hook, Body: []byte(`{"a":1}`), Key: "k"})
			return err
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			trigger := w.routine(w.agent("worker"), c.change)
			s, f := w.faulty()
			failed := 0
			for n := int64(1); ; n++ {
				c.ready(w, trigger)
				before := w.kept()
				fires := one[int](w, `SELECT count(*) FROM routine_runs`)
				f.left.Store(n)
				f.hit.Store(nil)
				err := c.fire(t.Context(), w, s, trigger)
				f.left.Store(0)
				query := f.hit.Load()
				if query == nil { // the fire has fewer statements: it is whole
					w.ok(err)
					if now := one[int](w, `SELECT count(*) FROM routine_runs`); now != fires+c.fires {
						t.Errorf("%d fires, want %d", now-fires, c.fires)
					}
					break
				}
				failed++
				after := w.kept()
				switch {
				case err == nil: // the write of last_run_at: the fire is whole without it
					if now := one[int](w, `SELECT count(*) FROM routine_runs`); now != fires+c.fires || !strings.Contains(*query, "last_run_at") && !strings.Contains(*query, "SAVEPOINT") {
						t.Errorf("after %q the fire succeeded with %d routine runs", *query, now-fires)
					}
					w.sql(`DELETE FROM wakeup_requests`)
					w.sql(`DELETE FROM webhook_deliveries`)
					w.sql(`DELETE FROM routine_runs`)
				case !errors.Is(err, errFault) || after != before:
					t.Errorf("after %q: %v\nbefore %s\nafter  %s", *query, err, before, after)
				}
			}
			if failed < 8 {
				t.Errorf("only %d statements failed", failed)
			}
			w.sound()
		})
	}
}

func fireSlot(ctx context.Context, _ *world, s *Store, trigger xid.ID) error {
	_, err := s.FireDue(ctx, trigger)
	return err
}
