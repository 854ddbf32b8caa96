package graph

import (
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/agentlane"
	"rouse.dev/rouse/ent/predicate"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/ent/routinerun"
	"rouse.dev/rouse/ent/run"
	"rouse.dev/rouse/ent/wakeuprequest"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// In every filter a list that is absent or null asks for nothing special, and an empty one lets nothing through.

// filterAgents adds the conditions of f, which may be nil.
func filterAgents(q *ent.AgentQuery, f *model.AgentFilter) error {
	if f == nil {
		return nil
	}
	if f.Status != nil {
		q.Where(agentStatusIn(f.Status))
	}
	if f.Role != nil {
		q.Where(agent.RoleIn(f.Role...))
	}
	if f.Search != nil && *f.Search != "" {
		q.Where(agent.NameContainsFold(*f.Search))
	}
	return checkText("filter.search", f.Search)
}

// agentStatusIn reads the lane: WORKING is IDLE with a live run.
func agentStatusIn(wanted []domain.AgentStatus) predicate.Agent {
	return func(s *sql.Selector) {
		lane := sql.Table(agentlane.Table)
		states := []*sql.Predicate{sql.False()}
		for _, status := range wanted {
			awake := sql.In(lane.C(agentlane.FieldStatus), domain.AgentStatusIdle, domain.AgentStatusWorking)
			switch status {
			case domain.AgentStatusIdle:
				states = append(states, sql.And(awake, sql.EQ(lane.C(agentlane.FieldRunning), 0)))
			case domain.AgentStatusWorking:
				states = append(states, sql.And(awake, sql.GT(lane.C(agentlane.FieldRunning), 0)))
			default:
				states = append(states, sql.EQ(lane.C(agentlane.FieldStatus), status))
			}
		}
		s.Where(sql.In(s.C(agent.FieldID), sql.Select(lane.C(agentlane.FieldID)).From(lane).Where(sql.Or(states...))))
	}
}

// scheduleStates is domain.ScheduleStateOf for a list of routines, as SQL: the number of the state in the order of its values.
var scheduleStates = `coalesce((SELECT min(CASE WHEN g.kind = 'SCHEDULE' AND g.error IS NOT NULL THEN 2 WHEN g.kind = 'SCHEDULE' AND g.enabled THEN 0 ` +
	`WHEN g.kind = 'SCHEDULE' THEN 3 WHEN g.kind = 'WEBHOOK' AND g.enabled THEN 1 ELSE 4 END) ` +
	`FROM routine_triggers g WHERE g.routine_id = {t}."id" AND g.deleted_at IS NULL), 5)`

// healthStates is how the newest fire of a routine that has ended went, as SQL.
const healthStates = `coalesce((SELECT CASE f.status WHEN 'FAILED' THEN 'FAILING' WHEN 'CANCELLED' THEN 'FAILING' WHEN 'SKIPPED' THEN 'SKIPPING' ELSE 'OK' END ` +
	`FROM routine_runs f WHERE f.routine_id = {t}."id" AND f.completed_at IS NOT NULL ORDER BY f.started_at DESC, f.id DESC LIMIT 1), 'UNTRIED')`

func filterRoutines(q *ent.RoutineQuery, f *model.RoutineFilter) error {
	if f == nil {
		return nil
	}
	if f.Status != nil {
		q.Where(routine.StatusIn(f.Status...))
	}
	if f.AssigneeID != nil {
		q.Where(routine.AssigneeID(*f.AssigneeID))
	}
	switch valueOf(f.Kind) {
	case model.RoutineKindHeavy:
		q.Where(routine.TaskTemplateNotNil())
	case model.RoutineKindLightweight:
		q.Where(routine.TaskTemplateIsNil())
	}
	if f.ScheduleState != nil {
		order := domain.ScheduleState("").Values()
		numbers := make([]int, len(f.ScheduleState))
		for i, state := range f.ScheduleState {
			numbers[i] = slices.Index(order, string(state))
		}
		q.Where(whereIn(scheduleStates, numbers))
	}
	if f.Health != nil {
		q.Where(whereIn(healthStates, f.Health))
	}
	if f.Search != nil && *f.Search != "" {
		q.Where(routine.NameContainsFold(*f.Search))
	}
	return checkText("filter.search", f.Search)
}

func filterFires(q *ent.RoutineRunQuery, f *model.RoutineRunFilter) {
	if f == nil {
		return
	}
	if f.RoutineID != nil {
		q.Where(routinerun.RoutineID(*f.RoutineID))
	}
	if f.Status != nil {
		q.Where(routinerun.StatusIn(f.Status...))
	}
	if f.Source != nil {
		q.Where(routinerun.SourceIn(f.Source...))
	}
	if f.Since != nil {
		q.Where(routinerun.StartedAtGTE(*f.Since))
	}
	if f.Until != nil {
		q.Where(routinerun.StartedAtLT(*f.Until))
	}
}

func filterWakeups(q *ent.WakeupRequestQuery, f *model.WakeupFilter) {
	if f == nil {
		return
	}
	if f.Status != nil {
		q.Where(wakeuprequest.StatusIn(f.Status...))
	}
	if f.Source != nil {
		q.Where(wakeuprequest.SourceIn(f.Source...))
	}
	if f.AgentID != nil {
		q.Where(wakeuprequest.AgentID(*f.AgentID))
	}
	if f.CausationID != nil {
		q.Where(wakeuprequest.CausationID(*f.CausationID))
	}
	if f.Since != nil {
		q.Where(wakeuprequest.RequestedAtGTE(*f.Since))
	}
	if f.Until != nil {
		q.Where(wakeuprequest.RequestedAtLT(*f.Until))
	}
	if f.EndReason != nil {
		q.Where(wakeuprequest.EndReasonIn(f.EndReason...))
	}
	if f.Recovered != nil {
		q.Where(wakeuprequest.Recovered(*f.Recovered))
	}
	if f.RoutineID != nil {
		q.Where(wakeuprequest.RoutineID(*f.RoutineID))
	}
	if f.TaskID != nil {
		q.Where(wakeuprequest.TaskID(*f.TaskID))
	}
}

// filterRuns adds the conditions of f, which may be nil; what it needs beside them checkRunFilter has seen.
func (r *Resolver) filterRuns(add func(...predicate.Run), f *model.RunFilter) error {
	if f == nil {
		return nil
	}
	if f.Status != nil {
		add(run.StatusIn(f.Status...))
	}
	if f.AgentID != nil {
		add(run.AgentID(*f.AgentID))
	}
	add(refersTo(f.TaskID, run.TaskID, run.TaskIDIsNil)...)
	add(refersTo(f.RoutineID, run.RoutineID, run.RoutineIDIsNil)...)
	if f.CausationID != nil {
		add(run.CausationID(*f.CausationID))
	}
	if f.Retrying != nil {
		retrying := run.ParkedReasonIn(retryReasons...)
		if !*f.Retrying {
			retrying = run.Or(run.ParkedReasonIsNil(), run.ParkedReasonNotIn(retryReasons...))
		}
		add(retrying)
	}
	if f.Since != nil {
		add(run.RequestedAtGTE(*f.Since))
	}
	if f.Until != nil {
		add(run.RequestedAtLT(*f.Until))
	}
	if err := filterRunsMore(add, f); err != nil || f.TerminalShape == nil {
		return err
	}
	activated := r.Store.ActivatedAt()
	shapes := []predicate.Run{constant(false)}
	for _, shape := range f.TerminalShape {
		shapes = append(shapes, shapeIs(shape, activated))
	}
	add(run.StatusIn(domain.RunStatusFinished, domain.RunStatusFailed, domain.RunStatusCancelled), run.Or(shapes...))
	return nil
}

// retryReasons are the reasons for parking that mean a planned retry.
var retryReasons = []domain.ParkedReason{domain.ParkedReasonBackoff, domain.ParkedReasonRateLimit}

// shapeIs is domain.ShapeOf as a condition on ended runs.
func shapeIs(shape domain.TerminalShape, activated *time.Time) predicate.Run {
	if shape == domain.TerminalShapePreActivation {
		if activated == nil {
			return constant(true)
		}
		return run.RequestedAtLT(*activated)
	}
	if activated == nil {
		return constant(false)
	}
	session := run.And(run.SessionIDNotNil(), run.SessionIDNEQ(""))
	none := run.Or(run.SessionIDIsNil(), run.SessionID(""))
	skipped, notSkipped := run.OutcomeIn(domain.SkipOutcomes...), run.Or(run.OutcomeIsNil(), run.OutcomeNotIn(domain.SkipOutcomes...))
	processed, notProcessed := run.Outcome(domain.OutcomeProcessed), run.Or(run.OutcomeIsNil(), run.OutcomeNEQ(domain.OutcomeProcessed))
	finished, failed, cancelled := run.StatusEQ(domain.RunStatusFinished), run.StatusEQ(domain.RunStatusFailed), run.StatusEQ(domain.RunStatusCancelled)
	is := map[domain.TerminalShape]predicate.Run{
		domain.TerminalShapeLaunchedCompleted: run.And(finished, processed, session),
		domain.TerminalShapeLaunchedFailed:    run.And(run.Or(failed, cancelled), session),
		domain.TerminalShapeSilentSuccess:     run.And(finished, processed, none),
		domain.TerminalShapeUnlaunchedSkipped: run.And(none, run.Or(run.And(finished, skipped), run.And(cancelled, run.EndReasonNotNil()))),
		domain.TerminalShapeUnlaunchedFailed:  run.And(failed, none),
		domain.TerminalShapeUnclassified: run.Or(
			run.And(finished, session, notProcessed),
			run.And(finished, none, notProcessed, notSkipped),
			run.And(cancelled, none, run.EndReasonIsNil()),
		),
	}[shape]
	return run.And(run.RequestedAtGTE(*activated), is)
}

// refersTo is the condition on a column that may be empty. An id asks for rows that refer to it, null for rows that
// refer to nothing. An absent value is no condition.
func refersTo[P any](o graphql.Omittable[*xid.ID], is func(xid.ID) P, none func() P) []P {
	switch id := o.Value(); {
	case !o.IsSet():
		return nil
	case id == nil:
		return []P{none()}
	default:
		return []P{is(*id)}
	}
}

func constant(v bool) predicate.Run {
	return func(s *sql.Selector) {
		text := "FALSE"
		if v {
			text = "TRUE"
		}
		s.Where(sql.ExprP(text))
	}
}
