package store

import (
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// What a report says of a step and of lines is kept whole, or not at all: a call that is made again adds nothing twice.
func TestAReportOfProgressIsKeptWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wake(w.agent("worker"))
	c := w.claimOne()
	w.start(c)
	report := func() error {
		_, err := w.ReportProgress(t.Context(), c.Attempt, map[string]any{"step": "one"}, 1, []LogLine{{Stream: domain.LogStreamStdout, Text: "a line", At: time.Now()}})
		return err
	}
	w.refuse("INSERT", "run_log_pieces", `NEW.texts[1] = 'a line'`)
	if report() == nil {
		t.Error("a report whose lines cannot be stored succeeded")
	}
	steps := func() int { return one[int](w, `SELECT count(*) FROM run_events WHERE kind = 'PROGRESS'`) }
	if n := steps(); n != 0 {
		t.Errorf("%d steps of a report are stored without its lines", n)
	}
	w.sql(`DROP FUNCTION refuse CASCADE`)
	w.ok(report())
	if n := one[int](w, `SELECT count(*) FROM run_log_lines`); steps() != 1 || n != 1 {
		t.Errorf("%d steps and %d lines are stored, want one of each", steps(), n)
	}
	w.sound()
}
