package webhook

import (
	"context"
	"sync"
	"time"

	"rouse.dev/rouse/internal/share"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of what callers cost before they have proved themselves.
const (
	idsMost    = 200             // public ids looked up in one statement
	idsLimit   = 5 * time.Second // for one statement
	bodiesMost = 64              // bodies that are read at once, of 256 KiB each
	bodiesEach = 16              // of them, for one trigger
	restFor    = time.Second     // that a trigger over its rate refuses without asking the database again
	restsMost  = 10_000          // triggers of which that is remembered
)

// Strangers is what the listeners make of callers whom they do not know.
type Strangers interface {
	// Wait returns when one more may be answered, or with ctx.
	Wait(ctx context.Context)
	// Proved takes note that the caller of ctx is known from now on.
	Proved(ctx context.Context, caller string)
}

// everybody makes no difference.
type everybody struct{}

func (everybody) Wait(context.Context)           {}
func (everybody) Proved(context.Context, string) {}

// places bounds how many bodies are read at once.
type places struct {
	all  chan struct{}
	each *share.Each
}

func newPlaces() *places {
	return &places{all: make(chan struct{}, bodiesMost), each: share.NewEach(bodiesEach)}
}

// take waits for a place to read a body for a trigger. Each trigger has few places of its own, so that one webhook does
// not take them all. free gives the place back.
func (p *places) take(ctx context.Context, trigger xid.ID) (free func(), err error) {
	own, err := p.each.Take(ctx, string(trigger))
	if err != nil {
		return nil, err
	}
	select {
	case p.all <- struct{}{}:
	case <-ctx.Done():
		own()
		return nil, ctx.Err()
	}
	return func() {
		<-p.all
		own()
	}, nil
}

// rests remembers which triggers were over their rate a moment ago: what comes then is refused as the database would.
type rests struct {
	length time.Duration

	mu    sync.Mutex
	until map[xid.ID]time.Time
}

func (r *rests) begin(trigger xid.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until == nil || len(r.until) >= restsMost {
		r.until = map[xid.ID]time.Time{}
	}
	r.until[trigger] = time.Now().Add(r.length)
}

func (r *rests) on(trigger xid.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, ok := r.until[trigger]
	if ok && !time.Now().Before(until) {
		delete(r.until, trigger)
		ok = false
	}
	return ok
}
