package graph

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/ent/predicate"
	"rouse.dev/rouse/ent/run"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
)

// Bounds of filters of runs.
const (
	filterAgentsMax   = 100
	filterOutcomesMax = 20
	filterPeriod      = 31 * 24 * time.Hour // of what no index leads to
)

// checkRunFilter refuses a filter that would read a history of any length: what no index leads to needs a period that one does.
func (r *Resolver) checkRunFilter(ctx context.Context, f *model.RunFilter, by *model.RunOrder) error {
	switch {
	case f == nil:
		return nil
	case len(f.AgentIds) > filterAgentsMax:
		return badField("agentIds", "at most %d agents are listed at once, %d were given: ask several times", filterAgentsMax, len(f.AgentIds))
	case len(f.Outcome) > filterOutcomesMax:
		return badField("outcome", "at most %d outcomes are listed at once, %d were given: ask several times", filterOutcomesMax, len(f.Outcome))
	}
	if f.ProjectID != nil && idOf(f.TaskID.Value()) == "" {
		if err := r.needsPeriod(ctx, f, "projectId", "no index leads from a project to its runs", "or name a task by taskId"); err != nil {
			return err
		}
	}
	if f.MinCost == nil {
		return nil
	}
	if cost, err := domain.ParseMoney(*f.MinCost); err != nil || cost <= 0 {
		return badField("minCost", "must be a number of US dollars above 0 with at most six decimals")
	}
	if by != nil && by.Field == model.RunOrderFieldCost {
		return nil
	}
	return r.needsPeriod(ctx, f, "minCost", "runs are found by their cost in the order of cost alone", "or order by COST")
}

// needsPeriod refuses a field of a filter without a period that bounds what is read.
func (r *Resolver) needsPeriod(ctx context.Context, f *model.RunFilter, field, because, instead string) error {
	until := f.Until
	if until == nil {
		now, err := load(ctx).now()
		if err != nil {
			return err
		}
		until = &now
	}
	if f.Since == nil || until.Sub(*f.Since) > filterPeriod {
		return badField(field, "needs since, at most %d days before until (now by default), because %s: give a period, %s", int(filterPeriod.Hours()/24), because, instead)
	}
	return nil
}

// badField refuses a field of the argument filter.
func badField(field, format string, args ...any) error {
	return &Error{Code: CodeBadInput, Message: "filter." + field + ": " + fmt.Sprintf(format, args...), Extensions: map[string]any{"field": []string{"filter", field}}}
}

// filterRunsMore adds the conditions of f on what a run was for, how it went and what it cost.
func filterRunsMore(add func(...predicate.Run), f *model.RunFilter) error {
	if f.AgentIds != nil {
		add(run.AgentIDIn(f.AgentIds...))
	}
	if f.Source != nil {
		add(run.SourceIn(f.Source...))
	}
	if f.WakeClass != nil {
		add(run.WakeClassEQ(*f.WakeClass))
	}
	if f.ErrorCode != nil {
		add(run.ErrorCodeIn(f.ErrorCode...))
	}
	if f.Outcome != nil {
		for i := range f.Outcome {
			if err := checkText("filter.outcome", &f.Outcome[i]); err != nil {
				return err
			}
		}
		add(run.OutcomeIn(f.Outcome...))
	}
	if f.ProjectID != nil {
		add(runWhere(`(SELECT k.project_id FROM tasks k WHERE k.id = {t}."task_id") = ?`, f.ProjectID.String()))
	}
	if f.MinCost != nil {
		add(runWhere(`{t}."cost_usd" > 0 AND {t}."cost_usd" >= ?::numeric`, *f.MinCost))
	}
	if f.Hold == nil {
		return nil
	}
	reasons, err := parkedBy(f.Hold)
	if err != nil {
		return err
	}
	add(run.StatusEQ(domain.RunStatusQueued), run.ParkedReasonIn(reasons...))
	return nil
}

// parkedBy are the reasons for parking behind holds.
func parkedBy(holds []domain.QueueHold) ([]domain.ParkedReason, error) {
	reasons := []domain.ParkedReason{}
	for _, hold := range holds {
		reason, parked := domain.ParkedBy(hold)
		if !parked {
			return nil, badField("hold", "%s is found at the instant of the question, and no run is stored with it: list QUEUED runs, and read waiting", hold)
		}
		reasons = append(reasons, reason)
	}
	return reasons, nil
}
