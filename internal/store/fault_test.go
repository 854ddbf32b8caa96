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

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// errFault is what a statement fails with after it was executed, as if the answer had been lost.
var errFault = errors.New("fault injected by the test")

// faults fails the n-th statement from now on; it never fails what ends a transaction or a savepoint.
type faults struct {
	left   atomic.Int64 // 0: none
	again  atomic.Bool  // the statement after it fails, too
	hit    atomic.Pointer[string]
	commit atomic.Pointer[func(*faultyConn, driver.Tx) error] // what becomes of the next COMMIT; nil: nothing unusual
}

func (f *faults) after(query string) error {
	if strings.HasPrefix(query, "ROLLBACK") || f.left.Load() == 0 || f.left.Add(-1) > 0 {
		return nil
	}
	f.hit.Store(&query)
	if f.again.Swap(false) {
		f.left.Store(1)
	}
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

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	inner, err := c.plainConn.BeginTx(ctx, opts)
	return &faultyTx{inner, c}, err
}

type faultyTx struct {
	driver.Tx
	conn *faultyConn
}

func (t *faultyTx) Commit() error {
	if f := t.conn.faults.commit.Swap(nil); f != nil {
		return (*f)(t.conn, t.Tx)
	}
	return t.Tx.Commit()
}

// commitFaults are the ways in which a COMMIT goes wrong: the connection is cut before the server has it, or before the
// answer is here, or the server refuses.
var commitFaults = map[string]func(*faultyConn, driver.Tx) error{
	"cut before the server committed": func(c *faultyConn, _ driver.Tx) error { return errors.Join(driver.ErrBadConn, c.plainConn.Close()) },
	"cut after the server committed": func(c *faultyConn, tx driver.Tx) error {
		if err := tx.Commit(); err != nil {
			return err
		}
		return errors.Join(driver.ErrBadConn, c.plainConn.Close())
	},
	"refused, the disk is full": func(_ *faultyConn, tx driver.Tx) error { return errors.Join(&pq.Error{Code: "53100"}, tx.Rollback()) },
	"refused, a lost race":      func(_ *faultyConn, tx driver.Tx) error { return errors.Join(&pq.Error{Code: "40001"}, tx.Rollback()) },
}

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
	t.Parallel()
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
		{"a catch-up of five slots", nil, func(w *world, trigger xid.ID) { w.down(trigger, 4*time.Hour) }, fireSlot, 5},
		{"a catch-up with ALWAYS_ENQUEUE", func(r *CreateRoutine) { r.ConcurrencyPolicy = domain.ConcurrencyPolicyAlwaysEnqueue }, func(w *world, trigger xid.ID) { w.down(trigger, time.Hour) }, fireSlot, 2},
		{"two slots that make tasks", func(r *CreateRoutine) {
			r.TaskTemplate, r.ConcurrencyPolicy = &domain.TaskTemplate{Title: "Review {{datetime}}"}, domain.ConcurrencyPolicyAlwaysEnqueue
		}, func(w *world, trigger xid.ID) { w.down(trigger, time.Hour) }, fireSlot, 2},
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
				f.again.Store(true) // or it would be made once more, unrouted
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
				case err == nil: // the write of last_run_at: the fire is whole without it, or what failed was tried once more
					if now := one[int](w, `SELECT count(*) FROM routine_runs`); now != fires+c.fires {
						t.Errorf("after %q the fire succeeded with %d routine runs", *query, now-fires)
					}
					w.sql(`DELETE FROM wakeup_requests`)
					w.sql(`DELETE FROM runs`)
					w.sql(`UPDATE agent_lanes SET head_at = NULL, head_id = NULL`)
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

// S4.3, S3.2: whatever becomes of a COMMIT, a fire and a route happen once, when they are tried again as the next tick or a
// caller with the same key tries them: all or nothing, never twice.
func TestAFaultyCommitOfAFireOrARouteLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for fault, commit := range commitFaults {
		for _, c := range []struct {
			name string
			due  bool
			hook bool
			do   func(ctx context.Context, w *world, s *Store, trigger xid.ID) error
		}{
			{"a slot", true, false, fireSlot},
			{"a batch of slots", true, false, func(ctx context.Context, w *world, s *Store, _ xid.ID) error {
				triggers, err := pgtx.Collect(ctx, w.db, pgtx.ScanOne[xid.ID], `SELECT id FROM routine_triggers ORDER BY id`)
				w.ok(err)
				_, err = s.FireDue(ctx, triggers...)
				return err
			}},
			{"a fire by hand", false, false, func(ctx context.Context, w *world, s *Store, _ xid.ID) error {
				_, _, err := s.FireRoutine(ctx, FireRoutine{WorkspaceID: w.workspace, RoutineID: one[xid.ID](w, `SELECT min(id) FROM routines`),
					Idempotency: Idempotency{Key: "k", InputDigest: "d"}})
				return err
			}},
			{"a webhook", false, true, func(ctx context.Context, w *world, s *Store, _ xid.ID) error {
				hook, err := s.Webhook(ctx, one[string](w, `SELECT min(public_id) FROM routine_triggers`))
				w.ok(err)
				_, err = s.Deliver(ctx, Delivery{Webhook: hook, Key: "k"})
				return err
			}},
		} {
			t.Run(fault+": "+c.name, func(t *testing.T) {
				w := newWorld(t)
				var triggers []xid.ID
				agents := []xid.ID{w.agent("one"), w.agent("two")}
				for _, agent := range agents {
					triggers = append(triggers, w.routine(agent, func(r *CreateRoutine) {
						if c.hook {
							r.Triggers = []TriggerSpec{{ID: NewTriggerID(domain.TriggerKindWebhook), Kind: domain.TriggerKindWebhook, Enabled: true,
								SigningMode: domain.SigningModeNone, ReplayWindow: time.Minute}}
						}
					}))
				}
				want := 1
				if c.name == "a batch of slots" {
					want = 2
				}
				if c.due {
					w.sql(`UPDATE routine_triggers SET next_run_at = ` + lastSlot + ` - interval '1 hour'`)
					want *= 2
				}
				s, f := w.faulty()
				f.commit.Store(&commit)
				first := c.do(t.Context(), w, s, triggers[0])
				if f.commit.Load() != nil {
					t.Fatal("nothing was committed")
				}
				after := one[int](w, `SELECT count(*) FROM routine_runs`)
				if repeated := fault == "refused, a lost race"; repeated != (first == nil) && !strings.HasSuffix(c.name, "batch of slots") {
					t.Errorf("the first try says %v", first)
				}
				if after != 0 && after != want {
					t.Errorf("after the fault %d of %d fires are there", after, want)
				}
				w.ok(c.do(t.Context(), w, s, triggers[0]))
				w.wantFires(want)

				f.commit.Store(&commit)
				_, first = s.Route(t.Context(), agents...)
				if f.commit.Load() != nil {
					t.Fatal("nothing was committed")
				}
				if cut := strings.HasPrefix(fault, "cut"); cut && first == nil {
					t.Error("a route whose connection was cut succeeded")
				}
				left, err := s.UnroutedAgents(t.Context(), 10)
				w.ok(err)
				_, err = s.Route(t.Context(), left...)
				w.ok(err)
				w.wantFires(want)
				if n := one[int](w, `SELECT count(*) FROM wakeup_requests WHERE run_id IS NULL`); n != 0 {
					t.Errorf("%d requests are unrouted", n)
				}
				if runs, fired := one[int](w, `SELECT count(*) FROM runs`), one[int](w, `SELECT count(DISTINCT routine_id) FROM routine_runs`); runs != fired {
					t.Errorf("%d runs for %d routines", runs, fired)
				}
				w.sound()
			})
		}
	}
}

// wantFires fails the test unless there are so many fires, one for each slot, each with one request.
func (w *world) wantFires(want int) {
	w.Helper()
	if n := one[int](w, `SELECT count(*) FROM routine_runs`); n != want {
		w.Errorf("%d fires, want %d", n, want)
	}
	if n := one[int](w, `SELECT count(*) FROM routine_runs f WHERE (SELECT count(*) FROM wakeup_requests q WHERE q.routine_run_id = f.id) <> 1`); n != 0 {
		w.Errorf("%d fires have no request, or several", n)
	}
	if n := one[int](w, `SELECT count(*) FROM (SELECT 1 FROM routine_runs WHERE scheduled_for IS NOT NULL GROUP BY trigger_id, scheduled_for HAVING count(*) > 1) x`); n != 0 {
		w.Errorf("%d slots fired twice", n)
	}
}

// C48, C209: whichever statement of a route fails, the requests stay as they were, and the next try routes each once.
func TestAFaultAfterAnyStatementOfARouteLeavesAllOrNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.window(time.Minute)
	agent := w.agent("worker")
	s, f := w.faulty()
	kept := func() string {
		return one[string](w, `SELECT concat_ws(' ', (SELECT string_agg(concat_ws('/', id, status, run_id), ',' ORDER BY id) FROM wakeup_requests),
  (SELECT string_agg(concat_ws('/', id, wake_class, parked_reason, coalesced_count, event_seq), ',' ORDER BY id) FROM runs), (SELECT count(*) FROM run_events),
  (SELECT count(*) FROM activities), (SELECT head_id FROM agent_lanes))`)
	}
	ask := func(scope string, class domain.WakeClass, person bool) {
		w.ok(w.inTx(t.Context(), func(x *tx) error {
			_, _, err := x.insertRequest(t.Context(), newRequest{workspaceID: w.workspace, agentID: agent, causationID: xid.New("cau"), scope: scope,
				source: domain.WakeupSourceSelf, class: class, personWaiting: person, reason: "test", payload: &domain.SelfPayload{Reason: "test"}})
			return err
		}))
	}
	failed := 0
	for n := int64(1); ; n++ {
		scope := fmt.Sprint("task:", n)
		ask(scope, domain.WakeClassPeriodic, false)
		w.route(agent) // a run that waits for its window
		ask(scope, domain.WakeClassEvent, true)
		ask(scope+"x", domain.WakeClassEvent, false)
		before := kept()
		f.left.Store(n)
		f.hit.Store(nil)
		_, err := s.Route(t.Context(), agent)
		f.left.Store(0)
		if f.hit.Load() == nil {
			w.ok(err)
			break
		}
		failed++
		if after := kept(); !errors.Is(err, errFault) || after != before {
			t.Errorf("after %q: %v\nbefore %s\nafter  %s", *f.hit.Load(), err, before, after)
		}
		w.route(agent)
		w.sound()
	}
	if failed < 6 {
		t.Errorf("only %d statements failed", failed)
	}
	if n := one[int](w, `SELECT count(*) FROM runs WHERE coalesced_count <> (SELECT count(*) FROM wakeup_requests q WHERE q.run_id = runs.id)`); n != 0 {
		t.Errorf("%d runs do not count their requests", n)
	}
}
