package server

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/batch"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
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
		known := batch.New(lookupMost, time.Hour, func(_ context.Context, digests []string) (map[string]*store.Token, error) {
			return map[string]*store.Token{digests[0]: live[digests[0]]}, nil
		})
		var digests knownDigests
		look := func(digest string) *store.Token {
			token, err := lookUp(t.Context(), &digests, digest, ways[*store.Token]{known, together}, func(t *store.Token) bool { return t != nil })
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

// A run's token is good while its attempt is live; whoever keeps one that has ended is a stranger.
func TestOnlyATokenThatIsGoodIsKnown(t *testing.T) {
	run := &store.RunToken{RunID: "run_1"}
	l := &lookups{run: newWays(func(context.Context, []string) (map[string]*store.RunToken, error) {
		return map[string]*store.RunToken{digestOf("rsr_1"): run}, nil
	})}
	for _, ended := range []bool{true, false, true} {
		run = &store.RunToken{RunID: "run_1", Ended: ended}
		if found, err := l.RunTokenByDigest(t.Context(), digestOf("rsr_1")); err != nil || found.Ended != ended {
			t.Fatalf("%+v, %v", found, err)
		}
		if l.knows("rsr_1") == ended {
			t.Errorf("ended %t: known %t", ended, !ended)
		}
	}
}

func TestTheUseOfATokenIsNotedOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recently{now: time.Now}
		var noted []bool
		for range 3 {
			noted = append(noted, r.first("tok_1"), r.first("tok_2"))
			time.Sleep(usedRest * 3 / 4)
		}
		if fmt.Sprint(noted) != "[true true false false true true]" {
			t.Errorf("%v", noted)
		}
		for i := range 3 * knownMost {
			r.first(xid.ID(fmt.Sprint(i)))
		}
		if len(r.at) > knownMost {
			t.Errorf("%d are remembered", len(r.at))
		}
	})
}
