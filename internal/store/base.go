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

	// Claims and batches of transitions take turns in a process: each holds many lanes, and a claim passes over those that are locked.
	lanes pgtx.Turn

	last func(t *tx, ctx context.Context) error // what each transaction does when all else is written

	activated atomic.Pointer[time.Time] // the activation instant, once Activate has read it
}

// tx is one transaction of a part of the store.
type tx struct {
	*pgtx.Tx
	base   *base
	causes map[xid.ID]bool // that it told the traces of
	locked laneSet         // lanes that it has locked
	also   []string        // agents whose lanes it is to lock before all else, since the try before this one lacked them

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
func (s *base) inTx(ctx context.Context, f func(*tx) error) error {
	var also []string
	return s.transactions.Run(ctx, func(p *pgtx.Tx) error {
		t := &tx{Tx: p, base: s, locked: laneSet{}, also: also}
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
