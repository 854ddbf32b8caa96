package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"rouse.dev/rouse/internal/cron"
	"rouse.dev/rouse/internal/domain"
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

// TriggerSpec is a trigger to make. Cron and TimeZone belong to schedules; TimeZone "" is the workspace's.
type TriggerSpec struct {
	Kind     domain.TriggerKind
	Cron     string
	TimeZone string
	Enabled  bool
}

// Bounds of a routine.
const (
	maxDescription = 64 << 10 // bytes
	maxTriggers    = 50
	maxVariables   = 100
)

// CreateRoutine makes a routine and its triggers, whole or not at all; schedules are armed from now.
func (s *Store) CreateRoutine(ctx context.Context, in CreateRoutine) (made Made, err error) {
	in, clamped, err := in.normalised()
	if err != nil {
		return Made{}, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.once(ctx, in.WorkspaceID, "createRoutine", in.Idempotency, func() (Made, error) { return t.createRoutine(ctx, in) })
		return err
	})
	made.Clamped = clamped
	return made, wrap("create routine", err)
}

func (in CreateRoutine) normalised() (_ CreateRoutine, clamped []string, err error) {
	var problems []domain.FieldError
	in.Name, problems = domain.CheckName(in.Name, problems)
	problem := func(field string, code domain.UserErrorCode, message string) {
		problems = append(problems, domain.FieldError{Field: []string{field}, Code: code, Message: message})
	}
	if len(in.Description) > maxDescription {
		problem("description", domain.UserErrorCodeTooLong, "a description has at most 64 KiB")
	}
	if len(in.Triggers) > maxTriggers {
		problem("triggers", domain.UserErrorCodeTooLong, "a routine has at most 50 triggers")
	}
	if len(in.Variables) > maxVariables {
		problem("variables", domain.UserErrorCodeTooLong, "a routine has at most 100 variables")
	}
	var wasClamped bool
	if in.CatchUpMax, wasClamped = domain.ClampCatchUpMax(in.CatchUpMax); wasClamped {
		clamped = append(clamped, "catchUpMax")
	}
	in.Variables = domain.Declared(in.Variables, in.templateOrDescription())
	hasSchedule := false
	for _, spec := range in.Triggers {
		hasSchedule = hasSchedule || spec.Kind == domain.TriggerKindSchedule
	}
	problems = append(problems, domain.CheckVariables(in.Variables, hasSchedule)...)
	return in, clamped, domain.AsUserError(problems)
}

// templateOrDescription is the text whose {{variables}} are declared by saving it: a lightweight routine's is its
// description, which becomes the prompt.
func (in CreateRoutine) templateOrDescription() *domain.TaskTemplate {
	if in.TaskTemplate != nil {
		return in.TaskTemplate
	}
	return &domain.TaskTemplate{Description: in.Description}
}

func (t *tx) createRoutine(ctx context.Context, in CreateRoutine) (Made, error) {
	if in.TaskTemplate != nil {
		return Made{}, domain.RefuseField([]string{"taskTemplate"}, domain.UserErrorCodeInvalid,
			"routines that make tasks are not available in this version; leave the template out to wake the agent without a task")
	}
	if err := t.checkAgent(ctx, in.WorkspaceID, in.AssigneeID, []string{"assigneeId"}); err != nil {
		return Made{}, err
	}
	if err := t.readClock(ctx); err != nil {
		return Made{}, err
	}
	id := xid.New("rtn")
	err := t.Routine.Create().SetID(id).SetWorkspaceID(in.WorkspaceID).SetName(in.Name).SetDescription(in.Description).
		SetAssigneeID(in.AssigneeID).SetConcurrencyPolicy(in.ConcurrencyPolicy).SetCatchUpPolicy(in.CatchUpPolicy).
		SetCatchUpMax(in.CatchUpMax).SetVariables(in.Variables).Exec(ctx)
	if uniqueViolation(err) != "" {
		return Made{}, nameTaken("routine", in.Name)
	}
	if err != nil {
		return Made{}, fmt.Errorf("insert routine: %w", err)
	}
	for i, spec := range in.Triggers {
		if err := t.createTrigger(ctx, in.WorkspaceID, id, spec); err != nil {
			return Made{}, under(err, "triggers", strconv.Itoa(i))
		}
	}
	return Made{ID: id}, t.note(ctx, entry{workspaceID: in.WorkspaceID, code: domain.ActivityCodeRoutineChanged, by: callerOr(ctx, "routines"),
		summary: "The routine was made.", subjectID: id, agentID: in.AssigneeID})
}

// triggerPrefix is the id prefix that tells the API which type a trigger is.
var triggerPrefix = map[domain.TriggerKind]string{
	domain.TriggerKindSchedule: "sch", domain.TriggerKindWebhook: "whk", domain.TriggerKindManual: "man",
}

func (t *tx) createTrigger(ctx context.Context, workspaceID, routineID xid.ID, spec TriggerSpec) error {
	create := t.RoutineTrigger.Create().SetID(xid.New(triggerPrefix[spec.Kind])).SetWorkspaceID(workspaceID).
		SetRoutineID(routineID).SetKind(spec.Kind).SetEnabled(spec.Enabled)
	switch spec.Kind {
	case domain.TriggerKindSchedule:
		if spec.TimeZone == "" {
			zone, err := queryOne[string](ctx, t, `SELECT default_time_zone FROM workspaces WHERE id = $1`, workspaceID)
			if err != nil {
				return fmt.Errorf("read the workspace's time zone: %w", err)
			}
			spec.TimeZone = zone
		}
		schedule, err := parseSchedule(spec.Cron, spec.TimeZone)
		if err != nil {
			return under(err, "schedule")
		}
		create.SetCron(spec.Cron).SetTimeZone(spec.TimeZone)
		if spec.Enabled {
			create.SetNextRunAt(schedule.Next(t.now))
		}
	case domain.TriggerKindWebhook:
		return domain.RefuseField([]string{"webhook"}, domain.UserErrorCodeInvalid, "webhook triggers are not available in this version; use a schedule or a manual trigger")
	}
	if err := create.Exec(ctx); err != nil {
		return fmt.Errorf("insert trigger: %w", err)
	}
	return nil
}

// parseSchedule reads an expression; what is wrong with it is a problem the caller can fix, at the field it concerns.
func parseSchedule(expression, zone string) (cron.Schedule, error) {
	schedule, err := cron.Parse(expression, zone)
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
