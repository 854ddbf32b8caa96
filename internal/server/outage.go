package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/postgres"
)

var (
	errUnavailable = &edge.Error{Code: edge.CodeUnavailable, Message: "the database does not answer; try again"}
	errFull        = &edge.Error{Code: edge.CodeUnavailable,
		Message: "the database has no room left, as on a full disk, and nothing was changed; try again once its operator has made some"}
)

// refused shows a caller the errors that the resolvers and directives meant for it.
func refused(err error) *edge.Error {
	if e, ok := errors.AsType[*graph.Error](err); ok {
		return &edge.Error{Code: e.Code, Message: e.Message, Extensions: e.Extensions}
	}
	return nil
}

// presentError shows a caller an outage of the database as one.
func (o *outage) presentError(ctx context.Context, err error) *edge.Error {
	switch {
	case ctx.Err() != nil: // a caller that went away, or ran out of time, is no outage
		return nil
	case isFull(err):
		o.begin(err, true)
		return errFull
	case postgres.Away(err):
		o.begin(err, false)
		return errUnavailable
	}
	return nil
}

// isFull reports whether the database lacks what it needs: room on its disk, memory, or connections (class 53).
func isFull(err error) bool { return strings.HasPrefix(postgres.State(err), "53") }

// outageBeat is the pause between two looks whether the database is back.
const outageBeat = time.Second

// outage tells the log that the database is away, once, and once that it is back, however many callers notice.
type outage struct {
	log   *slog.Logger
	try   func(context.Context) error // nil: the database answers, and has room to write
	away  atomic.Bool
	full  atomic.Bool   // it answers, and lacks room
	begun chan struct{} // capacity 1
}

func newOutage(try func(context.Context) error, log *slog.Logger) *outage {
	return &outage{log: log, try: try, begun: make(chan struct{}, 1)}
}

// begin takes note that somebody met the outage.
func (o *outage) begin(err error, full bool) {
	if !o.away.CompareAndSwap(false, true) {
		return
	}
	o.full.Store(full)
	if full {
		o.log.Error("the database has no room left: free some on its disk (or give it memory, or connections); callers of the API are told to try again", "error", err)
	} else {
		o.log.Warn("the database does not answer; callers of the API are told to try again", "error", err)
	}
	o.begun <- struct{}{}
}

// isFull says whether the database answers and has no room.
func (o *outage) isFull() bool { return o != nil && o.full.Load() }

// run waits for the end of each outage, until ctx ends.
func (o *outage) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.begun:
		}
		began := time.Now()
		if !o.waitForEnd(ctx) {
			return
		}
		o.log.Info("the database answers again", "after", time.Since(began).Round(time.Second))
		o.full.Store(false)
		o.away.Store(false)
	}
}

// waitForEnd reports whether the database is back; false when ctx ended before.
func (o *outage) waitForEnd(ctx context.Context) bool {
	tick := time.NewTicker(outageBeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		try, cancel := context.WithTimeout(ctx, outageBeat)
		err := o.try(try)
		cancel()
		if err == nil {
			return true
		}
	}
}
