package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// Bounds of the log writer.
const (
	logPause    = 25 * time.Millisecond // between two writes while lines keep coming
	logBatch    = 256                   // lines that are written without waiting for the pause
	logBuffer   = 512 << 10             // bytes that wait for the database before the agent has to
	lineStorage = 64                    // bytes a line costs beside its text
)

// logWriter writes an attempt's lines in order: the first one at once, those that follow in batches. When the database is
// slow the agent's output waits; a launch that was ended does not wait, and what then has no room is dropped and
// counted in the log.
type logWriter struct {
	attempt *attempt
	store   Store
	log     *slog.Logger
	ctx     context.Context // ends the retries

	mu      sync.Mutex
	changed chan struct{} // capacity 1: lines to write, or closed
	room    chan struct{} // closed and replaced when lines were taken
	pending []store.LogLine
	bytes   int
	seq     int64
	dropped int
	closed  bool
	done    chan struct{}
}

func newLogWriter(ctx context.Context, a *attempt, s Store, log *slog.Logger) *logWriter {
	w := &logWriter{attempt: a, store: s, log: log, ctx: ctx,
		changed: make(chan struct{}, 1), room: make(chan struct{}), done: make(chan struct{})}
	go w.loop()
	return w
}

// Line takes one line; it waits while too much is unwritten.
func (w *logWriter) Line(stream domain.LogStream, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.bytes > 0 && w.bytes+len(text) > logBuffer {
		if w.attempt.ctx.Err() != nil || w.ctx.Err() != nil {
			w.dropped++
			return
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-w.attempt.ctx.Done():
		case <-w.ctx.Done():
		}
		w.mu.Lock()
	}
	w.add(stream, text)
}

// add is called with mu held.
func (w *logWriter) add(stream domain.LogStream, text string) {
	if w.closed {
		return
	}
	w.seq++
	w.pending = append(w.pending, store.LogLine{Seq: w.seq, Stream: stream, Text: text, At: time.Now().UTC()})
	w.bytes += len(text) + lineStorage
	w.signal()
}

func (w *logWriter) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// close writes what is left and returns when it is written, or cannot be.
func (w *logWriter) close() {
	w.mu.Lock()
	if w.dropped > 0 {
		w.add(domain.LogStreamSystem, fmt.Sprintf("%d lines are missing here: the database did not take them before the attempt was ended", w.dropped))
	}
	w.closed = true
	w.signal()
	w.mu.Unlock()
	<-w.done
}

func (w *logWriter) loop() {
	defer close(w.done)
	for {
		<-w.changed
		lines, closed := w.take()
		if len(lines) > 0 && !w.write(lines) {
			w.discard()
			return
		}
		if closed {
			return
		}
		w.pause()
	}
}

func (w *logWriter) take() (lines []store.LogLine, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, w.pending, w.bytes = w.pending, nil, 0
	close(w.room)
	w.room = make(chan struct{})
	return lines, w.closed
}

// pause collects lines until a batch is full, the pause is over or there will be no more.
func (w *logWriter) pause() {
	timer := time.NewTimer(logPause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-w.changed:
			if !w.enough() {
				continue
			}
		}
		if w.waiting() {
			w.signal()
		}
		return
	}
}

func (w *logWriter) enough() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed || len(w.pending) >= logBatch || w.bytes >= logBuffer/2
}

func (w *logWriter) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed || len(w.pending) > 0
}

// write appends one batch; false when no further one can be written.
func (w *logWriter) write(lines []store.LogLine) bool {
	for len(lines) > 0 {
		batch := lines[:min(len(lines), logBatch)]
		err := persist(w.ctx, func(ctx context.Context) error { return w.store.AppendLog(ctx, w.attempt.Attempt, batch) })
		switch {
		case errors.Is(err, store.ErrFenced):
			w.attempt.stop(stopLost())
			return false
		case w.ctx.Err() != nil:
			return false
		case err != nil:
			w.log.Error("lines of a run could not be stored and are missing in its log", w.attempt.keys(), "lines", len(batch), "error", err)
		}
		lines = lines[len(batch):]
	}
	return true
}

// discard lets Line go on without storing anything, once the run is not ours any more.
func (w *logWriter) discard() {
	for {
		_, closed := w.take()
		if closed {
			return
		}
		<-w.changed
	}
}
