package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store/reads"
)

// tail follows one run. It reads at once, then at each signal, and at each poll at the latest. A read that fails is
// logged and tried again at the next look, since the database may come back (SPEC S8.6).
type tail struct {
	look <-chan struct{}
	poll time.Duration
	log  *slog.Logger
	run  func(context.Context) (*ent.Run, error)
}

// wait returns at the next signal or poll; false: ctx has ended.
func (t *tail) wait(ctx context.Context, ticks <-chan time.Time) bool {
	select {
	case _, ok := <-t.look:
		if !ok {
			t.look = nil // no more signals; polling goes on
		}
		return true
	case <-ticks:
		return true
	case <-ctx.Done():
		return false
	}
}

// states sends the run at once and then whenever it has changed; of several changes that the reader did not take in time,
// the newest. It returns nil after it has sent a terminal run, and an error when the run is gone.
func (t *tail) states(ctx context.Context, out chan<- *ent.Run) error {
	ticker := time.NewTicker(t.poll)
	defer ticker.Stop()
	var sent, fresh *ent.Run
	for {
		switch now, err := t.run(ctx); {
		case ent.IsNotFound(err):
			return gone()
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			t.log.WarnContext(ctx, "run not read, the stream tries again", "error", err)
		case changed(sent, now):
			fresh = now
		}
		if fresh == nil {
			if !t.wait(ctx, ticker.C) {
				return ctx.Err()
			}
			continue
		}
		select {
		case out <- fresh:
			if sent, fresh = fresh, nil; ended(sent.Status) {
				return nil
			}
		case _, ok := <-t.look:
			if !ok {
				t.look = nil
			}
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// changed says whether a client would see a difference: every change of a run raises its revision or its event sequence, or
// asks for a cancel.
func changed(old, now *ent.Run) bool {
	return old == nil || old.Revision != now.Revision || old.EventSeq != now.EventSeq || (old.CancelRequestedAt == nil) != (now.CancelRequestedAt == nil)
}

func gone() error {
	return &Error{Code: CodeNotFound, Message: "there is no such run in this workspace"}
}

// feed is a tail of the run's events and, where lines is set, of its log.
type feed struct {
	tail
	patience time.Duration
	batch    int
	events   func(ctx context.Context, after int64, limit int) ([]reads.RunEvent, error)
	lines    func(ctx context.Context, after reads.LogPosition, limit int) ([]reads.LogRow, error)
}

// items sends everything after a position, each item once and in order. It returns nil when the run has ended and its last
// item is sent, and an Error SUBSCRIPTION_LAGGED when the reader left one item untaken for too long.
func (f *feed) items(ctx context.Context, at position, out chan<- model.RunStreamItem) error {
	ticker := time.NewTicker(f.poll)
	defer ticker.Stop()
	for {
		// The status is read first: an end and its last event commit together, so what is read next is complete.
		now, err := f.run(ctx)
		if ent.IsNotFound(err) {
			return gone()
		}
		more := false
		if err == nil {
			at, more, err = f.send(ctx, at, out)
		}
		switch _, lagged := errors.AsType[*Error](err); {
		case lagged:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			f.log.WarnContext(ctx, "run events not read, the stream tries again", "error", err)
		case more:
			continue
		case ended(now.Status):
			return nil
		}
		if !f.wait(ctx, ticker.C) {
			return ctx.Err()
		}
	}
}

// send reads one batch and hands it out. more: there was something, so there may be more. On an error, at is the position
// of the last item that was taken.
func (f *feed) send(ctx context.Context, at position, out chan<- model.RunStreamItem) (_ position, more bool, err error) {
	events, err := f.events(ctx, at.event, f.batch)
	if err != nil {
		return at, false, fmt.Errorf("read events: %w", err)
	}
	var lines []reads.LogRow
	if f.lines != nil {
		if lines, err = f.lines(ctx, at.line, f.batch); err != nil {
			return at, false, fmt.Errorf("read log: %w", err)
		}
	}
	events, lines = cutToHorizon(events, lines, f.batch)
	more = len(events)+len(lines) > 0
	for len(events)+len(lines) > 0 {
		var item model.RunStreamItem
		var next position
		if eventFirst(events, lines) {
			next = at.withEvent(events[0])
			if item, err = eventOf(events[0], next); err != nil {
				return at, false, err
			}
			events = events[1:]
		} else {
			next = at.withLine(lines[0])
			item, lines = lineOf(lines[0], next), lines[1:]
		}
		if err := hand(ctx, f.patience, item, out, at.cursor()); err != nil {
			return at, false, err
		}
		at = next
	}
	return at, more, nil
}

// hand gives the reader one item; at is where it can go on when it does not take it.
func hand[T any](ctx context.Context, patience time.Duration, item T, out chan<- T, at ent.Cursor) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case out <- item:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return &Error{
			Code:       CodeSubscriptionLagged,
			Message:    fmt.Sprintf("the reader did not take an event for %s, so the stream was ended; subscribe again with after: resumeAfter", patience),
			Extensions: map[string]any{"resumeAfter": model.CursorText(at)},
		}
	}
}

// eventFirst merges by instant; at the same instant the event goes first.
func eventFirst(events []reads.RunEvent, lines []reads.LogRow) bool {
	return len(lines) == 0 || len(events) > 0 && !events[0].OccurredAt.After(lines[0].At)
}

// cutToHorizon cuts one stream at the end of the other's full batch, because more rows to merge lie behind that end and
// have not been read yet.
func cutToHorizon(events []reads.RunEvent, lines []reads.LogRow, batch int) ([]reads.RunEvent, []reads.LogRow) {
	eventsFull, linesFull := len(events) == batch, len(lines) == batch
	if eventsFull {
		end := events[len(events)-1].OccurredAt
		for len(lines) > 0 && lines[len(lines)-1].At.After(end) {
			lines = lines[:len(lines)-1]
		}
	}
	if linesFull && len(lines) == batch {
		end := lines[len(lines)-1].At
		for len(events) > 0 && events[len(events)-1].OccurredAt.After(end) {
			events = events[:len(events)-1]
		}
	}
	return events, lines
}
