package topic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// spot is a place in a log of two kinds of items, as of events and lines.
type spot struct{ a, b int }

func (p spot) UpTo(other spot) bool { return p.a <= other.a && p.b <= other.b }

// book is a log as a database would hold it: the items of each kind have an order of their own.
type book struct {
	mu               sync.Mutex
	a, b             []string
	over             bool
	look             chan struct{}
	heads, reads     int
	catchUps, failed int
	fail             error
	batch, keep      int
}

func newBook() *book { return &book{look: make(chan struct{}, 1), batch: 5, keep: 8} }

// write adds items and signals.
func (b *book) write(items ...string) {
	b.mu.Lock()
	for _, x := range items {
		if strings.HasPrefix(x, "a") {
			b.a = append(b.a, x)
		} else {
			b.b = append(b.b, x)
		}
	}
	b.mu.Unlock()
	b.signal()
}

func (b *book) signal() {
	select {
	case b.look <- struct{}{}:
	default:
	}
}

// rows gives what follows a place, a first, up to another one.
func (b *book) rows(after spot, upTo spot) (out []*Entry[spot, string]) {
	at := after
	for at.a < min(upTo.a, len(b.a)) && len(out) < b.batch {
		at.a++
		out = append(out, &Entry[spot, string]{Item: b.a[at.a-1], At: at})
	}
	for at.b < min(upTo.b, len(b.b)) && len(out) < b.batch {
		at.b++
		out = append(out, &Entry[spot, string]{Item: b.b[at.b-1], At: at})
	}
	return out
}

var noEnd = spot{1 << 30, 1 << 30}

func (b *book) log() *Log[spot, string] {
	return NewLog(LogOptions[spot, string]{
		Look: func(context.Context) <-chan struct{} { return b.look }, Poll: 5 * time.Second,
		Head: func(context.Context) (spot, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.heads++
			return spot{len(b.a), len(b.b)}, b.failure()
		},
		Read: func(_ context.Context, at spot) (Page[spot, string], error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.reads++
			items := b.rows(at, noEnd)
			return Page[spot, string]{Items: items, More: len(items) == b.batch, Over: b.over && len(items) < b.batch}, b.failure()
		},
		CatchUp: func(_ context.Context, at spot, upTo *spot) ([]*Entry[spot, string], error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.catchUps++
			if upTo == nil {
				return b.rows(at, noEnd), nil
			}
			return b.rows(at, *upTo), nil
		},
		Told:   func(err error) bool { return errors.Is(err, errTold) },
		Failed: func(context.Context, error) { b.failed++ },
		Weight: func(s string) int { return len(s) }, Keep: b.keep, Weigh: 1000,
	})
}

var errTold = errors.New("there is no such thing")

func (b *book) failure() error {
	err := b.fail
	b.fail = nil
	return err
}

// watch follows a book from a place on.
func (b *book) watch(ctx context.Context, t *Topics, at spot) *Follower[spot, string] {
	return Join(ctx, t, b, b.log).Follow(at, 8*time.Second, nil)
}

// rest reads a follower to its end.
func rest(ctx context.Context, f *Follower[spot, string]) (items []string, err error) {
	for {
		e, err := f.Next(ctx)
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		if err != nil {
			return items, err
		}
		items = append(items, e.Item)
	}
}

func TestAllWhoWatchShareOneReader(t *testing.T) {
	for _, watchers := range []int{1, 200} {
		synctest.Test(t, func(t *testing.T) {
			b, topics := newBook(), &Topics{}
			var all sync.WaitGroup
			for range watchers {
				f := b.watch(t.Context(), topics, spot{})
				all.Go(func() {
					if got, err := rest(t.Context(), f); err != nil || !slices.Equal(got, []string{"a1", "b1", "a2"}) {
						t.Errorf("got %v, %v", got, err)
					}
				})
			}
			for _, x := range []string{"a1", "b1", "a2"} {
				synctest.Wait()
				b.write(x)
			}
			synctest.Wait()
			b.mu.Lock()
			b.over = true
			b.mu.Unlock()
			b.signal()
			all.Wait()
			if b.heads != 1 || b.reads != 5 || b.catchUps != 0 {
				t.Errorf("%d watchers: %d heads, %d reads, %d read for themselves; want 1, 5 and 0", watchers, b.heads, b.reads, b.catchUps)
			}
			synctest.Wait()
			if n := topics.Open(); n != 0 {
				t.Errorf("%d topics are open after the end", n)
			}
		})
	}
}

func TestWhoIsBehindReadsForItselfAndJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, topics := newBook(), &Topics{}
		first := b.watch(t.Context(), topics, spot{})
		synctest.Wait()
		for i := range 12 {
			b.write(fmt.Sprint("a", i))
		}
		synctest.Wait()
		for i := range 12 {
			if e, err := first.Next(t.Context()); err != nil || e.Item != fmt.Sprint("a", i) {
				t.Fatalf("item %d is %v, %v", i, e, err)
			}
		}
		own := b.catchUps
		late := b.watch(t.Context(), topics, spot{a: 1})
		for i := 1; i < 12; i++ {
			if e, err := late.Next(t.Context()); err != nil || e.Item != fmt.Sprint("a", i) {
				t.Fatalf("item %d of the late one is %v, %v", i, e, err)
			}
		}
		if b.catchUps != own+1 {
			t.Errorf("the late one read %d times for itself, want once: what the log keeps it gets from there", b.catchUps-own)
		}
		b.write("b0")
		for _, f := range []*Follower[spot, string]{first, late} {
			if e, err := f.Next(t.Context()); err != nil || e.Item != "b0" || e.At != (spot{12, 1}) {
				t.Errorf("live came %v, %v", e, err)
			}
		}
		if b.catchUps != own+1 {
			t.Error("it read for itself although it had caught up")
		}
	})
}

func TestASlowWatcherHoldsNeitherOthersNorMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, topics := newBook(), &Topics{}
		slow, fast := b.watch(t.Context(), topics, spot{}), b.watch(t.Context(), topics, spot{})
		b.write("a0")
		if _, err := slow.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if i > 0 {
				b.write(fmt.Sprint("a", i))
			}
			if e, err := fast.Next(t.Context()); err != nil || e.Item != fmt.Sprint("a", i) {
				t.Fatalf("the fast one gets %v, %v", e, err)
			}
		}
		if n := len(fast.log.entries); n > b.keep {
			t.Errorf("%d entries are kept, want %d at most", n, b.keep)
		}
		for i := 1; i < 100; i++ {
			if e, err := slow.Next(t.Context()); err != nil || e.Item != fmt.Sprint("a", i) {
				t.Fatalf("item %d of the slow one is %v, %v", i, e, err)
			}
		}
	})
}

func TestHeavyItemsAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, topics := newBook(), &Topics{}
		f := b.watch(t.Context(), topics, spot{})
		synctest.Wait()
		b.write("a"+strings.Repeat("x", 600), "a"+strings.Repeat("y", 600), "a"+strings.Repeat("z", 2000))
		synctest.Wait()
		if n := len(f.log.entries); n != 0 || f.log.weight != 0 {
			t.Errorf("%d entries of weight %d are kept", n, f.log.weight)
		}
		for range 3 {
			if _, err := f.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAWatcherThatLagsIsToldWhereToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, topics := newBook(), &Topics{}
		b.write("a1", "a2", "a3")
		f := b.watch(t.Context(), topics, spot{})
		if _, err := f.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Second)
		if _, err := f.Next(t.Context()); err != nil {
			t.Errorf("within its patience: %v", err)
		}
		time.Sleep(8*time.Second + 1)
		_, err := f.Next(t.Context())
		if lagged, ok := errors.AsType[*LaggedError[spot]](err); !ok || lagged.At != (spot{a: 2}) {
			t.Errorf("after it: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // nothing was there to take
		b, topics := newBook(), &Topics{}
		b.write("a1")
		f := b.watch(t.Context(), topics, spot{})
		if _, err := f.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		b.write("a2")
		synctest.Wait()
		time.Sleep(time.Second)
		if e, err := f.Next(t.Context()); err != nil || e.Item != "a2" {
			t.Errorf("an idle reader got %v, %v", e, err)
		}
	})
}

func TestALogThatCannotBeReadIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, topics := newBook(), &Topics{}
		b.fail = errors.New("connection lost")
		f := b.watch(t.Context(), topics, spot{})
		begun := time.Now()
		b.mu.Lock()
		b.a = append(b.a, "a1") // nobody signals it
		b.mu.Unlock()
		if e, err := f.Next(t.Context()); err != nil || e.Item != "a1" || time.Since(begun) > 5*time.Second || b.failed != 1 {
			t.Errorf("got %v, %v after %v; %d failures were told", e, err, time.Since(begun), b.failed)
		}
		b.fail = errTold
		b.signal()
		if _, err := f.Next(t.Context()); !errors.Is(err, errTold) {
			t.Errorf("the stream ended with %v", err)
		}
	})
}

func TestAPanicOfTheReaderEndsTheStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, topics := newBook(), &Topics{}
		l := b.log()
		l.o.Read = func(context.Context, spot) (Page[spot, string], error) { panic("broken") }
		f := Join(t.Context(), topics, b, func() *Log[spot, string] { return l }).Follow(spot{}, time.Second, nil)
		if _, err := f.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("the stream ended with %v", err)
		}
	})
}

func TestTheReaderStopsWithTheLastWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, topics := newBook(), &Topics{}
		one, leaveOne := context.WithCancel(t.Context())
		two, leaveTwo := context.WithCancel(t.Context())
		f := b.watch(one, topics, spot{})
		b.watch(two, topics, spot{})
		leaveOne()
		if _, err := f.Next(one); !errors.Is(err, context.Canceled) {
			t.Errorf("who left gets %v", err)
		}
		synctest.Wait()
		if topics.Open() != 1 {
			t.Error("the topic ended although somebody watches")
		}
		leaveTwo()
		synctest.Wait()
		reads := b.reads
		b.signal()
		synctest.Wait()
		if topics.Open() != 0 || b.reads != reads {
			t.Error("the topic is read although nobody watches")
		}
	})
}

// Watchers begin anywhere and take at any pace, and each gets every item after its place once, in the order of its kind,
// with places that lead on.
func TestEachWatcherGetsEachItemOnceFromAnyPlaceAtAnyPace(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test repeats by its seed
			b, topics := newBook(), &Topics{}
			b.batch, b.keep = 1+r.IntN(6), 1+r.IntN(9)
			grow := func() {
				for range r.IntN(5) {
					if r.IntN(2) == 0 {
						b.write(fmt.Sprint("a", len(b.a)))
					} else {
						b.write(fmt.Sprint("b", len(b.b)))
					}
				}
			}
			grow()
			type watcher struct {
				f   *Follower[spot, string]
				at  spot
				end context.CancelFunc
			}
			var watchers []*watcher
			begin := func(at spot) {
				ctx, cancel := context.WithCancel(t.Context())
				watchers = append(watchers, &watcher{b.watch(ctx, topics, at), at, cancel})
			}
			take := func(w *watcher) {
				e, err := w.f.Next(t.Context())
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				want := w.at
				if strings.HasPrefix(e.Item, "a") {
					want.a++
					if e.Item != b.a[w.at.a] {
						t.Fatalf("seed %d: after %v came %s", seed, w.at, e.Item)
					}
				} else {
					want.b++
					if e.Item != b.b[w.at.b] {
						t.Fatalf("seed %d: after %v came %s", seed, w.at, e.Item)
					}
				}
				if e.At != want {
					t.Fatalf("seed %d: after %v came %s at %v, want %v", seed, w.at, e.Item, e.At, want)
				}
				w.at = want
			}
			for range 60 {
				switch k := r.IntN(6); {
				case k == 0:
					begin(spot{r.IntN(len(b.a) + 1), r.IntN(len(b.b) + 1)})
				case k == 1 && len(watchers) > 0: // goes, and comes again from its cursor
					i := r.IntN(len(watchers))
					w := watchers[i]
					w.end()
					watchers = slices.Delete(watchers, i, i+1)
					begin(w.at)
				case k <= 3:
					grow()
				default:
					for _, w := range watchers {
						for n := r.IntN(4); n > 0 && w.at != (spot{len(b.a), len(b.b)}); n-- {
							take(w)
						}
					}
				}
				if r.IntN(2) == 0 {
					synctest.Wait()
				}
			}
			for _, w := range watchers {
				for w.at != (spot{len(b.a), len(b.b)}) {
					take(w)
				}
			}
		})
	}
}
