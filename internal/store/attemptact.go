package store

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// WakeSelf wakes the agent whose run's token the caller has once more, as the action self_wake does. The same wake twice in a run is one:
// again says that there was one. Payload may be nil.
func (s *Attempts) WakeSelf(ctx context.Context, reason string, payload map[string]any) (request xid.ID, again bool, err error) {
	a := domain.Action{Type: domain.ActionSelfWake, Reason: reason, Payload: payload}
	if err := domain.AsUserError(a.SelfWakeProblems()); err != nil {
		return "", false, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		run, err := t.actingRun(ctx)
		if err != nil {
			return err
		}
		if run == nil {
			return errNoRunsToken
		}
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		if request, again, err = t.selfWake(ctx, *run, causeOfRun(*run), a, a.Key()); err != nil || again {
			return err
		}
		return t.noteAct(ctx, run, a, request)
	})
	return request, again, pgtx.Wrap("wake the run's own agent", err)
}

// NoteProgress notes a step of the work of the run whose token the caller has.
func (s *Attempts) NoteProgress(ctx context.Context, step map[string]any) error {
	return pgtx.Wrap("note the run's progress", s.inTx(ctx, func(t *tx) error {
		run, err := t.actingRun(ctx)
		if err != nil {
			return err
		}
		if run == nil {
			return errNoRunsToken
		}
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		return t.runEvent(ctx, *run, domain.RunEventKindProgress, run.attempt, step)
	}))
}
