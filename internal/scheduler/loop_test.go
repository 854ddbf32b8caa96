package scheduler

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/metrics"
)

// testLoop is a loop with no beat but its own timer, and its log.
func testLoop(p pass) (*loop, *journal) {
	log := &journal{}
	return &loop{name: "test", beat: time.Hour, pass: p, wake: make(chan struct{}, 1), log: log.logger(), counters: metrics.New()}, log
}

// running runs the loop until the returned function has joined it.
func running(t *testing.T, l *loop) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var one sync.WaitGroup
	one.Go(func() { l.run(ctx) })
	return func() { cancel(); one.Wait() }
}

func TestASignalDuringAPassMakesAnother(t *testing.T) {
	for _, at := range []struct {
		name  string
		after time.Duration
	}{{"at its beginning", 0}, {"in the middle", time.Second}, {"as it ends", 2 * time.Second}, {"after it", 3 * time.Second}} {
		t.Run(at.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var passes atomic.Int32
				l, _ := testLoop(func(context.Context, <-chan struct{}) (time.Duration, error) {
					passes.Add(1)
					time.Sleep(2 * time.Second)
					return 0, nil
				})
				defer running(t, l)()
				l.Wake()
				synctest.Wait()
				time.Sleep(at.after)
				for range 5 {
					l.Wake() // five signals need one more pass, since it looks at everything
				}
				time.Sleep(10 * time.Second)
				if n := passes.Load(); n < 2 || n > 3 {
					t.Errorf("%d passes", n)
				}
			})
		})
	}
}

// Every signal must be followed by a pass that begins after it, whatever the scheduling: here with real goroutines.
func TestNoSignalIsLostAmongManyGoroutines(t *testing.T) {
	var asked, overlap atomic.Int64
	seen := make(chan int64, 1)
	l, _ := testLoop(func(context.Context, <-chan struct{}) (time.Duration, error) {
		if overlap.Add(1) > 1 {
			t.Error("passes overlap")
		}
		defer overlap.Add(-1)
		select { // keep the newest
		case <-seen:
		default:
		}
		seen <- asked.Load()
		return 0, nil
	})
	defer running(t, l)()
	const rounds, signallers = 200, 8
	for round := range int64(rounds) {
		var all sync.WaitGroup
		for range signallers {
			all.Go(func() { asked.Add(1); l.Wake() })
		}
		all.Wait()
		want := (round + 1) * signallers
		late := time.After(20 * time.Second)
		for got := int64(0); got < want; {
			select {
			case got = <-seen:
			case <-late:
				t.Fatalf("round %d: a signal was lost, the last pass saw %d of %d", round, got, want)
			}
		}
	}
}

func TestThePassSaysWhenToLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []time.Duration{3 * time.Second, 10 * time.Millisecond, 2 * time.Hour, time.Second}
		var began []time.Duration
		start := time.Now()
		l, _ := testLoop(func(context.Context, <-chan struct{}) (time.Duration, error) {
			began = append(began, time.Since(start))
			return answers[len(began)-1], nil
		})
		stop := running(t, l)
		l.Wake()
		time.Sleep(24 * time.Hour)
		stop()
		if len(began) != 3 || began[1] != 3*time.Second || began[2] != 3*time.Second+10*time.Millisecond {
			t.Errorf("passes began at %v; an instant beyond the beat is the beat's", began)
		}
	})
}

func TestPanicsAndErrorsAreToldAndTheNextPassRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // C112
		what := "fine"
		passes := 0
		l, log := testLoop(func(context.Context, <-chan struct{}) (time.Duration, error) {
			passes++
			switch what {
			case "panic":
				panic("oh")
			case "error":
				return 0, errors.New("no " + time.Now().String()) // an error that is never the same
			}
			return 0, nil
		})
		stop := running(t, l)
		defer stop()
		ask := func(state string, times int) string {
			what = state
			for range times {
				l.Wake()
				synctest.Wait()
				time.Sleep(time.Second)
			}
			return log.take()
		}
		if text := ask("error", 55); strings.Count(text, "\n") != 1 || !strings.Contains(text, "a pass failed") {
			t.Errorf("55 errors within a minute:\n%s", text)
		}
		if text := ask("panic", 3); strings.Count(text, "\n") != 1 || !strings.Contains(text, "loop_test.go") {
			t.Errorf("a panic after errors, with the place:\n%s", text)
		}
		if text := ask("error", 120); strings.Count(text, "\n") != 2 {
			t.Errorf("two more minutes of errors:\n%s", text)
		}
		if text := ask("fine", 2); strings.Count(text, "\n") != 1 || !strings.Contains(text, "failures=178") {
			t.Errorf("the end of the trouble:\n%s", text)
		}
		if passes != 180 {
			t.Errorf("%d passes", passes)
		}
	})
}

func TestStopWaitsForThePassAndLetsItsStepEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // C111
		var enoughSeen, contextEnded bool
		l, log := testLoop(func(ctx context.Context, enough <-chan struct{}) (time.Duration, error) {
			time.Sleep(5 * time.Second) // one step
			enoughSeen, contextEnded = closed(enough), ctx.Err() != nil
			return 0, nil
		})
		stop := running(t, l)
		l.Wake()
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took != 5*time.Second || !enoughSeen || contextEnded {
			t.Errorf("Stop took %s; the pass saw enough: %t, its context ended: %t", took, enoughSeen, contextEnded)
		}
		if text := log.take(); text != "" {
			t.Errorf("log: %s", text)
		}
	})
}

func TestAStepWithoutAnAnswerIsCutOffAfterStopInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, log := testLoop(func(ctx context.Context, _ <-chan struct{}) (time.Duration, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		stop := running(t, l)
		l.Wake()
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took != stopGrace {
			t.Errorf("Stop took %s, want %s", took, stopGrace)
		}
		if text := log.take(); text != "" {
			t.Errorf("log: %s", text)
		}
	})
}

func TestAPassThatHangsDoesNotStopTheLoopForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passes := 0
		l, log := testLoop(func(ctx context.Context, _ <-chan struct{}) (time.Duration, error) {
			passes++
			if passes == 1 {
				<-ctx.Done()
			}
			return 0, ctx.Err()
		})
		stop := running(t, l)
		l.Wake()
		synctest.Wait()
		l.Wake() // the next beat, while the pass hangs
		time.Sleep(passLimit + time.Second)
		stop()
		if passes != 2 || !strings.Contains(log.take(), "a pass failed") {
			t.Errorf("%d passes, want the one that hung and the next", passes)
		}
	})
}

func TestALongPassMakesRoomAndGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps, passes := 0, 0
		l, log := testLoop(func(_ context.Context, enough <-chan struct{}) (time.Duration, error) {
			passes++
			for steps < 100 && !closed(enough) {
				steps++
				time.Sleep(time.Second)
			}
			if steps < 100 {
				return soonest, nil
			}
			return 0, nil
		})
		stop := running(t, l)
		l.Wake()
		time.Sleep(101 * time.Second)
		stop()
		if steps != 100 || passes != 4 || log.take() != "" {
			t.Errorf("%d steps in %d passes", steps, passes)
		}
	})
}
