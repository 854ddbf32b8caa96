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
	lookupMost  = 200              // tokens or webhooks in one statement
	lookupLimit = 5 * time.Second  // for one statement
	usedRest    = 10 * time.Second // that the use of a token is not noted again
	knownMost   = 10_000           // tokens of which it is remembered that they were good
)

// lookups finds tokens for the gatekeeper, always in the database, so that the end of a token is never missed. Tokens that
// were good before are looked up together, one statement at a time, and all others together in the same way. So made-up
// tokens, or a good one that is sent over and over, take one connection of the database. Callers with made-up tokens delay
// no caller with a good one.
type lookups struct {
	store *store.Store
	known knownDigests
	used  recently
	api   ways[*store.Token]
	run   ways[*store.RunToken]
}

// ways are the two ways to look a token up.
type ways[V any] struct{ known, unknown *batch.Lookup[V] }

func newWays[V any](find func(context.Context, []string) (map[string]V, error)) ways[V] {
	return ways[V]{batch.New(lookupMost, lookupLimit, find), batch.New(lookupMost, lookupLimit, find)}
}

func newLookups(s *store.Store) *lookups {
	return &lookups{store: s, used: recently{now: time.Now}, api: newWays(s.TokensByDigest), run: newWays(s.RunTokensByDigest)}
}

// TokenByDigest finds a token that is neither revoked nor expired; nil when the digest has no such token.
func (l *lookups) TokenByDigest(ctx context.Context, digest string) (*store.Token, error) {
	return lookUp(ctx, &l.known, digest, l.api, func(t *store.Token) bool { return t != nil })
}

// RunTokenByDigest finds the attempt behind a run token, live or ended; nil when the digest is not one of a run token.
func (l *lookups) RunTokenByDigest(ctx context.Context, digest string) (*store.RunToken, error) {
	return lookUp(ctx, &l.known, digest, l.run, func(t *store.RunToken) bool { return t != nil && !t.Ended })
}

// TokenUsed notes that somebody came with a token; one that comes again and again is noted once in a while.
func (l *lookups) TokenUsed(ctx context.Context, id xid.ID) {
	if l.used.first(id) {
		l.store.TokenUsed(ctx, id)
	}
}

// knows says whether a token was good when it was last looked up.
func (l *lookups) knows(token string) bool {
	return len(token) <= longestToken && l.known.has(digestOf(token))
}

// lookUp finds what a token stands for. Only a good one is known from then on: a run's token that has ended is a stranger's.
func lookUp[V any](ctx context.Context, known *knownDigests, digest string, by ways[V], good func(V) bool) (V, error) {
	way := by.unknown
	if known.has(digest) {
		way = by.known
	}
	value, _, err := way.Find(ctx, digest)
	if err == nil {
		known.note(digest, good(value))
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

// recently remembers what was noted in the last moments.
type recently struct {
	now func() time.Time
	mu  sync.Mutex
	at  map[xid.ID]time.Time
}

// first says whether an id was not noted within usedRest, and takes it for noted then.
func (r *recently) first(id xid.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if last, ok := r.at[id]; ok && now.Sub(last) < usedRest {
		return false
	}
	if r.at == nil || len(r.at) >= knownMost {
		r.at = map[xid.ID]time.Time{}
	}
	r.at[id] = now
	return true
}
