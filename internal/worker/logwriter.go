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
	stepStorage = 4 << 10               // bytes that a step of progress counts for
	logRest     = 64 << 10              // bytes that a run's end takes along: many ends share a transaction
)

// linesLost says in the log that lines were not stored.
const linesLost = "lines of a run could not be stored and are missing in its log"

// logWriter writes an attempt's lines and steps of progress, each in their order: the first one at once, those that follow in
// batches. When the database is
// slow the agent's output waits; a launch that was ended does not wait, and what then has no room is dropped and
// counted in the log. What is left when the attempt ends well can go along with its end (rest).
type logWriter struct {
	attempt *attempt
	store   Store
	log     *slog.Logger
	ctx     context.Context // ends the retries
	brief   bool            // the attempt is over as soon as it begins

	mu      sync.Mutex
	changed chan struct{} // capacity 1: lines to write, or closed
	room    chan struct{} // closed and replaced when lines were taken
	pending []store.LogLine
	steps   []map[string]any
	bytes   int
	seq     int64
	dropped int
	closed  bool
	keep    bool            // the lines that are left when it is closed are not written
	kept    []store.LogLine // those; read when done is closed
	done    chan struct{}
}

// newLogWriter makes a writer of an attempt's output. The first line of one that is brief waits as those that follow do: most
// likely its end comes before the pause is over, and takes it along.
func newLogWriter(ctx context.Context, a *attempt, s Store, log *slog.Logger, brief bool) *logWriter {
	w := &logWriter{attempt: a, store: s, log: log, ctx: ctx, brief: brief,
		changed: make(chan struct{}, 1), room: make(chan struct{}), done: make(chan struct{})}
	go w.loop()
	return w
}

// Line takes one line; it waits while too much is unwritten.
func (w *logWriter) Line(stream domain.LogStream, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.admit(len(text)) {
		w.add(stream, text)
	} else {
		w.dropped++
	}
}

// Progress takes one step of the agent's work, as Line does a line. One that finds no room is dropped: the log tells it, too.
func (w *logWriter) Progress(step map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.admit(stepStorage) && !w.closed {
		w.steps = append(w.steps, step)
		w.bytes += stepStorage
		w.signal()
	}
}

// admit waits, with mu held, until there is room for that many bytes; false when there will be no room.
func (w *logWriter) admit(bytes int) bool {
	for w.bytes > 0 && w.bytes+bytes > logBuffer {
		if w.attempt.ctx.Err() != nil || w.ctx.Err() != nil {
			return false
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
	return true
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
	w.end(false)
}

// rest is close for an attempt that ended well: it leaves the lines of the last write to the end of the run, when they are few.
func (w *logWriter) rest() []store.LogLine {
	w.end(true)
	return w.kept
}

func (w *logWriter) end(keep bool) {
	w.mu.Lock()
	if w.dropped > 0 {
		w.add(domain.LogStreamSystem, fmt.Sprintf("%d lines are missing here: the database did not take them before the attempt was ended", w.dropped))
	}
	if !w.closed {
		w.closed, w.keep = true, keep
		w.signal()
	}
	w.mu.Unlock()
	<-w.done
}

func (w *logWriter) loop() {
	defer close(w.done)
	if w.brief {
		<-w.changed
		w.pause()
	}
	for {
		<-w.changed
		lines, steps, closed := w.take()
		if closed && w.keep && fitsTheEnd(lines) {
			w.kept, lines = lines, nil
		}
		if !w.write(lines) || !w.writeSteps(steps) {
			w.discard()
			return
		}
		if closed {
			return
		}
		w.pause()
	}
}

func (w *logWriter) take() (lines []store.LogLine, steps []map[string]any, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, steps = w.pending, w.steps
	w.pending, w.steps, w.bytes = nil, nil, 0
	close(w.room)
	w.room = make(chan struct{})
	return lines, steps, w.closed
}

// fitsTheEnd says whether lines are few enough to be stored with the end of their run.
func fitsTheEnd(lines []store.LogLine) bool {
	bytes := 0
	for _, line := range lines {
		bytes += len(line.Text) + lineStorage
	}
	return len(lines) <= logBatch && bytes <= logRest
}

// pause collects lines until a batch is full, the pause is over or there will be no more.
func (w *logWriter) pause() {
	timer := time.NewTimer(logPause)
	defer timer.Stop()
	for over := w.enough(); !over; {
		select {
		case <-timer.C:
			over = true
		case <-w.changed:
			over = w.enough()
		}
	}
	if w.waiting() {
		w.signal()
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
	return w.closed || len(w.pending)+len(w.steps) > 0
}

// write appends one batch; false when no further one can be written.
func (w *logWriter) write(lines []store.LogLine) bool {
	for len(lines) > 0 {
		batch := lines[:min(len(lines), logBatch)]
		err := persist(w.ctx, func(ctx context.Context) error { return w.store.AppendLog(ctx, w.attempt.Attempt, batch) })
		if !w.goesOn(err, linesLost, len(batch)) {
			return false
		}
		lines = lines[len(batch):]
	}
	return true
}

// writeSteps is write for steps.
func (w *logWriter) writeSteps(steps []map[string]any) bool {
	if len(steps) == 0 {
		return true
	}
	err := persist(w.ctx, func(ctx context.Context) error { return w.store.Progress(ctx, w.attempt.Attempt, steps...) })
	return w.goesOn(err, "the progress of a run could not be stored and is missing in its events", len(steps))
}

// goesOn reports whether more can be written after a write that ended so.
func (w *logWriter) goesOn(err error, lost string, count int) bool {
	switch {
	case errors.Is(err, store.ErrFenced):
		w.attempt.stop(stopLost())
		return false
	case w.ctx.Err() != nil:
		return false
	case err != nil:
		w.log.Error(lost, w.attempt.keys(), "count", count, "error", err)
	}
	return true
}

// discard lets Line go on without storing anything, once the run is not ours any more.
func (w *logWriter) discard() {
	for {
		_, _, closed := w.take()
		if closed {
			return
		}
		<-w.changed
	}
}
