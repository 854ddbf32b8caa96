package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

func newTick(f *fakeStore) (c *cronTick, woken *int) {
	woken = new(int)
	return &cronTick{store: f, counters: metrics.New(), dispatch: func() { *woken++ }}, woken
}

func TestATickFiresInOrderPastFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		f := &fakeStore{badTrigger: map[xid.ID]bool{"trg_2": true}, badAgents: map[xid.ID]bool{"agt_1": true},
			agentOf: map[xid.ID]xid.ID{"trg_1": "agt_1", "trg_3": "agt_2", "trg_4": "agt_2"},
			triggers: []store.DueTrigger{{ID: "trg_1", NextRunAt: now.Add(-time.Hour)}, {ID: "trg_2", NextRunAt: now.Add(-time.Minute)},
				{ID: "trg_3", NextRunAt: now.Add(-time.Minute)}, {ID: "trg_4", NextRunAt: now}, {ID: "trg_5", NextRunAt: now.Add(time.Minute)}}}
		c, woken := newTick(f)
		_, err := c.runOnce(t.Context(), nil)
		want := []string{"arm", "fire trg_1", "fire trg_2", "fire trg_3", "fire trg_4", "route agt_1", "route agt_2"}
		got := f.take()
		slices.Sort(got[min(5, len(got)):]) // agents are routed side by side
		if !slices.Equal(got, want) {
			t.Errorf("the store was asked %q, want %q", got, want)
		}
		if err == nil || !strings.Contains(err.Error(), "fire trigger trg_2") || !strings.Contains(err.Error(), "route agent agt_1") {
			t.Errorf("error %v", err)
		}
		if *woken != 1 {
			t.Errorf("the dispatcher was woken %d times", *woken)
		}
	})
}

// Triggers of one agent are fired in order, one after the other; those of another agent do not wait for them.
func TestTriggersOfSeveralAgentsAreFiredSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		f := &fakeStore{agentOf: map[xid.ID]xid.ID{}}
		for i := range 12 {
			id, agent := xid.ID(fmt.Sprintf("trg_%02d", i)), xid.ID(fmt.Sprintf("agt_%d", i%6))
			f.agentOf[id] = agent
			f.triggers = append(f.triggers, store.DueTrigger{ID: id, AgentID: agent, NextRunAt: now.Add(time.Duration(i-20) * time.Minute)})
		}
		c, _ := newTick(f)
		if _, err := c.runOnce(t.Context(), nil); err != nil {
			t.Error(err)
		}
		order := map[xid.ID][]string{}
		for _, asked := range f.take() {
			if id, ok := strings.CutPrefix(asked, "fire "); ok {
				order[f.agentOf[xid.ID(id)]] = append(order[f.agentOf[xid.ID(id)]], id)
			}
		}
		for agent, fired := range order {
			if len(fired) != 2 || !slices.IsSorted(fired) {
				t.Errorf("agent %s: %v", agent, fired)
			}
		}
		if len(order) != 6 {
			t.Errorf("fired for %d agents", len(order))
		}
	})
}

func TestATickWithNothingDueWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, woken := newTick(&fakeStore{})
		if _, err := c.runOnce(t.Context(), nil); err != nil || *woken != 0 {
			t.Errorf("error %v, the dispatcher was woken %d times", err, *woken)
		}
	})
}

func TestAPageOfFailingTriggersKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{badTrigger: make(map[xid.ID]bool)}
		for i := range 3*triggerPage + 1 {
			id := xid.ID(fmt.Sprintf("trg_%04d", i))
			f.badTrigger[id] = i < 3*triggerPage
			f.triggers = append(f.triggers, store.DueTrigger{ID: id, NextRunAt: time.Now().Add(-time.Hour)}) // all at one instant
		}
		c, _ := newTick(f)
		if _, err := c.runOnce(t.Context(), nil); err == nil || len(f.fired) != 1 {
			t.Errorf("%d fired, error %v", len(f.fired), err)
		}
	})
}

func TestATickThatIsCutShortGoesOnWhereItLeftOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{}
		for i := range 3 {
			f.triggers = append(f.triggers, store.DueTrigger{ID: xid.ID(fmt.Sprintf("trg_%d", i)), NextRunAt: time.Now()})
		}
		c, _ := newTick(f)
		c.after = f.triggers[0]
		enough := make(chan struct{})
		close(enough)
		if _, err := c.runOnce(t.Context(), enough); err != nil || len(f.fired) != 0 || c.after != f.triggers[0] {
			t.Errorf("cut short: fired %d, left off at %v, error %v", len(f.fired), c.after, err)
		}
		for _, want := range []int{2, 3} { // first the rest, then from the beginning
			if _, err := c.runOnce(t.Context(), nil); err != nil || len(f.fired) != want {
				t.Errorf("fired %d, want %d, error %v", len(f.fired), want, err)
			}
		}
	})
}

func TestAMinutelyTriggerFiresWithinASecondOfTheMinute(t *testing.T) {
	for _, skew := range []time.Duration{0, 17 * time.Second, -5*time.Minute - 13*time.Second} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(23456 * time.Millisecond) // not at a minute
				h := newHouse(4)
				h.store.offset = skew
				h.store.triggers = []store.DueTrigger{{ID: "trg_1", NextRunAt: time.Now().Add(skew).Truncate(time.Minute).Add(time.Minute)}}
				h.start(t)
				pause(10 * time.Minute)
				h.Stop()
				if n := len(h.store.fired); n != 10 {
					t.Errorf("%d fires in ten minutes", n)
				}
				for _, at := range h.store.fired {
					if late := at.Add(skew).Sub(at.Add(skew).Truncate(time.Minute)); late > time.Second {
						t.Errorf("fired %s after the minute of the database's clock", late)
					}
				}
			})
		})
	}
}

func TestTheTickFollowsAClockThatIsStepped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.store.triggers = []store.DueTrigger{{ID: "trg_1", NextRunAt: time.Now().Add(time.Minute)}}
		h.start(t)
		defer h.Stop()
		pause(30 * time.Second)
		h.store.set(func() { h.store.offset = 29 * time.Second }) // one second before the minute
		began := time.Now()
		for fired := 0; fired == 0; h.store.set(func() { fired = len(h.store.fired) }) {
			pause(100 * time.Millisecond)
		}
		if late := time.Since(began) - time.Second; late > cronBeat {
			t.Errorf("fired %s after the minute", late)
		}
	})
}
