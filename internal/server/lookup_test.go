package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/batch"
	"rouse.dev/rouse/internal/store"
)

// Made-up tokens wait for each other; one that was good before does not wait for them, and its end is seen at once.
func TestAKnownTokenDoesNotWaitForUnknownOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := map[string]*store.Token{"owner": {ID: "tok_1"}}
		slow := make(chan struct{})
		together := batch.New(lookupMost, time.Hour, func(_ context.Context, digests []string) (map[string]*store.Token, error) {
			<-slow
			found := map[string]*store.Token{}
			for _, d := range digests {
				if live[d] != nil {
					found[d] = live[d]
				}
			}
			return found, nil
		})
		alone := func(_ context.Context, digest string) (*store.Token, error) { return live[digest], nil }
		var known knownDigests
		look := func(digest string) *store.Token {
			token, err := lookUp(t.Context(), &known, digest, alone, together)
			if err != nil {
				t.Error(err)
			}
			return token
		}
		go func() { slow <- struct{}{} }()
		if look("owner") == nil {
			t.Error("the owner is not known")
		}
		done := make(chan *store.Token)
		go func() { done <- look("stranger") }()
		synctest.Wait() // it waits for the slow statement
		if look("owner") == nil {
			t.Error("the owner is refused while strangers wait")
		}
		delete(live, "owner")
		if look("owner") != nil {
			t.Error("a token that was revoked is still good")
		}
		again := make(chan *store.Token)
		go func() { again <- look("owner") }()
		synctest.Wait() // it is a stranger now
		slow <- struct{}{}
		slow <- struct{}{}
		if <-done != nil || <-again != nil {
			t.Error("a stranger is let in")
		}
	})
}

func TestWhatIsRememberedOfTokensIsBounded(t *testing.T) {
	var known knownDigests
	for i := range 3 * knownMost {
		known.note(string(rune('a'+i%26))+time.Duration(i).String(), true)
	}
	if len(known.good) > knownMost {
		t.Errorf("%d are remembered", len(known.good))
	}
}
