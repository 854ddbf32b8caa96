package lifecycle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rouse.dev/rouse/internal/lifecycle"
	"rouse.dev/rouse/internal/lifecycle/lifecycletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// part is the smallest part with a lifecycle; it sees work that overlaps.
type part struct {
	lifecycle.Lifecycle
	live atomic.Int32
	over atomic.Int32
}

func (p *part) Start(ctx context.Context) error {
	p.Lifecycle.Start(ctx, func(ctx context.Context) {
		if p.live.Add(1) > 1 {
			p.over.Add(1)
		}
		<-ctx.Done()
		p.live.Add(-1)
	})
	return nil
}

func TestLifecycleSurvivesTheStressTest(t *testing.T) {
	p := &part{}
	lifecycletest.Stress(t, p, func(t *testing.T) {
		if p.State() != lifecycle.Stopped || p.live.Load() != 0 {
			t.Errorf("state is %s with %d pieces of work", p.State(), p.live.Load())
		}
	})
	if p.over.Load() != 0 {
		t.Errorf("work overlapped %d times", p.over.Load())
	}
}

func TestStopWaitsForTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lifecycle.Lifecycle
		began := time.Now()
		l.Start(t.Context(), func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Minute) // the work takes long to wind up
		})
		if l.State() != lifecycle.Running {
			t.Errorf("state before Stop is %s", l.State())
		}
		go l.Stop()
		synctest.Wait()
		if l.State() != lifecycle.Stopping {
			t.Errorf("state during Stop is %s", l.State())
		}
		l.Stop()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Stop returned after %s, the work ended after a minute", took)
		}
		if l.State() != lifecycle.Stopped {
			t.Errorf("state after Stop is %s", l.State())
		}
	})
}

func TestStartWaitsForWorkThatIsBeingStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lifecycle.Lifecycle
		ended := false
		l.Start(t.Context(), func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Minute)
			ended = true
		})
		go l.Stop()
		synctest.Wait()
		sawEnd := false
		if !l.Start(t.Context(), func(context.Context) { sawEnd = ended }) {
			t.Fatal("Start did not start anything")
		}
		synctest.Wait()
		if !sawEnd {
			t.Error("the next work began before the former had ended")
		}
	})
}

func TestWorkThatEndsByItselfCanBeStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lifecycle.Lifecycle
		for range 3 {
			if !l.Start(t.Context(), func(context.Context) {}) {
				t.Fatal("Start did not start anything")
			}
			synctest.Wait()
			if l.State() != lifecycle.Stopped {
				t.Errorf("state is %s", l.State())
			}
		}
	})
}
