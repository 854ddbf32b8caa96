package graph

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/ent/routinetrigger"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/cron"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of previews.
const (
	timesMax       = 50
	plannedMax     = 1000
	plannedWindow  = 7 * 24 * time.Hour
	clockNotesMost = 50
)

// scheduleOf reads the schedule of a trigger.
func scheduleOf(t *ent.RoutineTrigger) (cron.Timing, error) {
	return cron.ParseTiming(store.TimingSpec(t))
}

// previewSchedule is the next n fires of an expression after an instant, and what clock changes do among them.
func previewSchedule(expression, zone string, n int, from time.Time) (*model.SchedulePreview, error) {
	if n < 1 || n > timesMax {
		return nil, badInput("n is 1 to %d, not %d", timesMax, n)
	}
	out := &model.SchedulePreview{Times: []*time.Time{}, DstNotes: []string{}, UserErrors: []*model.UserError{}}
	schedule, err := cron.Parse(expression, zone)
	if refused, ok := errors.AsType[*cron.Error](err); ok {
		field := "cron"
		if refused.Code == domain.UserErrorCodeUnknownTimeZone {
			field = "timeZone"
		}
		out.UserErrors = append(out.UserErrors, &model.UserError{Code: refused.Code, Message: domain.Brief(refused.Message, 400), Field: []string{field}})
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.Description = schedule.Explain()
	times := schedule.NextN(from, n)
	out.Times = instants(times)
	if len(times) > 0 {
		for _, change := range schedule.ClockChanges(from, times[len(times)-1].Add(time.Minute), clockNotesMost) {
			out.DstNotes = append(out.DstNotes, change.String())
		}
	}
	return out, nil
}

func instants(times []time.Time) []*time.Time {
	out := make([]*time.Time, len(times))
	for i := range times {
		out[i] = &times[i]
	}
	return out
}

// renderTemplate is a dry run of a template with the values given. It takes what saving the template and firing it would
// take; of longer texts it shows nothing.
func renderTemplate(in model.RenderTemplateInput, now time.Time) (*model.TemplatePreview, error) {
	template := domain.TaskTemplate{Title: in.Title, Description: in.Description}
	declared := declarations(in.Variables)
	if err := joinProblems(domain.AsUserError(domain.CheckTemplate(declared, template)), checkObject([]string{"values"}, in.Values, givenBytesMax), checkObject([]string{"headers"}, in.Headers, givenBytesMax)); err != nil {
		return nothingRendered(err)
	}
	problems := domain.CheckVariables(declared, false)
	zone, err := time.LoadLocation(in.TimeZone)
	if _, err := cron.Parse("* * * * *", in.TimeZone); err != nil {
		problems = append(problems, domain.FieldError{Field: []string{"timeZone"}, Code: domain.UserErrorCodeUnknownTimeZone, Message: err.Error()})
	}
	if err != nil {
		zone = time.UTC
	}
	if in.At != nil {
		now = *in.At
	}
	values, err := previewValues(in)
	if err != nil {
		return nil, err
	}
	resolved, unresolved := domain.ResolveVariables(declared, values, domain.BuiltIns(now, zone))
	for _, p := range unresolved {
		p.Field[0] = "values"
		problems = append(problems, p)
	}
	rendered := domain.RenderTask("", template, domain.VariableValues(resolved), domain.SlotFire{})
	preview := templatePreview(rendered, resolved, domain.Undeclared(declared, &template), problems)
	preview.Unresolved = append(preview.Unresolved, domain.UnresolvedPaths(domain.VariableValues(resolved), in.Title, in.Description)...)
	return preview, nil
}

// previewValues are the values of a preview, with the headers that its texts name.
func previewValues(in model.RenderTemplateInput) (map[string]string, error) {
	values, err := domain.ProvidedValues(in.Values)
	if err != nil {
		return nil, err
	}
	headers, err := domain.ProvidedValues(in.Headers)
	for name, value := range headers {
		values[domain.HeaderVariable(name)] = value
	}
	return values, err
}

// nothingRendered is a preview of a template that was refused.
func nothingRendered(err error) (*model.TemplatePreview, error) {
	refused := templatePreview(domain.TaskTemplate{}, nil, nil, nil)
	refused.UserErrors, err = problems(err)
	return refused, err
}

func templatePreview(rendered domain.TaskTemplate, resolved []domain.ResolvedVariable, undeclared []string, list []domain.FieldError) *model.TemplatePreview {
	out := &model.TemplatePreview{Title: rendered.Title, Description: rendered.Description, Values: resolvedValues(resolved), Undeclared: append([]string{}, undeclared...), Unresolved: []string{}}
	out.UserErrors, _ = problems(domain.AsUserError(list))
	return out
}

func resolvedValues(list []domain.ResolvedVariable) []*model.ResolvedVariable {
	out := []*model.ResolvedVariable{}
	for _, v := range list {
		shown := &model.ResolvedVariable{Name: v.Name, Origin: v.Origin}
		if v.Origin != domain.VariableOriginMissing {
			shown.Value = &v.Value
		}
		out = append(out, shown)
	}
	return out
}

// previewFire says what firing a routine would do.
func (r *Resolver) previewFire(ctx context.Context, in model.FireRoutineInput, as model.PreviewedFire) (*model.FirePreview, error) {
	out, err := r.tryFire(ctx, in, as == model.PreviewedFireScheduled)
	list, err := problems(err)
	if err != nil {
		return nil, err
	}
	preview := &model.FirePreview{Disposition: domain.RoutineRunStatusSkipped, UserErrors: list, Warnings: []*model.Advisory{},
		Rendered: templatePreview(out.Rendered, out.Resolved, nil, nil)}
	if len(out.Problems) > 0 {
		preview.UserErrors, _ = problems(domain.AsUserError(out.Problems))
	}
	if len(preview.UserErrors) > 0 {
		return preview, nil
	}
	preview.Disposition = out.Plan.Status
	if preview.CoalescesInto, err = linked(ctx, load(ctx).fires, xid.ID(out.Plan.CoalescedInto)); err != nil {
		return nil, err
	}
	return preview, r.advisePreview(ctx, preview, in.RoutineID, as)
}

// advisePreview says what to think about in a fire. A scheduled one that would be sent, and that the idle guard would end without a
// launch, is SKIPPED.
func (r *Resolver) advisePreview(ctx context.Context, preview *model.FirePreview, routineID xid.ID, as model.PreviewedFire) error {
	facts, err := load(ctx).advice.Load(ctx, routineID)
	if err != nil || facts == nil {
		return err
	}
	of := *facts
	if as == model.PreviewedFireScheduled {
		of.Scheduled = true
		if preview.Disposition == domain.RoutineRunStatusEnqueued && of.SkipsNow() {
			preview.Disposition = domain.RoutineRunStatusSkipped
		}
	}
	preview.Warnings = shownAdvice(domain.AdviseRoutine(of))
	return nil
}

func (r *Resolver) tryFire(ctx context.Context, in model.FireRoutineInput, scheduled bool) (store.FirePreview, error) {
	in.IdempotencyKey = nil // it does not matter
	if scheduled && len(in.Variables) > 0 {
		return store.FirePreview{}, domain.RefuseField([]string{"variables"}, domain.UserErrorCodeInvalid, "a schedule gives no values: leave them out, or preview a fire by hand")
	}
	_, fire, err := r.readFire(ctx, in)
	if err != nil {
		return store.FirePreview{}, err
	}
	return r.Store.PreviewFire(ctx, fire, scheduled)
}

// resolvedOf says where the values of a fire came from: the values are those that the fire recorded.
func resolvedOf(x *ent.Routine, fire *ent.RoutineRun, provided map[string]string) []*model.ResolvedVariable {
	builtIns := map[string]string{}
	for name := range domain.BuiltIns(time.Time{}, time.UTC) {
		if value, ok := fire.Variables[name].(string); ok {
			builtIns[name] = value
		}
	}
	resolved, _ := domain.ResolveVariables(x.Variables, provided, builtIns)
	return resolvedValues(resolved)
}

// upcomingFires is the first fires before an instant of the schedules that fire, found one after the other. Of schedules
// that begin later than the first n of them none can be among the first n fires.
func (r *Resolver) upcomingFires(ctx context.Context, w *ent.Workspace, until, now time.Time, first int) ([]*model.PlannedFire, error) {
	if first < 1 || first > plannedMax {
		return nil, badInput("first is 1 to %d, not %d", plannedMax, first)
	}
	if until.After(now.Add(plannedWindow + time.Minute)) {
		return nil, badInput("until is at most 7 days from now")
	}
	rows, err := r.Reader.RoutineTrigger.Query().Where(
		routinetrigger.WorkspaceID(w.ID), routinetrigger.KindEQ(domain.TriggerKindSchedule), routinetrigger.Enabled(true), routinetrigger.NextRunAtLT(until),
		routinetrigger.HasRoutineWith(routine.StatusEQ(domain.RoutineStatusActive), routine.DeletedAtIsNil(), routine.HasAssigneeWith(agent.DeletedAtIsNil())),
	).Order(routinetrigger.ByNextRunAt(), routinetrigger.ByID()).Limit(first).WithRoutine().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	var calendar upcoming
	for i, row := range rows {
		if schedule, err := scheduleOf(row); err == nil { // the condition of another says what is wrong with it
			calendar = append(calendar, &upcomingFire{at: *row.NextRunAt, place: i, trigger: row, schedule: schedule})
		}
	}
	heap.Init(&calendar)
	planned := []*model.PlannedFire{}
	for len(planned) < first && len(calendar) > 0 && calendar[0].at.Before(until) {
		next := calendar[0]
		planned = append(planned, &model.PlannedFire{At: next.at, Trigger: &model.ScheduleTrigger{RoutineTrigger: next.trigger}, Routine: next.trigger.Edges.Routine})
		if next.at = next.schedule.NextDue(next.at); next.at.IsZero() {
			heap.Pop(&calendar)
		} else {
			heap.Fix(&calendar, 0)
		}
	}
	return planned, nil
}

// upcomingFire is the next fire of a schedule. Of fires at one instant the one whose place is first comes first.
type upcomingFire struct {
	at       time.Time
	place    int
	trigger  *ent.RoutineTrigger
	schedule cron.Timing
}

// upcoming is a heap of the next fires of several schedules.
type upcoming []*upcomingFire

func (u upcoming) Len() int      { return len(u) }
func (u upcoming) Swap(i, j int) { u[i], u[j] = u[j], u[i] }
func (u upcoming) Less(i, j int) bool {
	if u[i].at.Equal(u[j].at) {
		return u[i].place < u[j].place
	}
	return u[i].at.Before(u[j].at)
}

// Push adds a fire, and Pop takes the last of the slice: container/heap calls them.
func (u *upcoming) Push(x any) { *u = append(*u, x.(*upcomingFire)) }

// Pop takes the last of the slice.
func (u *upcoming) Pop() any {
	last := (*u)[len(*u)-1]
	*u = (*u)[:len(*u)-1]
	return last
}
