package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// lines are lines of output with these numbers.
func lines(numbers ...int64) (list []LogLine) {
	for _, n := range numbers {
		list = append(list, LogLine{Seq: n, Stream: domain.LogStreamStdout, Text: fmt.Sprintf(`line %d of {"a", NULL}`, n), At: time.UnixMicro(1_000_000 + n).UTC()})
	}
	return list
}

// wantLines fails the test unless an attempt's log has the lines with these numbers, as they were written.
func (w *world) wantLines(a Attempt, numbers ...int64) {
	w.Helper()
	got, err := w.LogAfter(w.Context(), a.RunID, reads.LogPosition{}, 100)
	w.ok(err)
	want := lines(numbers...)
	if len(got) != len(want) {
		w.Fatalf("run %s has %d lines, want %d", a.RunID, len(got), len(want))
	}
	for i, l := range got {
		if l.Attempt != a.Number || l.Seq != want[i].Seq || l.Stream != want[i].Stream || l.Text != want[i].Text || !l.At.Equal(want[i].At) {
			w.Errorf("line %d is %+v, want %+v", i+1, l, want[i])
		}
	}
}

// launchedRuns are n attempts that may write lines.
func (w *world) launchedRuns(n int) (list []Attempt) {
	w.Helper()
	for range n {
		w.wake(w.agent(string(xid.New("agent"))))
		c := w.claimOne()
		w.start(c)
		list = append(list, c.Attempt)
	}
	return list
}

// together makes calls that write lines in one statement, and returns what came of each.
func (w *world) appendedTogether(calls ...func() error) []error {
	w.Helper()
	w.Attempts.appends.Gather(len(calls))
	results := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { results[i] = call() })
	}
	wg.Wait()
	return results
}

// SPEC S7.6: attempts that write at once share a statement, and each has its own lines; one that is not live is fenced alone.
func TestAttemptsThatWriteAtOnceShareAStatement(t *testing.T) {
	t.Parallel()
	db, statements := countingDB(t)
	w := newWorldOn(t, db)
	live := w.launchedRuns(4)
	late := live[3]
	late.Owner = xid.New("prc")
	before := statements.Load()
	results := w.appendedTogether(
		func() error { return w.AppendLog(t.Context(), live[0], lines(1, 2, 3)) },
		func() error { return w.AppendLog(t.Context(), live[1], lines(1, 2, 5)) }, // one was dropped
		func() error { return w.AppendLog(t.Context(), live[2], lines(1)) },
		func() error { return w.AppendLog(t.Context(), late, lines(1)) })
	if n := statements.Load() - before; n != 2 { // the one that is fenced looks again alone
		t.Errorf("%d statements, want 2", n)
	}
	for i, err := range results {
		if errors.Is(err, ErrFenced) != (i == 3) || i != 3 && err != nil {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	w.wantLines(live[0], 1, 2, 3)
	w.wantLines(live[1], 1, 2, 5)
	w.wantLines(live[2], 1)
	w.wantLines(live[3])
	w.ok(w.AppendLog(t.Context(), live[0], lines(1, 2, 3))) // its answer was lost
	w.ok(w.AppendLog(t.Context(), live[0], lines(4)))
	w.wantLines(live[0], 1, 2, 3, 4)
	got, err := w.LogAfter(t.Context(), live[0].RunID, reads.LogPosition{Attempt: 1, Seq: 1}, 2)
	if w.ok(err); len(got) != 2 || got[0].Seq != 2 || got[1].Seq != 3 {
		t.Errorf("after the first line come %+v", got)
	}
}

// Lines that cannot be stored fail alone.
func TestLinesThatCannotBeStoredSpoilNoOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	live := w.launchedRuns(3)
	w.refuse("INSERT", "run_log_pieces", fmt.Sprintf(`NEW.run_id = '%s'`, live[1].RunID))
	var calls []func() error
	for _, a := range live {
		calls = append(calls, func() error { return w.AppendLog(t.Context(), a, lines(1)) })
	}
	for i, err := range w.appendedTogether(calls...) {
		if (err != nil) != (i == 1) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	w.wantLines(live[0], 1)
	w.wantLines(live[1])
	w.wantLines(live[2], 1)
}

// An attempt whose lease somebody holds, since he ends it, delays its own lines alone, and is fenced once he has.
func TestAnAttemptThatSomebodyEndsDelaysNoOtherLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	live := w.launchedRuns(2)
	holder, err := w.db.BeginTx(t.Context(), nil)
	w.ok(err)
	_, err = holder.ExecContext(t.Context(), `DELETE FROM attempt_leases WHERE run_id = $1`, live[0].RunID)
	w.ok(err)
	w.Attempts.appends.Gather(2)
	waits, done := make(chan error, 1), make(chan error, 1)
	ctx := context.WithoutCancel(t.Context())
	go func() { waits <- w.AppendLog(ctx, live[0], lines(1)) }()
	go func() { done <- w.AppendLog(ctx, live[1], lines(1)) }()
	w.ok(<-done)
	if len(waits) > 0 {
		t.Error("a lease that is held was passed over")
	}
	w.ok(holder.Commit())
	if err := <-waits; !errors.Is(err, ErrFenced) {
		t.Errorf("the lines of the attempt that has ended: %v", err)
	}
	w.wantLines(live[0])
	w.wantLines(live[1], 1)
}
