package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
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
	if out.Problems, err = problemsOf(t.checkTrigger(ctx, in)); err != nil {
		return out, err
	}
	location, err := t.zoneOfFire(ctx, r, in.TriggerID)
	if err != nil {
		return out, err
	}
	resolved, problems := domain.ResolveVariables(r.variables, in.Variables, domain.BuiltIns(t.Now, location))
	out.Resolved, out.Problems = resolved, append(out.Problems, problems...)
	out.Rendered = domain.RenderFire(r.name, r.description, r.template, domain.VariableValues(resolved))
	f := firing{tx: t, routine: r, triggerID: in.TriggerID, source: domain.RoutineRunSourceManual, provided: in.Variables}
	if err := f.readFacts(ctx); err != nil {
		return out, err
	}
	if plan := domain.PlanFire(f.facts); plan.Answer == domain.FireRecord {
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
