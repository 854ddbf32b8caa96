package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/sparing"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// ErrFenced says that another attempt, or none, owns the run: the report of this one changes nothing (SPEC S7.7).
var ErrFenced = pgtx.ErrFenced

// Bounds of a transaction that several callers share.
const (
	mostTogether     = 64
	togetherPatience = 30 * time.Second
)

// errHeld says that a call that was to share a transaction was left out: it would have had to wait for somebody.
var errHeld = errors.New("somebody holds what the call needs")

// errMoved says that a routine changed its assignee between the look without locks and the lock; the caller looks again.
var errMoved = errors.New("the routine was given to another agent meanwhile; try again")

// isRefusal says that a call was refused for what its caller can mend.
func isRefusal(err error) bool {
	_, is := errors.AsType[*domain.UserError](err)
	return is
}

// newIDs makes n ids in rising order.
func newIDs(prefix string, n int) []xid.ID {
	list := make([]xid.ID, n)
	for i := range list {
		list[i] = xid.New(prefix)
	}
	return list
}

// base is what every part of a Store stands on. It is safe for concurrent use.
type base struct {
	db           *sql.DB
	client       *ent.Client
	transactions pgtx.DB
	events       pgtx.Publisher
	counters     *metrics.Counters
	log          *slog.Logger
	jitter       func() float64
	tracer       Tracer          // nil: no traces
	limitedLog   sparing.Repeats // of calls that others make again and again: workers ask every second

	// Of what the API shows: claims, leases and reports never wait for one of these connections.
	reads      *sql.DB
	readClient *ent.Client

	// Batches of transitions take turns in a process, since each holds many lanes, and so do claims. A claim takes the turn of the
	// batches, too, where lanes that one holds would keep it from due runs.
	lanes, claims pgtx.Turn

	last func(t *tx, ctx context.Context) error // what each transaction does when all else is written

	activated atomic.Pointer[time.Time] // the activation instant, once Activate has read it
}

// tx is one transaction of a part of the store.
type tx struct {
	*pgtx.Tx
	base    *base
	causes  map[xid.ID]bool // that it told the traces of
	locked  laneSet         // lanes that it has locked
	also    []string        // agents whose lanes it is to lock before all else, since the try before this one lacked them
	routes  bool            // it routes what it sends where it holds the lanes (routingTx)
	toRoute []xid.ID        // agents of requests that it sent and did not route

	// What a savepoint that is rolled back undoes.
	sent     []xid.ID    // requests that it made or sent again
	due      []xid.ID    // runs that waited for room in a budget and look again at once
	over     []xid.ID    // tasks that have ended: what waits about them ends at the end of the transaction (endWaiting)
	departed []departure // runs that leave CLAIMED: what follows is written at the end of the transaction (leaveAll)
}

// onCommit calls f after the commit.
func (t *tx) onCommit(f func(s *base)) { t.OnCommit(func() { f(t.base) }) }

// savepoint runs f so that its failure undoes only what f did.
func (t *tx) savepoint(ctx context.Context, f func() error) error {
	sent, due, over, departed := t.sent, t.due, t.over, t.departed
	err := t.Savepoint(ctx, f)
	if err != nil {
		t.sent, t.due, t.over, t.departed = sent, due, over, departed
	}
	return err
}

// inTx runs f in one transaction, repeats it after a deadlock or a lost race, and lets its effects happen after commit.
func (s *base) inTx(ctx context.Context, f func(*tx) error) error { return s.run(ctx, false, f) }

// routingTx is inTx for a cause that routes what it sends in the same transaction. A cause stands although what it made cannot be
// routed: when it fails for anything but its caller's mistake, it is made once more, unrouted, and the dispatcher routes it.
func (s *base) routingTx(ctx context.Context, f func(*tx) error) error {
	cause := s.run(ctx, true, f)
	if cause == nil || isRefusal(cause) || errors.Is(cause, errMoved) || pgtx.EndsAll(ctx, cause) || pgtx.Retryable(cause) {
		return cause
	}
	if err := s.run(ctx, false, f); err != nil {
		return err
	}
	s.log.Warn("wakeups were not routed with their cause, the dispatcher does it", "error", cause)
	return nil
}

func (s *base) run(ctx context.Context, routes bool, f func(*tx) error) error {
	var also []string
	return s.transactions.Run(ctx, func(p *pgtx.Tx) error {
		t := &tx{Tx: p, base: s, locked: laneSet{}, also: also, routes: routes}
		err := f(t)
		if err == nil {
			err = s.last(t, ctx)
		}
		if lacked, ok := errors.AsType[*lanesNeeded](err); ok {
			also = append(also, lacked.agents...)
		}
		return err
	})
}

// tell writes the line that goes with an entry of the feed, in the log's own spelling: a wake was dropped, or sent again.
func (s *base) tell(code domain.ActivityCode, reason domain.EndReason, keys ...any) {
	if reason != "" {
		keys = append(keys, "reason", strings.ToLower(string(reason)))
	}
	s.log.Info(strings.ToLower(string(code)), keys...)
}
