package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
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

func (h *history) tail() tail {
	return tail{look: h.look, poll: 5 * time.Second, log: slog.New(slog.DiscardHandler), run: func(context.Context) (*ent.Run, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return new(h.run), nil
	}}
}

func (h *history) feed(batch int) feed {
	return feed{
		tail: h.tail(), patience: 8 * time.Second, batch: batch,
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

// collected runs a source to its end and gives what it sent.
func collected[T any](ctx context.Context, source func(context.Context, chan<- T) error) ([]T, error) {
	out, end := make(chan T), make(chan error, 1)
	go func() {
		end <- source(ctx, out)
		close(out)
	}()
	var all []T
	for item := range out {
		all = append(all, item)
	}
	return all, <-end
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
			f := h.feed(batch)
			got, err := collected(t.Context(), func(ctx context.Context, out chan<- model.RunStreamItem) error {
				return f.items(ctx, position{run: "run_1"}, out)
			})
			want := []string{"CREATED", "CLAIMED", "one", "two", "LAUNCHED", "three", "FINISHED"}
			if err != nil || !slices.Equal(labels(got), want) {
				t.Errorf("batches of %d: %v, %v", batch, labels(got), err)
			}
		})
	}
}

func TestAStreamGoesOnFromTheCursorOfAnyItem(t *testing.T) {
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
		f := h.feed(3)
		follow := func(at position) []model.RunStreamItem {
			got, err := collected(t.Context(), func(ctx context.Context, out chan<- model.RunStreamItem) error { return f.items(ctx, at, out) })
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
		f := h.feed(10)
		got, err := collected(t.Context(), func(ctx context.Context, out chan<- model.RunStreamItem) error {
			return f.items(ctx, position{run: "run_1"}, out)
		})
		if took := time.Since(begun); err != nil || len(got) != 2 || took != 5*time.Second {
			t.Errorf("%v after %v, %v", labels(got), took, err)
		}
	})
}

func TestAClosedSignalLeavesThePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		h.step(domain.RunEventKindCreated, domain.RunStatusQueued)
		f := h.feed(10)
		close(h.look)
		go func() {
			time.Sleep(12 * time.Second)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.step(domain.RunEventKindFinished, domain.RunStatusFinished)
		}()
		got, err := collected(t.Context(), func(ctx context.Context, out chan<- model.RunStreamItem) error {
			return f.items(ctx, position{run: "run_1"}, out)
		})
		if err != nil || len(got) != 2 {
			t.Errorf("%v, %v", labels(got), err)
		}
	})
}

func TestAReadThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		h.step(domain.RunEventKindFinished, domain.RunStatusFinished)
		h.fail = errors.New("connection lost")
		f := h.feed(10)
		got, err := collected(t.Context(), func(ctx context.Context, out chan<- model.RunStreamItem) error {
			return f.items(ctx, position{run: "run_1"}, out)
		})
		if err != nil || !slices.Equal(labels(got), []string{"FINISHED"}) {
			t.Errorf("%v, %v", labels(got), err)
		}
	})
}

func TestAReaderThatLagsIsToldWhereToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		h.step(domain.RunEventKindCreated, domain.RunStatusQueued)
		h.step(domain.RunEventKindFinished, domain.RunStatusFinished)
		f := h.feed(10)
		out, end := make(chan model.RunStreamItem), make(chan error, 1)
		go func() { end <- f.items(t.Context(), position{run: "run_1"}, out) }()
		first := <-out
		err := <-end
		lagged, ok := errors.AsType[*Error](err)
		if !ok || lagged.Code != CodeSubscriptionLagged {
			t.Fatalf("the stream ended with %v", err)
		}
		var cursor ent.Cursor
		if err := cursor.UnmarshalGQL(lagged.Extensions["resumeAfter"]); err != nil || cursor != first.(*model.RunEvent).Cursor {
			t.Errorf("resumeAfter is %v, %v", cursor, err)
		}
	})
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := newHistory()
		h.step(domain.RunEventKindCreated, domain.RunStatusQueued)
		f, s := h.feed(10), h.tail()
		ends := make(chan error, 2)
		items, states := make(chan model.RunStreamItem), make(chan *ent.Run)
		go func() { ends <- f.items(ctx, position{run: "run_1"}, items) }()
		go func() { ends <- s.states(ctx, states) }()
		<-items
		cancel()
		for range 2 {
			if err := <-ends; !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		}
	})
}

func TestStatesAreSentAtOnceAndAtEachChangeAndEndWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		go func() {
			for _, status := range []domain.RunStatus{domain.RunStatusClaimed, domain.RunStatusFinished} {
				time.Sleep(time.Second)
				h.change(func(*history) {}) // a signal without a change sends nothing
				time.Sleep(time.Second)
				h.change(func(h *history) { h.step(domain.RunEventKindProgress, status) })
			}
		}()
		s := h.tail()
		got, err := collected(t.Context(), s.states)
		var statuses []domain.RunStatus
		for _, x := range got {
			statuses = append(statuses, x.Status)
		}
		if want := []domain.RunStatus{domain.RunStatusQueued, domain.RunStatusClaimed, domain.RunStatusFinished}; err != nil || !slices.Equal(statuses, want) {
			t.Errorf("got %v, %v", statuses, err)
		}
	})
}

func TestASlowReaderOfStatesGetsTheNewestOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, out, end := newHistory(), make(chan *ent.Run), make(chan error, 1)
		s := h.tail()
		go func() { end <- s.states(t.Context(), out) }()
		<-out
		for range 4 {
			h.change(func(h *history) { h.step(domain.RunEventKindProgress, domain.RunStatusClaimed) })
			synctest.Wait()
		}
		h.change(func(h *history) { h.step(domain.RunEventKindFinished, domain.RunStatusFinished) })
		synctest.Wait()
		if last := <-out; last.Status != domain.RunStatusFinished || last.EventSeq != 5 {
			t.Errorf("got %s at event %d", last.Status, last.EventSeq)
		}
		if err := <-end; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}
