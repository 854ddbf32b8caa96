package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/xid"
)

// go forward: let the fake time pass and everything settle.
func pause(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestASignalOnTheQueueIsServedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.start(t)
		defer h.Stop()
		pause(time.Second)
		h.store.take()
		h.store.set(func() { h.store.unrouted = []xid.ID{"agt_1", "agt_2"} })
		h.hub.publish()
		synctest.Wait() // no time passes
		want := []string{"claim 0 of 4 for 20s", "route agt_1", "route agt_2", "claim 2 of 4 for 20s", "claim 0 of 2 for 20s"}
		if got := h.store.take(); !slices.Equal(got, want) {
			t.Errorf("the store was asked %q, want %q", got, want)
		}
		if got := h.worker.take(); !slices.Equal(got, []string{"process run_1, context <nil>", "process run_2, context <nil>"}) {
			t.Errorf("the worker was given %q", got)
		}
	})
}

func TestTheSafetyPassFindsWhatNoSignalTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.start(t)
		defer h.Stop()
		pause(time.Second)
		h.store.set(func() { h.store.unrouted = []xid.ID{"agt_1"} })
		began := time.Now()
		for len(h.worker.take()) == 0 {
			pause(100 * time.Millisecond)
		}
		if took := time.Since(began); took > dispatchBeat {
			t.Errorf("it took %s", took)
		}
	})
}

func TestClaimsFillTheFreeSlotsAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(160)
		h.store.due = 200
		h.start(t)
		defer h.Stop()
		synctest.Wait()
		got := slices.DeleteFunc(h.store.take(), func(s string) bool { return !strings.HasPrefix(s, "claim") })
		if want := []string{"claim 64 of 64 for 20s", "claim 64 of 64 for 20s", "claim 32 of 32 for 20s"}; !slices.Equal(got, want) {
			t.Errorf("claims %q, want %q", got, want)
		}
		h.worker.take()
		pause(time.Minute)
		if got := h.worker.take(); len(got) != 0 {
			t.Errorf("%d runs were claimed without a slot", len(got))
		}
		h.worker.free(3) // a local signal, at once
		synctest.Wait()
		if got := h.worker.take(); len(got) != 3 {
			t.Errorf("%d runs for 3 slots that became free", len(got))
		}
	})
}

func TestOneFailingAgentKeepsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(500)
		h.store.badAgents = make(map[xid.ID]bool)
		for i := range 350 { // more than a page, in front of the others
			agent := xid.ID(fmt.Sprintf("agt_bad_%d", i))
			h.store.badAgents[agent] = true
			h.store.unrouted = append(h.store.unrouted, agent)
		}
		for i := range 150 {
			h.store.unrouted = append(h.store.unrouted, xid.ID(fmt.Sprintf("agt_good_%d", i)))
		}
		h.start(t)
		defer h.Stop()
		synctest.Wait()
		if n := len(h.worker.take()); n < routePage {
			t.Errorf("the first pass claimed %d runs", n)
		}
		pause(2 * soonest)
		if h.worker.Free() != 500-150 {
			t.Errorf("%d runs of 150 were claimed", 500-h.worker.Free())
		}
		if text := h.log.take(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "and 345 more") {
			t.Errorf("log:\n%s", text)
		}
	})
}

// S6.2, S11: what a claim says of some lanes keeps neither what it claimed nor the routing; it is told once, and once a minute.
func TestALaneThatFailsKeepsNeitherClaimsNorRouting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(40)
		h.store.due, h.store.unrouted = 20, []xid.ID{"agt_1"}
		h.store.claimError = errors.Join(errors.New("promote parked runs of lane agt_bad: not today"), errors.New("claim lane agt_worse: not today"))
		h.start(t)
		defer h.Stop()
		pause(time.Second)
		if got := h.worker.take(); len(got) != 21 {
			t.Errorf("%d runs of 21 were claimed", len(got))
		}
		text := h.log.take()
		if strings.Count(text, "level=ERROR") != 1 || strings.Count(text, "agt_bad") != 1 || strings.Count(text, "agt_worse") != 1 || strings.Contains(text, "more") {
			t.Errorf("log:\n%s", text)
		}
		if p := h.dispatch.counters.Process(); p.LastQueuePass == nil {
			t.Error("the pass is not counted")
		}
	})
}

// A database that is away ends the pass at once.
func TestAClaimThatIsCutShortEndsThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.store.claimError = errAway
		h.store.unrouted = []xid.ID{"agt_1"}
		h.start(t)
		defer h.Stop()
		synctest.Wait()
		if got := slices.DeleteFunc(h.store.take(), func(s string) bool { return !strings.HasPrefix(s, "route") }); len(got) != 0 {
			t.Errorf("the store was asked %q", got)
		}
		if p := h.dispatch.counters.Process(); p.LastQueuePass != nil {
			t.Error("the pass is counted")
		}
	})
}

func TestAParkedRunIsTakenAtItsInstantByTheDatabasesClock(t *testing.T) {
	for _, skew := range []time.Duration{0, 5 * time.Minute, -5 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(4)
				h.store.offset = skew
				began := time.Now()
				h.store.next = began.Add(skew + 3700*time.Millisecond)
				h.start(t)
				defer h.Stop()
				pause(3699 * time.Millisecond)
				if got := h.worker.take(); len(got) != 0 {
					t.Errorf("%q was claimed before its instant", got)
				}
				pause(11 * time.Millisecond)
				if got := h.worker.take(); len(got) != 1 {
					t.Errorf("it was not claimed at its instant")
				}
			})
		})
	}
}

func TestAnInstantThatStaysInThePastDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		past := time.Now().Add(-time.Hour)
		d := &dispatcher{store: stuckClock{h.store, past}, worker: h.worker, counters: h.dispatch.counters}
		var waited, last time.Duration
		for range 12 {
			again, err := d.next(t.Context())
			if err != nil || again < last || waited == 0 && again != soonest {
				t.Fatalf("looks again after %s, before that after %s, %v", again, last, err)
			}
			waited, last = waited+again, again
		}
		if last != dispatchBeat {
			t.Errorf("after 12 looks in vain, in %s, it looks again after %s", waited, last)
		}
	})
}

// stuckClock is a store whose next instant never changes.
type stuckClock struct {
	*fakeStore
	at time.Time
}

func (s stuckClock) NextInstant(context.Context) (at, now time.Time, err error) {
	return s.at, time.Now(), nil
}

func TestWhatWasClaimedDuringStopIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		claiming, finish := make(chan struct{}), make(chan struct{})
		h.store.due = 2
		h.store.onClaim = func() {
			close(claiming)
			<-finish
		}
		h.start(t)
		<-claiming
		stopped := make(chan struct{})
		go func() { defer close(stopped); h.Stop() }()
		time.Sleep(time.Second)
		close(finish)
		<-stopped
		if got := h.worker.take(); !slices.Equal(got, []string{"process run_1, context <nil>", "process run_2, context <nil>"}) {
			t.Errorf("the worker was given %q", got)
		}
	})
}

func TestADatabaseThatIsAwayCostsNothingButTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.store.away = true
		h.store.unrouted = []xid.ID{"agt_1"}
		h.start(t)
		defer h.Stop()
		pause(10 * time.Minute)
		if text := h.log.take(); strings.Count(text, "\n") > len(h.loops)*11 {
			t.Errorf("%d lines in ten minutes", strings.Count(text, "\n"))
		}
		h.store.set(func() { h.store.away = false })
		pause(pruneBeat) // the longest
		if got := h.worker.take(); len(got) != 1 {
			t.Errorf("after the outage the worker was given %q", got)
		}
		if text := h.log.take(); strings.Count(text, "passes succeed again") != len(h.loops) {
			t.Errorf("log after the outage:\n%s", text)
		}
	})
}

func TestPassesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.start(t)
		pause(time.Minute)
		p := h.dispatch.counters.Process()
		h.Stop()
		if p.LastQueuePass == nil || time.Since(*p.LastQueuePass) > dispatchBeat || p.LastCronTick == nil || p.CronTicks < 12 {
			t.Errorf("after a minute: %+v", p)
		}
	})
}
