package scheduler

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/lifecycle"
	"rouse.dev/rouse/internal/lifecycle/lifecycletest"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

func TestAllLoopsSurviveTheStressTest(t *testing.T) { // C111
	h := newHouse(1_000_000)
	quit := make(chan struct{})
	var background sync.WaitGroup
	background.Go(func() { // causes come all the time, and now and then the database is away
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			default:
			}
			h.store.set(func() { h.store.due, h.store.away = min(h.store.due+1, 3), i%10 == 0 })
			h.hub.publish()
			h.dispatch.Wake()
			h.worker.free(0)
		}
	})
	lifecycletest.Stress(t, h, func(t *testing.T) {
		if state := h.State(); state != lifecycle.Stopped {
			t.Errorf("state is %s", state)
		}
		h.log.take()
		h.dispatch.Wake()
		h.worker.take()
		if text := h.log.take(); text != "" || len(h.worker.take()) != 0 {
			t.Errorf("a loop went on after Stop: %s", text)
		}
	})
	close(quit)
	background.Wait()
}

func TestEveryLoopLooksAtOnceAndAtItsBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.start(t)
		synctest.Wait()
		count := func(what string) (n int) {
			for _, line := range h.store.take() {
				if strings.HasPrefix(line, what) {
					n++
				}
			}
			return n
		}
		if n := count("repair"); n != 1 {
			t.Errorf("%d repairs at the start", n)
		}
		pause(5 * time.Minute)
		if n := count("repair"); n != 10 {
			t.Errorf("%d repairs in five minutes", n)
		}
		pause(5 * time.Minute)
		if n := count("claim"); n != 60 {
			t.Errorf("%d passes over an idle queue in five minutes", n)
		}
		pause(5 * time.Minute)
		if n := count("arm"); n < 60 || n > 66 {
			t.Errorf("%d cron ticks in five minutes, want one per beat and at most one more per minute", n)
		}
		h.Stop()
	})
}

func TestRepairsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.store.repairs = store.Repairs{Heads: 2}
		h.start(t)
		synctest.Wait()
		h.Stop()
		if text := h.log.take(); !strings.Contains(text, "queue repaired") || !strings.Contains(text, "heads=2") {
			t.Errorf("log: %s", text)
		}
	})
}

// Who holds the feed back for long is named, once a minute at most; a moment is nothing to tell.
func TestWhoHoldsTheFeedBackIsToldOnceAMinute(t *testing.T) {
	for name, tt := range map[string]struct {
		age         time.Duration
		least, most int
	}{"for a moment": {29 * time.Second, 0, 0}, "for long": {2 * time.Hour, 4, 6}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(4)
				h.store.feedHolder = store.FeedHolder{PID: 4711, Account: "ann", Application: "psql", State: "idle in transaction", Age: tt.age}
				h.start(t)
				pause(5 * time.Minute)
				h.Stop()
				text := h.log.take()
				n := strings.Count(text, "holds the feed back")
				if n < tt.least || n > tt.most || n > 0 && !strings.Contains(text, `pid=4711 account=ann application=psql state="idle in transaction" age=2h0m0s`) {
					t.Errorf("told %d times in five minutes, want %d to %d:\n%s", n, tt.least, tt.most, text)
				}
			})
		})
	}
}

func TestOldHistoryIsRemovedBatchByBatchAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.store.old = 5
		h.start(t)
		synctest.Wait()
		if text := h.log.take(); !strings.Contains(text, "old history removed") || !strings.Contains(text, "runs=5") {
			t.Errorf("log: %s", text)
		}
		h.Stop()
	})
}

func TestBudgetsAndUnstartedTasksAreLookedAtEveryHalfMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.store.resumed, h.store.recovered = 3, []store.Recovered{{TaskID: "tsk_1"}, {TaskID: "tsk_2"}}
		h.start(t)
		pause(61 * time.Second)
		h.Stop()
		lines := h.store.take()
		for _, what := range []string{"budgets", "recover"} {
			n := 0
			for _, line := range lines {
				if line == what {
					n++
				}
			}
			if n != 3 {
				t.Errorf("%d sweeps %q in a minute, want one at the start and two more", n, what)
			}
		}
		if text := h.log.take(); !strings.Contains(text, "agents=3") || !strings.Contains(text, "dispatched_count=2") {
			t.Errorf("log: %s", text)
		}
	})
}

// S11: what a sweep could not do is told, and so is what it did; the retention goes on with the rest.
func TestASweepThatFailsInPartTellsWhatItDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		h.store.sweepError = errors.New("not today")
		h.store.repairs, h.store.old, h.store.resumed, h.store.recovered = store.Repairs{Heads: 2}, 5, 3, []store.Recovered{{TaskID: "tsk_1"}}
		h.start(t)
		synctest.Wait()
		h.Stop()
		text := h.log.take()
		for _, want := range []string{"heads=2", "runs=5", "agents=3", "dispatched_count=1"} {
			if !strings.Contains(text, want) {
				t.Errorf("the log does not say %s", want)
			}
		}
		if strings.Count(text, "not today") != 4 {
			t.Errorf("log:\n%s", text)
		}
	})
}

func TestOneLoopThatPanicsKeepsNoOther(t *testing.T) { // C112
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		for _, l := range h.loops {
			if l.name == "cron" {
				l.pass = func(context.Context, <-chan struct{}) (time.Duration, error) { panic("oh") }
			}
		}
		h.start(t)
		pause(20 * time.Second)
		h.store.set(func() { h.store.unrouted = []xid.ID{"agt_1"} })
		h.hub.publish()
		synctest.Wait()
		if got := h.worker.take(); len(got) != 1 {
			t.Errorf("the worker was given %q", got)
		}
		h.Stop()
		if text := h.log.take(); strings.Count(text, "a pass panicked") != 1 {
			t.Errorf("log:\n%s", text)
		}
	})
}

func TestStateTellsAboutTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(4)
		finish := make(chan struct{})
		h.store.onClaim = func() { <-finish }
		h.start(t)
		synctest.Wait()
		if h.State() != lifecycle.Running {
			t.Errorf("state is %s", h.State())
		}
		go h.Stop()
		synctest.Wait()
		if h.State() != lifecycle.Stopping {
			t.Errorf("state is %s", h.State())
		}
		close(finish)
		h.Stop()
		if h.State() != lifecycle.Stopped {
			t.Errorf("state is %s", h.State())
		}
	})
}
