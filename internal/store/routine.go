package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"rouse.dev/rouse/internal/cron"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// CreateRoutine is a routine to make, with its triggers. A nil TaskTemplate makes it lightweight.
type CreateRoutine struct {
	WorkspaceID       xid.ID
	Name, Description string
	AssigneeID        xid.ID
	ConcurrencyPolicy domain.ConcurrencyPolicy
	CatchUpPolicy     domain.CatchUpPolicy
	CatchUpMax        int
	TaskTemplate      *domain.TaskTemplate
	Variables         []domain.RoutineVariable
	Triggers          []TriggerSpec
	Idempotency
}

// CreateRoutine makes a routine and its triggers, whole or not at all; schedules are armed from now.
func (s *Routines) CreateRoutine(ctx context.Context, in CreateRoutine) (made Made, err error) {
	in, clamped, err := in.normalised()
	if err != nil {
		return Made{}, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, in.WorkspaceID, "createRoutine", in.Idempotency, func() (Made, error) { return t.createRoutine(ctx, in) })
		return err
	})
	made.Clamped = clamped
	return made, pgtx.Wrap("create routine", err)
}

func (in CreateRoutine) normalised() (_ CreateRoutine, clamped []string, err error) {
	settings, clamped, problems := domain.RoutineSettings{Name: in.Name, Description: in.Description, AssigneeID: in.AssigneeID,
		Policy: in.ConcurrencyPolicy, CatchUp: in.CatchUpPolicy, CatchUpMax: in.CatchUpMax, Template: in.TaskTemplate, Variables: in.Variables,
	}.Check(slices.ContainsFunc(in.Triggers, TriggerSpec.isSchedule))
	if len(in.Triggers) > domain.MaxRoutineTriggers {
		problems = append(problems, tooManyTriggers("triggers"))
	}
	in.Name, in.CatchUpMax, in.Variables = settings.Name, settings.CatchUpMax, settings.Variables
	return in, clamped, domain.AsUserError(problems)
}

func (t *tx) createRoutine(ctx context.Context, in CreateRoutine) (Made, error) {
	if err := t.checkTemplate(ctx, in.WorkspaceID, in.TaskTemplate); err != nil {
		return Made{}, err
	}
	if err := t.checkAgent(ctx, in.WorkspaceID, in.AssigneeID, []string{"assigneeId"}); err != nil {
		return Made{}, err
	}
	if err := t.ReadClock(ctx); err != nil {
		return Made{}, err
	}
	id := xid.New("rtn")
	create := t.Routine.Create().SetID(id).SetWorkspaceID(in.WorkspaceID).SetName(in.Name).SetDescription(in.Description).
		SetAssigneeID(in.AssigneeID).SetConcurrencyPolicy(in.ConcurrencyPolicy).SetCatchUpPolicy(in.CatchUpPolicy).
		SetCatchUpMax(in.CatchUpMax).SetVariables(in.Variables)
	if in.TaskTemplate != nil {
		create.SetTaskTemplate(in.TaskTemplate)
	}
	err := create.Exec(ctx)
	if pgtx.UniqueViolation(err) != "" {
		return Made{}, nameTaken("routine", in.Name)
	}
	if err != nil {
		return Made{}, fmt.Errorf("insert routine: %w", err)
	}
	for i, spec := range in.Triggers {
		if _, err := t.createTrigger(ctx, in.WorkspaceID, id, spec); err != nil {
			return Made{}, under(err, "triggers", strconv.Itoa(i))
		}
	}
	return Made{ID: id}, t.noteRoutine(ctx, routineRow{id: id, workspaceID: in.WorkspaceID, assigneeID: in.AssigneeID}, "The routine was made.",
		map[string]any{"created": true, "name": in.Name, "triggers": len(in.Triggers)})
}

// checkTemplate refuses a template whose project is not in the workspace.
func (t *tx) checkTemplate(ctx context.Context, workspaceID xid.ID, template *domain.TaskTemplate) error {
	if template == nil || template.ProjectID == "" {
		return nil
	}
	there, err := t.projectExists(ctx, workspaceID, template.ProjectID)
	if err == nil && !there {
		err = domain.RefuseField([]string{"taskTemplate", "projectId"}, domain.UserErrorCodeNotFound, "there is no project %s in this workspace", template.ProjectID)
	}
	return err
}

// parseSchedule reads an expression; what is wrong with it is a problem the caller can fix, at the field it concerns.
func parseSchedule(spec cron.Spec) (cron.Timing, error) {
	schedule, err := cron.ParseTiming(spec)
	var ce *cron.Error
	if !errors.As(err, &ce) {
		return schedule, err
	}
	field := "cron"
	if ce.Code == domain.UserErrorCodeUnknownTimeZone {
		field = "timeZone"
	}
	return schedule, domain.RefuseField([]string{field}, ce.Code, "%s", ce.Message)
}

// under puts the problems of a user error below a longer path.
func under(err error, path ...string) error {
	var ue *domain.UserError
	if !errors.As(err, &ue) {
		return err
	}
	problems := make([]domain.FieldError, len(ue.Problems))
	for i, p := range ue.Problems {
		problems[i] = p.Under(path...)
	}
	return domain.AsUserError(problems)
}

func (t *tx) projectExists(ctx context.Context, workspaceID, projectID xid.ID) (bool, error) {
	there, err := pgtx.QueryOne[bool](ctx, t, `SELECT EXISTS (SELECT 1 FROM projects WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL)`, projectID, workspaceID)
	return there, pgtx.Wrap("look for the project", err)
}
