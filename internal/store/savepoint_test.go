package store

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// S10.5: what a savepoint undoes is neither published, counted nor logged; what was before it and comes after it is.
func TestWhatASavepointUndoesHasNoEffects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var told []string
	tell := func(x *tx, what string) {
		x.Publish(event.Event{Kind: event.Run, WorkspaceID: w.workspace, ID: xid.ID(what)})
		x.Count(func(*metrics.Counters) { told = append(told, "counted "+what) })
		x.onCommit(func(*base) { told = append(told, "did "+what) })
	}
	w.ok(w.inTx(t.Context(), func(x *tx) error {
		tell(x, "before")
		err := x.savepoint(t.Context(), func() error {
			tell(x, "undone")
			return errFault
		})
		if !errors.Is(err, errFault) {
			t.Errorf("the savepoint says %v", err)
		}
		tell(x, "between")
		return x.savepoint(t.Context(), func() error { tell(x, "kept"); return nil })
	}))
	if want := []string{"counted before", "counted between", "counted kept", "did before", "did between", "did kept"}; !slices.Equal(told, want) {
		t.Errorf("it told %q, want %q", told, want)
	}
	for what, want := range map[xid.ID]bool{"before": true, "undone": false, "between": true, "kept": true} {
		if got := w.events.has(event.Run, what); got != want {
			t.Errorf("%q was published: %t", what, got)
		}
	}
}

// A savepoint that could not be ended is never committed, even by a caller that goes on.
func TestATransactionWithABrokenSavepointIsNotCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, f := w.faulty()
	err := s.inTx(t.Context(), func(x *tx) error {
		_ = x.savepoint(t.Context(), func() error {
			_, err := pgtx.Exec(t.Context(), x, `UPDATE workspaces SET name = 'changed'`)
			f.left.Store(1)
			return err
		})
		return nil
	})
	if !errors.Is(err, errFault) || one[string](w, `SELECT name FROM workspaces`) == "changed" {
		t.Errorf("it was committed: %v", err)
	}
}

// S6.2, S10.5: a run that a guard could not settle has not ended, and nothing says that it has.
func TestARunWhoseGuardFailedIsNotToldToHaveEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var spans []string
	text := &strings.Builder{}
	w.Store = New(w.db, Options{Events: w.events, Counters: metrics.New(), Jitter: func() float64 { return 0 }, Log: slog.New(slog.NewTextHandler(text, nil)),
		Tracer: tracerFunc(func(s Span) { spans = append(spans, s.Name) })})
	agent := w.agent("idle", func(in *CreateAgent) { in.SkipIdleWakeups = pgtx.Ptr(true) })
	request := w.request(agent, func(r *newRequest) { r.class = domain.WakeClassPeriodic })
	w.refuse("UPDATE", "wakeup_requests", `NEW.finished_at IS NOT NULL`)
	spans = nil
	if got := w.claim(10); len(got) != 0 {
		t.Errorf("claimed %v", got)
	}
	w.wantRun(w.runOf(request), domain.RunStatusQueued, domain.ParkedReasonGuardError)
	if slices.Contains(spans, "run") || strings.Contains(text.String(), "run ended") || strings.Contains(text.String(), "wakeup_idle_skipped") {
		t.Errorf("it is told to have ended: %q\n%s", spans, text)
	}
	for _, shape := range w.counters.Workspace(w.workspace).TerminalRuns {
		if shape.Count != 0 {
			t.Errorf("%d runs are counted as %s", shape.Count, shape.Shape)
		}
	}
}

type tracerFunc func(Span)

func (f tracerFunc) Trace(s Span) { f(s) }
