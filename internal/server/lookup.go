package server

import (
	"context"
	"sync"
	"time"

	"rouse.dev/rouse/internal/batch"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of looking up what strangers send.
const (
	lookupMost  = 200             // tokens or webhooks in one statement
	lookupLimit = 5 * time.Second // for one statement
	knownMost   = 10_000          // tokens of which it is remembered that they were good
)

// lookups finds tokens for the gatekeeper. One that was good before is looked up at once, by itself, so that its end is
// never missed; all others together, one statement at a time: whoever sends made-up tokens takes one connection of the
// database, however many they are.
type lookups struct {
	store *store.Store
	known knownDigests
	api   *batch.Lookup[*store.Token]
	run   *batch.Lookup[*store.RunToken]
}

func newLookups(s *store.Store) *lookups {
	return &lookups{store: s, api: batch.New(lookupMost, lookupLimit, s.TokensByDigest), run: batch.New(lookupMost, lookupLimit, s.RunTokensByDigest)}
}

// TokenByDigest finds a token that is good now; nil when there is none.
func (l *lookups) TokenByDigest(ctx context.Context, digest string) (*store.Token, error) {
	return lookUp(ctx, &l.known, digest, l.store.TokenByDigest, l.api)
}

// RunTokenByDigest finds the attempt behind a run token, live or ended; nil when there is none.
func (l *lookups) RunTokenByDigest(ctx context.Context, digest string) (*store.RunToken, error) {
	return lookUp(ctx, &l.known, digest, l.store.RunTokenByDigest, l.run)
}

// TokenUsed notes that somebody came with a token.
func (l *lookups) TokenUsed(ctx context.Context, id xid.ID) { l.store.TokenUsed(ctx, id) }

func lookUp[V any](ctx context.Context, known *knownDigests, digest string, alone func(context.Context, string) (*V, error), together *batch.Lookup[*V]) (*V, error) {
	var value *V
	var err error
	if known.has(digest) {
		value, err = alone(ctx, digest)
	} else {
		value, _, err = together.Find(ctx, digest)
	}
	if err == nil {
		known.note(digest, value != nil)
	}
	return value, err
}

// knownDigests remembers which tokens were good when they were last looked up. That one is in it lets nobody in.
type knownDigests struct {
	mu   sync.Mutex
	good map[string]struct{}
}

func (k *knownDigests) has(digest string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.good[digest]
	return ok
}

func (k *knownDigests) note(digest string, good bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !good {
		delete(k.good, digest)
		return
	}
	if k.good == nil || len(k.good) >= knownMost { // those in use are soon known again
		k.good = map[string]struct{}{}
	}
	k.good[digest] = struct{}{}
}
