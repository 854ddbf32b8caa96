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

// FirePreview is what a fire would do. Plan is the zero value when it would be refused; Problems say why.
type FirePreview struct {
	Rendered domain.TaskTemplate // the task, or a lightweight routine's name and text
	Resolved []domain.ResolvedVariable
	Plan     domain.FirePlan
	Problems []domain.FieldError
}

// PreviewFire says what FireRoutine would do now, or a slot of a schedule, and writes nothing: its transaction could not (SPEC S4.10).
func (s *Routines) PreviewFire(ctx context.Context, in FireRoutine, scheduled bool) (out FirePreview, err error) {
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
	x := &fireCall{FireRoutine: in, source: domain.RoutineRunSourceManual, id: xid.New("rrn"), routine: &r}
	if scheduled {
		x.source = domain.RoutineRunSourceCron
	}
	return t.previewFire(ctx, r, x)
}

func (t *tx) previewFire(ctx context.Context, r routineRow, x *fireCall) (out FirePreview, err error) {
	in := x.FireRoutine
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
	switch plan := domain.PlanFire(b.facts(x)); plan.Answer {
	case domain.FireRecord:
		out.Plan = plan
	case domain.FireSuppress: // a fire by hand says why
		x.source = domain.RoutineRunSourceManual
		out.Problems = append(out.Problems, domain.PlanFire(b.facts(x)).Problem)
	default:
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
