package server

import (
	"context"
	"errors"
	"sync"
	"time"
)

// recheckBeat is how long a socket may outlive its token.
const recheckBeat = 3 * time.Second

var errTokenEnded = errors.New("the token was revoked or has expired")

// liveSockets ends the sockets of tokens that were revoked, or expired, since they were opened.
type liveSockets struct {
	mu   sync.Mutex
	open map[*liveSocket]struct{}
}

type liveSocket struct {
	token string
	end   context.CancelCauseFunc
}

// add gives a socket a context that ends with its token; expires zero means never.
func (l *liveSockets) add(parent context.Context, token string, expires time.Time) context.Context {
	ctx, end := context.WithCancelCause(parent)
	s := &liveSocket{token: token, end: end}
	var expiry *time.Timer
	if !expires.IsZero() {
		expiry = time.AfterFunc(time.Until(expires), func() { end(errTokenEnded) })
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[*liveSocket]struct{}{}
	}
	l.open[s] = struct{}{}
	context.AfterFunc(parent, func() {
		if expiry != nil {
			expiry.Stop()
		}
		end(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, s)
	})
	return ctx
}

// run looks at the tokens of open sockets again and again until ctx ends.
func (l *liveSockets) run(ctx context.Context, stillGood func(context.Context, string) bool) {
	tick := time.NewTicker(recheckBeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.check(ctx, stillGood)
		}
	}
}

// check asks once for each token.
func (l *liveSockets) check(ctx context.Context, stillGood func(context.Context, string) bool) {
	for token, ends := range l.byToken() {
		if ctx.Err() != nil || stillGood(ctx, token) {
			continue
		}
		for _, end := range ends {
			end(errTokenEnded)
		}
	}
}

func (l *liveSockets) byToken() map[string][]context.CancelCauseFunc {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string][]context.CancelCauseFunc{}
	for s := range l.open {
		out[s.token] = append(out[s.token], s.end)
	}
	return out
}
