package graph

import (
	"context"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/topic"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of what a LOG topic keeps for those who are not far behind.
const (
	topicKeeps  = 256     // entries
	topicWeighs = 1 << 20 // bytes, about
)

// runTopic names a topic about a run: its states, its events, or its events and log lines.
type runTopic struct {
	run    xid.ID
	states bool
	lines  bool
}

// asReader is the caller that topics read as. Whoever follows one was let in before.
func asReader(ctx context.Context) context.Context { return auth.WithPrincipal(ctx, auth.Local()) }

func gone() error {
	return &Error{Code: CodeNotFound, Message: "there is no such run in this workspace"}
}

// seesRun refuses callers who do not see a run. What decides that never changes for a run and a token.
func (r *Resolver) seesRun(ctx context.Context, runID xid.ID) error {
	_, err := r.Reader.Run.Get(ctx, runID)
	if ent.IsNotFound(err) {
		return gone()
	}
	if err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	return nil
}

// streamRun follows the states of a run: at once and then at each change, until it has ended.
func (r *Resolver) streamRun(ctx context.Context, runID xid.ID) (<-chan *ent.Run, error) {
	if err := r.seesRun(ctx, runID); err != nil {
		return nil, err
	}
	t := topic.Join(ctx, r.topics, runTopic{run: runID, states: true}, func() *topic.State[ent.Run] { return r.statesOf(runID) })
	return followState(ctx, t.Follow()), nil
}

// statesOf reads a run's states for all who follow it.
func (r *Resolver) statesOf(runID xid.ID) *topic.State[ent.Run] {
	return topic.NewState(topic.StateOptions[ent.Run]{
		Look: func(ctx context.Context) <-chan struct{} { return r.Signals.WatchRun(ctx, runID) },
		Beat: r.Poll,
		Read: func(ctx context.Context) (*ent.Run, error) {
			x, err := r.Reader.Run.Get(asReader(ctx), runID)
			if ent.IsNotFound(err) {
				return nil, gone()
			}
			return x, err
		},
		Same: func(a, b *ent.Run) bool { return !changed(a, b) },
		Last: func(x *ent.Run) bool { return ended(x.Status) },
		Told: told, Failed: r.triesAgain("run", "run_id", runID),
	})
}

// triesAgain logs that a topic was not read. It is read again at the next look, since the database may come back (SPEC
// S8.6).
func (r *Resolver) triesAgain(what, key string, id xid.ID) func(context.Context, error) {
	return func(ctx context.Context, err error) {
		r.Log.WarnContext(ctx, what+" not read, the stream tries again", key, id, "error", err)
	}
}

// changed says whether a client would see a difference: every change of a run raises its revision or its event sequence, or
// asks for a cancel.
func changed(old, now *ent.Run) bool {
	return old.Revision != now.Revision || old.EventSeq != now.EventSeq || (old.CancelRequestedAt == nil) != (now.CancelRequestedAt == nil)
}

// streamEvents follows what happens to a run, from a place on, until it has ended.
func (r *Resolver) streamEvents(ctx context.Context, runID xid.ID, after *ent.Cursor, includeLogs bool) (<-chan model.RunStreamItem, error) {
	at, err := positionOf(after, runID)
	if err != nil {
		return nil, err
	}
	if err = r.seesRun(ctx, runID); err != nil {
		return nil, err
	}
	if at, err = r.found(ctx, at); err != nil {
		return nil, fmt.Errorf("find the place of a cursor: %w", err)
	}
	t := topic.Join(ctx, r.topics, runTopic{run: runID, lines: includeLogs}, func() *runLog { return r.runHistory(runID).log(includeLogs) })
	return followRun(ctx, t, at, includeLogs, r), nil
}

// followRun follows a run's log. Without lines, the half of a position that says which lines were sent stays as the
// reader brought it, and who brought another one is shown other cursors.
func followRun(ctx context.Context, t *runLog, at position, lines bool, r *Resolver) <-chan model.RunStreamItem {
	brought := at.line
	whole := func(p position) position {
		if !lines {
			p.line = brought
		}
		return p
	}
	if !lines {
		at.line = reads.LogPosition{}
		if brought != at.line {
			ctx.Value(streamKey{}).(*stream).unlike(fmt.Sprint(brought))
		}
	}
	show := func(e *topic.Entry[position, runRow]) (model.RunStreamItem, error) { return e.Item.show(whole(e.At)) }
	return followLog(ctx, t.Follow(at, r.Patience, nil), r.Patience, show, func(p position) string { return model.CursorText(whole(p).cursor()) })
}

// runRow is an item of a run's stream: an event, or where that is nil, a log line.
type runRow struct {
	event *reads.RunEvent
	line  reads.LogRow
}

func (x runRow) show(at position) (model.RunStreamItem, error) {
	if x.event == nil {
		return lineOf(x.line, at), nil
	}
	return eventOf(*x.event, at)
}

// weight is the memory of a row, about.
func (x runRow) weight() int {
	const row = 200
	if x.event == nil {
		return row + len(x.line.Text)
	}
	return row + len(x.event.Data)
}

type runLog = topic.Log[position, runRow]

// runHistory reads what happened to a run.
type runHistory struct {
	options topic.LogOptions[position, runRow] // but for what reads
	run     xid.ID
	batch   int
	head    func(ctx context.Context, lines bool) (reads.RunHead, error)
	events  func(ctx context.Context, after int64, limit int) ([]reads.RunEvent, error)
	lines   func(ctx context.Context, after reads.LogPosition, limit int) ([]reads.LogRow, error)
}

func (r *Resolver) runHistory(runID xid.ID) runHistory {
	return runHistory{
		options: topic.LogOptions[position, runRow]{
			Look: func(ctx context.Context) <-chan struct{} { return r.Signals.WatchRun(ctx, runID) },
			Poll: r.Poll, Failed: r.triesAgain("run events", "run_id", runID),
		},
		run: runID, batch: streamBatch,
		head: func(ctx context.Context, lines bool) (reads.RunHead, error) {
			return r.Store.RunHead(ctx, runID, lines)
		},
		events: func(ctx context.Context, seq int64, limit int) ([]reads.RunEvent, error) {
			return r.Store.RunEventsAfter(ctx, runID, seq, limit)
		},
		lines: func(ctx context.Context, line reads.LogPosition, limit int) ([]reads.LogRow, error) {
			return r.Store.LogAfter(ctx, runID, line, limit)
		},
	}
}

// log is the topic of a run's events and, with lines, of its log.
func (h runHistory) log(lines bool) *runLog {
	if !lines {
		h.lines = nil
	}
	o := h.options
	o.Told, o.Weight, o.Keep, o.Weigh = told, runRow.weight, topicKeeps, topicWeighs
	o.Head = func(ctx context.Context) (position, error) {
		_, at, err := h.now(ctx)
		return at, err
	}
	o.Read = h.read
	o.CatchUp = func(ctx context.Context, after position, upTo *position) ([]*runEntry, error) {
		return h.rows(ctx, after, upTo)
	}
	return topic.NewLog(o)
}

type runEntry = topic.Entry[position, runRow]

// now reads whether the run has ended, and the position of the newest that is stored of it.
func (h runHistory) now(ctx context.Context) (over bool, at position, err error) {
	head, err := h.head(ctx, h.lines != nil)
	if err == nil && !head.Found {
		err = gone()
	}
	return err == nil && ended(head.Status), position{h.run, head.Event, head.Line}, err
}

// read reads what follows a position. The status is read first, with the newest position: an end and its last event
// commit together, so what is read next is complete.
func (h runHistory) read(ctx context.Context, after position) (topic.Page[position, runRow], error) {
	over, newest, err := h.now(ctx)
	if err != nil {
		return topic.Page[position, runRow]{}, err
	}
	items, err := h.rows(ctx, after, &newest)
	if err != nil {
		return topic.Page[position, runRow]{}, err
	}
	more := len(items) > 0 && !newest.UpTo(items[len(items)-1].At)
	return topic.Page[position, runRow]{Items: items, More: more, Over: over && !more}, nil
}

// rows reads one batch of what follows a position, up to another one unless that is nil. A half of it of which nothing
// follows is not read.
func (h runHistory) rows(ctx context.Context, after position, upTo *position) (out []*runEntry, err error) {
	var events []reads.RunEvent
	var lines []reads.LogRow
	if upTo == nil || upTo.event > after.event {
		if events, err = h.events(ctx, after.event, h.batch); err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
	}
	if h.lines != nil && (upTo == nil || !upTo.line.UpTo(after.line)) {
		if lines, err = h.lines(ctx, after.line, h.batch); err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
	}
	events, lines = cutToHorizon(events, lines, h.batch)
	if upTo != nil {
		events, lines = cutTo(events, lines, *upTo)
	}
	return merge(after, events, lines), nil
}

// merge puts events and lines in one order; each has the position behind it.
func merge(at position, events []reads.RunEvent, lines []reads.LogRow) (out []*runEntry) {
	for len(events)+len(lines) > 0 {
		if eventFirst(events, lines) {
			at = at.withEvent(events[0])
			out = append(out, &runEntry{Item: runRow{event: &events[0]}, At: at})
			events = events[1:]
			continue
		}
		at = at.withLine(lines[0])
		out = append(out, &runEntry{Item: runRow{line: lines[0]}, At: at})
		lines = lines[1:]
	}
	return out
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

// cutTo leaves out what lies after a position.
func cutTo(events []reads.RunEvent, lines []reads.LogRow, at position) ([]reads.RunEvent, []reads.LogRow) {
	for len(events) > 0 && events[len(events)-1].Seq > at.event {
		events = events[:len(events)-1]
	}
	for len(lines) > 0 && !lines[len(lines)-1].UpTo(at.line) {
		lines = lines[:len(lines)-1]
	}
	return events, lines
}
