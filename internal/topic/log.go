package topic

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"
)

// Place is a place in a log. UpTo says whether it is not after another one. Of two places that one reader passes, one
// is always up to the other; of others it may be that neither is.
type Place[P any] interface {
	comparable
	UpTo(P) bool
}

// Entry is an item of a log, with the place behind it.
type Entry[P, T any] struct {
	Item T
	At   P
	Shared
	came time.Time
}

// Page is what one look at a log found.
type Page[P, T any] struct {
	Items []*Entry[P, T]
	More  bool          // there is more to read at once
	Over  bool          // nothing will ever follow
	Again time.Duration // look again so soon, whatever is signalled; 0: at the next signal or poll
}

// LogOptions says how a log is read.
type LogOptions[P Place[P], T any] struct {
	// Look gives signals to look again. It is called before anything is read, so that nothing falls between.
	Look func(context.Context) <-chan struct{}
	Poll time.Duration // longest time without a look
	// Head is where the log is now: what was written before it is called lies before it, or is read after it.
	Head func(context.Context) (P, error)
	// Read reads what follows a place.
	Read func(context.Context, P) (Page[P, T], error)
	// CatchUp is Read for one watcher that is behind, up to a place, or with nil without an end.
	CatchUp func(ctx context.Context, after P, upTo *P) ([]*Entry[P, T], error)
	// Told says of an error of Head or Read that it ends the topic and is for its watchers; others are tried again.
	Told func(error) bool
	// Failed is told of each error that is tried again.
	Failed func(context.Context, error)
	// Weight is the memory that an item takes, about.
	Weight func(T) int
	Keep   int // most entries that are kept
	Weigh  int // most memory that they take
}

// Log is a topic whose watchers get each item, once and in order.
type Log[P Place[P], T any] struct {
	o LogOptions[P, T]

	mu      sync.Mutex
	ready   bool
	base    P // the place before the first entry
	entries []*Entry[P, T]
	first   uint64 // the number of the first entry
	weight  int
	over    bool
	err     error         // why it is over, when that is not its proper end
	changed chan struct{} // closed at each change
}

// NewLog makes a log, for Join.
func NewLog[P Place[P], T any](o LogOptions[P, T]) *Log[P, T] {
	return &Log[P, T]{o: o, changed: make(chan struct{})}
}

// run reads until the log is over or ctx ends.
func (l *Log[P, T]) run(ctx context.Context) {
	look := l.o.Look(ctx)
	poll := time.NewTicker(l.o.Poll)
	defer poll.Stop()
	for {
		again, over := l.look(ctx)
		if over || ctx.Err() != nil {
			return
		}
		if again == 0 {
			continue
		}
		if !wait(ctx, &look, poll.C, again) {
			return
		}
	}
}

// never says that nothing but a signal or the poll makes a topic look again.
const never time.Duration = -1

// wait returns at the next signal, poll, or after again, unless that is never; false: ctx has ended.
func wait(ctx context.Context, look *<-chan struct{}, poll <-chan time.Time, again time.Duration) bool {
	var soon <-chan time.Time
	if again > 0 {
		timer := time.NewTimer(again)
		defer timer.Stop()
		soon = timer.C
	}
	select {
	case _, ok := <-*look:
		if !ok {
			*look = nil // no more signals; polling goes on
		}
	case <-poll:
	case <-soon:
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}

// look reads once; again is when to look again: 0 at once.
func (l *Log[P, T]) look(ctx context.Context) (again time.Duration, over bool) {
	if !l.ready { // written by this goroutine alone
		head, err := l.o.Head(ctx)
		if err != nil {
			return l.failed(ctx, err)
		}
		l.change(func() { l.ready, l.base = true, head })
	}
	page, err := l.o.Read(ctx, l.head())
	if err != nil {
		return l.failed(ctx, err)
	}
	if len(page.Items) > 0 || page.Over {
		l.change(func() {
			l.add(page.Items)
			l.over = page.Over
		})
	}
	switch {
	case page.More:
		return 0, page.Over
	case page.Again > 0:
		return page.Again, page.Over
	}
	return never, page.Over
}

func (l *Log[P, T]) failed(ctx context.Context, err error) (again time.Duration, over bool) {
	switch {
	case ctx.Err() != nil:
	case l.o.Told(err):
		l.broke(err)
		return never, true
	default:
		l.o.Failed(ctx, err)
	}
	return never, false
}

func (l *Log[P, T]) broke(err error) {
	l.change(func() { l.over, l.err = true, err })
}

// change changes what watchers see, and wakes them.
func (l *Log[P, T]) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// add appends entries and lets go of the oldest. l.mu is held.
func (l *Log[P, T]) add(entries []*Entry[P, T]) {
	now := time.Now()
	for _, e := range entries {
		e.came = now
		l.weight += l.o.Weight(e.Item)
	}
	l.entries = append(l.entries, entries...)
	drop := 0
	for ; len(l.entries)-drop > l.o.Keep || drop < len(l.entries) && l.weight > l.o.Weigh; drop++ {
		l.weight -= l.o.Weight(l.entries[drop].Item)
		l.base = l.entries[drop].At
	}
	if drop > 0 {
		l.first += uint64(drop)
		l.entries = slices.Clone(l.entries[drop:]) // not a part of the old array, which would keep the others
	}
}

// head is the place behind the newest entry.
func (l *Log[P, T]) head() P {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest()
}

// newest is head while l.mu is held.
func (l *Log[P, T]) newest() P {
	if n := len(l.entries); n > 0 {
		return l.entries[n-1].At
	}
	return l.base
}

// standing says how a place lies to what a log keeps.
type standing int

const (
	onPath standing = iota // an entry follows it, which is kept
	ahead                  // it is the head, or after it
	behind                 // it is before the head, and what follows it is not kept
	aside                  // it is no place that this log passes
)

// stand finds a place among what is kept: i is the entry that follows it. l.mu is held.
func (l *Log[P, T]) stand(at P) (s standing, i int) {
	head := l.newest()
	switch {
	case head.UpTo(at):
		return ahead, 0
	case !at.UpTo(head):
		return aside, 0
	}
	i, _ = slices.BinarySearchFunc(l.entries, at, func(e *Entry[P, T], at P) int {
		if e.At.UpTo(at) {
			return -1
		}
		return 1
	})
	if i < len(l.entries) && at.UpTo(l.entries[i].At) && (i > 0 || l.base.UpTo(at)) {
		return onPath, i
	}
	return behind, 0
}

// LaggedError ends a watch whose reader left an item untaken for longer than its patience. At is where it can go on.
type LaggedError[P any] struct{ At P }

// Error says what happened.
func (e *LaggedError[P]) Error() string { return "the reader of a stream did not take an item in time" }

// Follower is one watcher of a log. It is for one goroutine.
type Follower[P Place[P], T any] struct {
	log      *Log[P, T]
	at       P // behind the last item that was taken or passed
	wants    func(T) bool
	patience time.Duration
	number   uint64 // of the entry that follows at, when joined
	joined   bool
	own      []*Entry[P, T] // read for itself and not taken yet
	handed   time.Time      // when the reader was given the last item
}

// Follow watches from a place on. wants lets items through; nil: all.
func (l *Log[P, T]) Follow(at P, patience time.Duration, wants func(T) bool) *Follower[P, T] {
	return &Follower[P, T]{log: l, at: at, wants: wants, patience: patience}
}

// Next waits for the next item. Its error is io.EOF at the proper end, a *LaggedError for a reader that is too slow, or
// why the topic broke.
func (f *Follower[P, T]) Next(ctx context.Context) (*Entry[P, T], error) {
	asked := time.Now()
	for {
		e, err := f.following(ctx)
		if err != nil {
			return nil, err
		}
		if f.wants == nil || f.wants(e.Item) {
			if f.lagged(asked, e) {
				return nil, &LaggedError[P]{At: f.at}
			}
			f.at, f.handed = e.At, time.Now()
			return e, nil
		}
		f.at = e.At
	}
}

// lagged says whether an item was there for longer than the patience while the reader was busy with the one before.
func (f *Follower[P, T]) lagged(asked time.Time, e *Entry[P, T]) bool {
	since := f.handed
	if since.IsZero() {
		return false
	}
	if e.came.After(since) {
		since = e.came
	}
	return asked.Sub(since) > f.patience
}

// following gives the entry that follows the follower's place.
func (f *Follower[P, T]) following(ctx context.Context) (*Entry[P, T], error) {
	for ctx.Err() == nil {
		if len(f.own) > 0 {
			e := f.own[0]
			f.own = f.own[1:]
			return e, nil
		}
		v := f.look()
		switch {
		case v.entry != nil:
			return v.entry, nil
		case v.err != nil:
			return nil, v.err
		case v.ready && v.stands != ahead:
			read, err := f.catchUp(ctx, v)
			if read {
				continue
			}
			if err == nil && v.over {
				return nil, io.EOF
			}
		case v.over:
			return nil, io.EOF
		}
		retry := never
		if v.ready && v.stands != ahead {
			retry = f.log.o.Poll
		}
		changed := v.changed
		wait(ctx, &changed, nil, retry)
	}
	return nil, ctx.Err()
}

// view is what a follower sees of its log at one look.
type view[P, T any] struct {
	entry   *Entry[P, T] // that follows, if it is kept
	stands  standing
	head    P
	ready   bool
	over    bool
	err     error
	changed <-chan struct{}
}

func (f *Follower[P, T]) look() view[P, T] {
	l := f.log
	l.mu.Lock()
	defer l.mu.Unlock()
	v := view[P, T]{head: l.newest(), ready: l.ready, over: l.over, err: l.err, changed: l.changed}
	if !l.ready || l.err != nil {
		return v
	}
	if f.joined && f.number >= l.first && f.number-l.first < uint64(len(l.entries)) { // the usual way
		v.entry = l.entries[f.number-l.first]
		f.number++
		return v
	}
	i := 0
	if v.stands, i = l.stand(f.at); v.stands == onPath {
		v.entry = l.entries[i]
		f.number, f.joined = l.first+uint64(i)+1, true
		return v
	}
	// At the head itself the next entry is the one that follows. Beyond it some may come that it knows.
	f.number, f.joined = l.first+uint64(len(l.entries)), v.stands == ahead && f.at == v.head
	return v
}

// catchUp reads for this follower alone, up to the head where that is before it; read: there is something to take, or
// the follower has come to the head.
func (f *Follower[P, T]) catchUp(ctx context.Context, v view[P, T]) (read bool, err error) {
	var upTo *P
	if v.stands == behind {
		upTo = &v.head
	}
	f.own, err = f.log.o.CatchUp(ctx, f.at, upTo)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			f.log.o.Failed(ctx, err)
		}
		return false, err
	case len(f.own) > 0:
		now := time.Now()
		for _, e := range f.own {
			e.came = now
		}
		return true, nil
	case upTo != nil: // nothing lies between
		f.at = v.head
		return true, nil
	}
	return false, nil
}
