package graph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/topic"
)

// history is a run as the tables would hold it.
type history struct {
	mu     sync.Mutex
	run    ent.Run
	events []reads.RunEvent
	lines  []reads.LogRow
	look   chan struct{}
	fail   error // of the next read of events
}

func newHistory() *history {
	return &history{run: ent.Run{ID: "run_1", Status: domain.RunStatusQueued, Revision: 1}, look: make(chan struct{}, 1)}
}

// change changes the history and signals.
func (h *history) change(f func(*history)) {
	h.mu.Lock()
	f(h)
	h.mu.Unlock()
	select {
	case h.look <- struct{}{}:
	default:
	}
}

// step adds an event, a status with it.
func (h *history) step(kind domain.RunEventKind, status domain.RunStatus) {
	h.run.EventSeq++
	if h.run.Status != status {
		h.run.Status = status
		h.run.Revision++
	}
	h.events = append(h.events, reads.RunEvent{Seq: h.run.EventSeq, Kind: kind, OccurredAt: time.Now()})
}

func (h *history) print(text string) {
	h.lines = append(h.lines, reads.LogRow{LogPosition: reads.LogPosition{Attempt: 1, Seq: int64(len(h.lines) + 1)}, Text: text, At: time.Now()})
}

// history reads in batches.
func (h *history) history(batch int) runHistory {
	return runHistory{
		options: topic.LogOptions[position, runRow]{
			Look: func(context.Context) <-chan struct{} { return h.look }, Poll: 5 * time.Second, Failed: func(context.Context, error) {},
		},
		run: "run_1", batch: batch,
		head: func(context.Context, bool) (reads.RunHead, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			return reads.RunHead{Found: true, Status: h.run.Status, Event: h.run.EventSeq, Line: reads.LogPosition{Attempt: min(len(h.lines), 1), Seq: int64(len(h.lines))}}, nil
		},
		events: func(_ context.Context, after int64, limit int) ([]reads.RunEvent, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if err := h.fail; err != nil {
				h.fail = nil
				return nil, err
			}
			rest := h.events[min(int(after), len(h.events)):]
			return slices.Clone(rest[:min(limit, len(rest))]), nil
		},
		lines: func(_ context.Context, after reads.LogPosition, limit int) ([]reads.LogRow, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			rest := h.lines[min(int(after.Seq), len(h.lines)):]
			return slices.Clone(rest[:min(limit, len(rest))]), nil
		},
	}
}

// follower follows a history from a position on, and is the one who does.
func follower(ctx context.Context, h runHistory, at position) *topic.Follower[position, runRow] {
	t := topic.Join(ctx, &topic.Topics{}, "history", func() *runLog { return h.log(true) })
	return t.Follow(at, 8*time.Second, nil)
}

// collected gives what a history sends after a position until it ends.
func collected(ctx context.Context, h runHistory, at position) (all []model.RunStreamItem, err error) {
	f := follower(ctx, h, at)
	for {
		e, err := f.Next(ctx)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		item, err := e.Item.show(e.At)
		if err != nil {
			return all, err
		}
		all = append(all, item)
	}
}

func label(item model.RunStreamItem) string {
	switch item := item.(type) {
	case *model.RunEvent:
		return string(item.Kind)
	case *model.RunLogLine:
		return item.Text
	}
	return "?"
}

func labels(items []model.RunStreamItem) []string {
	var out []string
	for _, item := range items {
		out = append(out, label(item))
	}
	return out
}

func TestEventsAndLinesComeStoredThenLiveEachOnceInOrder(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 2, 3, 200} {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory()
			h.step(domain.RunEventKindCreated, domain.RunStatusQueued)
			time.Sleep(time.Second)
			h.step(domain.RunEventKindClaimed, domain.RunStatusClaimed)
			time.Sleep(time.Second)
			h.print("one")
			go func() {
				time.Sleep(time.Second)
				h.change(func(h *history) { h.print("two") })
				time.Sleep(time.Second)
				h.change(func(h *history) { h.step(domain.RunEventKindLaunched, domain.RunStatusClaimed) })
				time.Sleep(time.Second)
				h.change(func(h *history) { h.print("three") })
				time.Sleep(time.Second)
				h.change(func(h *history) { h.step(domain.RunEventKindFinished, domain.RunStatusFinished) })
			}()
			got, err := collected(t.Context(), h.history(batch), position{run: "run_1"})
			want := []string{"CREATED", "CLAIMED", "one", "two", "LAUNCHED", "three", "FINISHED"}
			if err != nil || !slices.Equal(labels(got), want) {
				t.Errorf("batches of %d: %v, %v", batch, labels(got), err)
			}
		})
	}
}

func TestAStreamGoesOnFromTheCursorOfAnyItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		h.step(domain.RunEventKindCreated, domain.RunStatusQueued)
		for i := range 5 {
			time.Sleep(time.Millisecond)
			h.print(fmt.Sprint("line ", i))
			time.Sleep(time.Millisecond)
			h.step(domain.RunEventKindProgress, domain.RunStatusClaimed)
		}
		time.Sleep(time.Millisecond)
		h.step(domain.RunEventKindFinished, domain.RunStatusFinished)
		follow := func(at position) []model.RunStreamItem {
			got, err := collected(t.Context(), h.history(3), at)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		all := follow(position{run: "run_1"})
		if len(all) != 12 {
			t.Fatalf("got %v", labels(all))
		}
		for i, item := range all {
			var cursor ent.Cursor
			switch item := item.(type) {
			case *model.RunEvent:
				cursor = item.Cursor
			case *model.RunLogLine:
				cursor = item.Cursor
			}
			at, err := positionOf(&cursor, "run_1")
			if rest := labels(follow(at)); err != nil || !slices.Equal(rest, labels(all[i+1:])) {
				t.Errorf("after %s came %v, want %v (%v)", label(item), rest, labels(all[i+1:]), err)
			}
		}
	})
}

func TestALostSignalCostsOnePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		h.step(domain.RunEventKindCreated, domain.RunStatusQueued)
		begun := time.Now()
		go func() {
			time.Sleep(time.Second)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.step(domain.RunEventKindCancelled, domain.RunStatusCancelled)
		}()
		got, err := collected(t.Context(), h.history(10), position{run: "run_1"})
		if took := time.Since(begun); err != nil || len(got) != 2 || took != 5*time.Second {
			t.Errorf("%v after %v, %v", labels(got), took, err)
		}
	})
}

func TestAClosedSignalLeavesThePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		h.step(domain.RunEventKindCreated, domain.RunStatusQueued)
		close(h.look)
		go func() {
			time.Sleep(12 * time.Second)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.step(domain.RunEventKindFinished, domain.RunStatusFinished)
		}()
		got, err := collected(t.Context(), h.history(10), position{run: "run_1"})
		if err != nil || len(got) != 2 {
			t.Errorf("%v, %v", labels(got), err)
		}
	})
}

func TestAReadThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		h.step(domain.RunEventKindFinished, domain.RunStatusFinished)
		h.fail = errors.New("connection lost")
		got, err := collected(t.Context(), h.history(10), position{run: "run_1"})
		if err != nil || !slices.Equal(labels(got), []string{"FINISHED"}) {
			t.Errorf("%v, %v", labels(got), err)
		}
	})
}

func TestAReaderThatLagsIsToldWhereToGoOn(t *testing.T) {
	t.Parallel()
	brought := reads.LogPosition{Attempt: 1, Seq: 7}
	for lines, want := range map[bool]position{
		true:  {run: "run_1", event: 1},
		false: {run: "run_1", event: 1, line: brought}, // who follows events alone keeps the place in the log that it brought
	} {
		synctest.Test(t, func(t *testing.T) {
			h, s, at := newHistory(), &stream{}, position{run: "run_1"}
			h.step(domain.RunEventKindCreated, domain.RunStatusQueued)
			h.step(domain.RunEventKindFinished, domain.RunStatusFinished)
			if !lines {
				at.line = brought
			}
			log := topic.Join(t.Context(), &topic.Topics{}, "history", func() *runLog { return h.history(10).log(lines) })
			out := followRun(withStream(t.Context(), s), log, at, lines, &Resolver{Patience: 8 * time.Second})
			_, put, err := s.next(t.Context())
			if err == nil {
				err = put()
			}
			if first := <-out; err != nil || first.(*model.RunEvent).Cursor != want.cursor() {
				t.Fatalf("first came %+v, %v", first, err)
			}
			time.Sleep(9 * time.Second)
			_, _, err = s.next(t.Context())
			lagged, ok := errors.AsType[*Error](err)
			if !ok || lagged.Code != CodeSubscriptionLagged {
				t.Fatalf("the stream ended with %v", err)
			}
			var cursor ent.Cursor
			if err := cursor.UnmarshalGQL(lagged.Extensions["resumeAfter"]); err != nil || cursor != want.cursor() {
				t.Errorf("resumeAfter is %v, %v", cursor, err)
			}
		})
	}
}
