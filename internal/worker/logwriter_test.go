package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
)

// writerFor is a log writer on its own, with what ends it.
func writerFor(t *testing.T, s *fakeStore) (*logWriter, *attempt) {
	t.Helper()
	a := newAttempt(t.Context(), s.claim(), time.Hour)
	t.Cleanup(a.release)
	return newLogWriter(t.Context(), a, s, quiet(), false), a
}

func TestLinesKeepTheirOrderAndAreAllThereAtTheEnd(t *testing.T) {
	s := newFakeStore()
	w, a := writerFor(t, s)
	for i := range 5000 {
		w.Line(domain.LogStreamStdout, fmt.Sprint(i))
	}
	w.close()
	r := s.row(a.Attempt)
	if len(r.lines) != 5000 {
		t.Fatalf("%d lines", len(r.lines))
	}
	for i, line := range r.lines {
		if line.Text != fmt.Sprint(i) || line.Seq != int64(i)+1 {
			t.Fatalf("line %d is %+v", i, line)
		}
	}
	if n := s.called()["AppendLog"]; n > 500 {
		t.Errorf("%d writes", n)
	}
}

func TestStepsKeepTheirOrderAndAreWrittenInBatches(t *testing.T) {
	s := newFakeStore()
	w, a := writerFor(t, s)
	for i := range 1000 {
		w.Progress(map[string]any{"n": i})
	}
	w.close()
	r := s.row(a.Attempt)
	for i, step := range r.steps {
		if step["n"] != i {
			t.Fatalf("step %d is %v", i, step)
		}
	}
	if n := s.called()["Progress"]; len(r.steps) != 1000 || n > 500 {
		t.Errorf("%d steps in %d writes", len(r.steps), n)
	}
}

func TestALineThatComesAloneIsWrittenAtOnceAndABurstInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		w, a := writerFor(t, s)
		w.Line(domain.LogStreamStdout, "first")
		synctest.Wait()
		if n := len(s.row(a.Attempt).lines); n != 1 {
			t.Errorf("%d lines are there at once", n)
		}
		for i := range 100 {
			w.Line(domain.LogStreamStdout, fmt.Sprint(i))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := s.called()["AppendLog"]; n < 4 || n > 6 {
			t.Errorf("%d writes in 100 ms", n)
		}
		time.Sleep(logPause)
		synctest.Wait()
		if n := len(s.row(a.Attempt).lines); n != 101 {
			t.Errorf("%d lines", n)
		}
		w.close()
	})
}

// What is left when an attempt ends well goes along with its end, unless it is much. All that an attempt says that is over at once is
// such a rest, because its first line waits, too.
func TestTheRestOfTheLinesIsLeftToTheEnd(t *testing.T) {
	for name, x := range map[string]struct {
		brief         bool
		first         int // lines that are written before the attempt ends
		last          string
		count, writes int // lines after that, and writes in all
		left          int
	}{
		"a brief attempt writes nothing by itself":              {brief: true, count: 60, last: "x", left: 60},
		"a brief attempt that says nothing leaves nothing":      {brief: true},
		"what came after the last write is left":                {first: 1, count: 3, last: "x", writes: 1, left: 3},
		"what is too much for an end is written":                {first: 1, count: 20, last: strings.Repeat("x", 8<<10), writes: 2},
		"an attempt whose lines are all written leaves nothing": {first: 1, writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				a := newAttempt(t.Context(), s.claim(), time.Hour)
				defer a.release()
				w := newLogWriter(t.Context(), a, s, quiet(), x.brief)
				for range x.first {
					w.Line(domain.LogStreamStdout, "first")
				}
				synctest.Wait()
				for range x.count {
					w.Line(domain.LogStreamStdout, x.last)
				}
				rest := w.rest()
				w.close()
				if stored, n := len(s.row(a.Attempt).lines), s.called()["AppendLog"]; len(rest) != x.left || stored+len(rest) != x.first+x.count || n != x.writes {
					t.Errorf("%d lines are left, %d are stored in %d writes", len(rest), stored, n)
				}
			})
		})
	}
}

// A brief attempt that is not over yet is shown after the pause.
func TestABriefAttemptThatLastsIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		a := newAttempt(t.Context(), s.claim(), time.Hour)
		defer a.release()
		w := newLogWriter(t.Context(), a, s, quiet(), true)
		w.Line(domain.LogStreamStdout, "first")
		synctest.Wait()
		before := s.called()["AppendLog"]
		time.Sleep(logPause)
		synctest.Wait()
		if n := len(s.row(a.Attempt).lines); before != 0 || n != 1 {
			t.Errorf("%d writes at once, %d lines after the pause", before, n)
		}
		w.close()
	})
}

func TestASlowDatabaseHoldsTheAgentBackAndMemoryStaysBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.away = true
		w, a := writerFor(t, s)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 1000 {
				w.Line(domain.LogStreamStdout, strings.Repeat("x", 8<<10))
			}
		}()
		time.Sleep(time.Minute)
		select {
		case <-done:
			t.Error("the agent was not held back")
		default:
		}
		w.mu.Lock()
		if w.bytes > 2*logBuffer {
			t.Errorf("%d bytes wait", w.bytes)
		}
		w.mu.Unlock()
		s.set(func(s *fakeStore) { s.away = false })
		<-done
		w.close()
		if n := len(s.row(a.Attempt).lines); n != 1000 {
			t.Errorf("%d lines", n)
		}
	})
}

func TestAnEndedAttemptIsNotHeldBackAndSaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.away = true
		w, a := writerFor(t, s)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 1000 {
				w.Line(domain.LogStreamStdout, strings.Repeat("x", 8<<10))
			}
		}()
		synctest.Wait()
		a.stop(&executor.Stop{Reason: errLeaseEnding})
		<-done
		s.set(func(s *fakeStore) { s.away = false })
		w.close()
		lines := s.row(a.Attempt).lines
		if last := lines[len(lines)-1]; last.Stream != domain.LogStreamSystem || !strings.Contains(last.Text, "missing") {
			t.Errorf("the last line is %+v", last)
		}
	})
}

func TestAFencedWriterEndsTheLaunchAndSwallowsTheRest(t *testing.T) {
	s := newFakeStore()
	w, a := writerFor(t, s)
	s.set(func(s *fakeStore) { s.rows[a.Attempt].lost = true })
	w.Line(domain.LogStreamStdout, "x")
	<-a.ctx.Done()
	if !errors.Is(context.Cause(a.ctx), errLost) {
		t.Errorf("cause: %v", context.Cause(a.ctx))
	}
	for range 1000 {
		w.Line(domain.LogStreamStdout, strings.Repeat("x", 8<<10))
	}
	w.close()
}

func TestLinesThatTheDatabaseRefusesDoNotStopTheOthers(t *testing.T) {
	s := newFakeStore()
	w, a := writerFor(t, s)
	s.set(func(s *fakeStore) { s.fail["AppendLog"] = errors.New("invalid byte sequence") })
	w.Line(domain.LogStreamStdout, "bad")
	for s.called()["AppendLog"] == 0 {
		time.Sleep(time.Millisecond)
	}
	s.set(func(s *fakeStore) { delete(s.fail, "AppendLog") })
	w.Line(domain.LogStreamStdout, "good")
	w.close()
	if lines := s.row(a.Attempt).lines; len(lines) != 1 || lines[0].Text != "good" {
		t.Errorf("%+v", lines)
	}
}

func TestLongPayloadsAreLeftOutOfTheEnvironment(t *testing.T) {
	for _, v := range runVariables(&store.Launch{WakePayload: []byte(`{"x":"` + strings.Repeat("y", maxPayload) + `"}`)}, "") {
		if v.Name == "ROUSE_WAKE_PAYLOAD_JSON" && v.Value != longPayload {
			t.Errorf("payload of %d bytes", len(v.Value))
		}
	}
}
