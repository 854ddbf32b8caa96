package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// FirePreview is what a fire by hand would do. Plan is the zero value when it would be refused; Problems say why.
type FirePreview struct {
	Rendered domain.TaskTemplate // the task, or a lightweight routine's name and text
	Resolved []domain.ResolvedVariable
	Plan     domain.FirePlan
	Problems []domain.FieldError
}

// PreviewFire says what FireRoutine would do now, and writes nothing: its transaction could not (SPEC S4.10).
func (s *Routines) PreviewFire(ctx context.Context, in FireRoutine) (out FirePreview, err error) {
	et, err := s.readClient.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return FirePreview{}, fmt.Errorf("begin a preview: %w", err)
	}
	defer func() { err = errors.Join(err, pgtx.Rollback(et)) }()
	t := &tx{Tx: &pgtx.Tx{Tx: et}, base: s.base, locked: laneSet{}}
	if err := t.ReadClock(ctx); err != nil {
		return FirePreview{}, err
	}
	r, err := t.readRoutine(ctx, in.RoutineID, "")
	if err == nil && r.workspaceID != in.WorkspaceID {
		err = sql.ErrNoRows
	}
	if err != nil {
		return FirePreview{}, pgtx.NotFound(err, []string{"routineId"}, "routine", in.RoutineID)
	}
	return t.previewFire(ctx, r, in)
}

func (t *tx) previewFire(ctx context.Context, r routineRow, in FireRoutine) (out FirePreview, err error) {
	x := &fireCall{FireRoutine: in, source: domain.RoutineRunSourceManual, id: xid.New("rrn"), routine: &r}
	b := &callBatch{tx: t}
	if err := t.readCallTriggers(ctx, []*fireCall{x}); err != nil {
		return out, err
	}
	if out.Problems, err = problemsOf(x.checkTrigger()); err != nil {
		return out, err
	}
	location, err := time.LoadLocation(x.trigger.zone)
	if err != nil {
		return out, fmt.Errorf("read the time zone of a fire: %w", err)
	}
	resolved, problems := domain.ResolveVariables(r.variables, in.Variables, domain.BuiltIns(t.Now, location))
	out.Resolved, out.Problems = resolved, append(out.Problems, problems...)
	out.Rendered = domain.RenderFire(r.name, r.description, r.template, domain.VariableValues(resolved))
	if b.queue, err = t.readFireQueue(ctx, []markedRoutine{{&r, r.fingerprint(in.Variables)}}); err != nil {
		return out, err
	}
	if plan := domain.PlanFire(b.facts(x)); plan.Answer == domain.FireRecord {
		out.Plan = plan
	} else {
		out.Problems = append(out.Problems, plan.Problem)
	}
	return out, nil
}

// problemsOf takes what the caller can fix out of an error; any other stays one.
func problemsOf(err error) ([]domain.FieldError, error) {
	var ue *domain.UserError
	if errors.As(err, &ue) {
		return ue.Problems, nil
	}
	return nil, err
}
