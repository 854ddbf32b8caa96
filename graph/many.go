package graph

import (
	"context"
	"fmt"

	"entgo.io/contrib/entgql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/predicate"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/ent/run"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of a call about many records.
const (
	manyIDs  = 100  // that it names
	manyRuns = 1000 // that its filter selects
)

// checkIDs refuses a list of ids that is empty, too long, or names one twice.
func checkIDs(field string, ids []xid.ID) error {
	if len(ids) == 0 || len(ids) > manyIDs {
		return domain.RefuseField([]string{field}, domain.UserErrorCodeOutOfRange, "name 1 to %d", manyIDs)
	}
	seen := map[xid.ID]bool{}
	var problems []domain.FieldError
	for i, id := range ids {
		if seen[id] {
			problems = append(problems, domain.FieldError{Field: []string{field, fmt.Sprint(i)}, Code: domain.UserErrorCodeInvalid, Message: "is named twice"})
		}
		seen[id] = true
	}
	return domain.AsUserError(problems)
}

// inOrder puts rows into the order of ids, and refuses those that are not there or not the caller's.
func inOrder[T any](field, what string, ids []xid.ID, rows []*T, idOf func(*T) xid.ID) ([]*T, error) {
	byID := map[xid.ID]*T{}
	for _, row := range rows {
		byID[idOf(row)] = row
	}
	list := make([]*T, len(ids))
	var problems []domain.FieldError
	for i, id := range ids {
		if list[i] = byID[id]; list[i] == nil {
			problems = append(problems, domain.FieldError{Field: []string{field, fmt.Sprint(i)}, Code: domain.UserErrorCodeNotFound, Message: "there is no such " + what})
		}
	}
	return list, domain.AsUserError(problems)
}

// presentAgents finds agents that the caller sees and that are not deleted, in the order of their ids in the call.
func (r *Resolver) presentAgents(ctx context.Context, ids []xid.ID) ([]*ent.Agent, []store.AgentIn, error) {
	if err := checkIDs("agentIds", ids); err != nil {
		return nil, nil, err
	}
	rows, err := r.Reader.Agent.Query().Where(agent.IDIn(ids...), agent.DeletedAtIsNil()).All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("look for agents: %w", err)
	}
	rows, err = inOrder("agentIds", "agent", ids, rows, func(a *ent.Agent) xid.ID { return a.ID })
	if err != nil {
		return nil, nil, err
	}
	in := make([]store.AgentIn, len(rows))
	for i, a := range rows {
		in[i] = store.AgentIn{WorkspaceID: a.WorkspaceID, AgentID: a.ID}
	}
	return rows, in, nil
}

func (r *Resolver) pauseAgents(ctx context.Context, in model.PauseAgentsInput) ([]*ent.Agent, []xid.ID, error) {
	if err := checkTexts(in); err != nil {
		return []*ent.Agent{}, []xid.ID{}, err
	}
	return r.changeAgents(ctx, in.AgentIds, func(agents []store.AgentIn) ([]xid.ID, error) {
		return r.Store.PauseAgents(ctx, agents, valueOf(in.Note))
	})
}

func (r *Resolver) resumeAgents(ctx context.Context, in model.ResumeAgentsInput) ([]*ent.Agent, []xid.ID, error) {
	return r.changeAgents(ctx, in.AgentIds, func(agents []store.AgentIn) ([]xid.ID, error) { return r.Store.ResumeAgents(ctx, agents) })
}

// changeAgents changes agents that are there, and returns them with the ids of those that changed; nothing on an error.
func (r *Resolver) changeAgents(ctx context.Context, ids []xid.ID, change func([]store.AgentIn) ([]xid.ID, error)) ([]*ent.Agent, []xid.ID, error) {
	rows, agents, err := r.presentAgents(ctx, ids)
	if err != nil {
		return []*ent.Agent{}, []xid.ID{}, err
	}
	changed, err := change(agents)
	if err != nil {
		return []*ent.Agent{}, []xid.ID{}, err
	}
	return rows, append([]xid.ID{}, changed...), nil
}

// changeRoutines changes routines that are there, and returns them as they are then with the ids of those that changed; nothing on an
// error.
func (r *Resolver) changeRoutines(ctx context.Context, ids []xid.ID, change func(context.Context, []store.RoutineIn) ([]xid.ID, error)) ([]*ent.Routine, []xid.ID, error) {
	none, noIDs := []*ent.Routine{}, []xid.ID{}
	if err := checkIDs("routineIds", ids); err != nil {
		return none, noIDs, err
	}
	query := r.Reader.Routine.Query().Where(routine.IDIn(ids...), routine.DeletedAtIsNil())
	idOf := func(x *ent.Routine) xid.ID { return x.ID }
	rows, err := query.Clone().All(ctx)
	if err == nil {
		rows, err = inOrder("routineIds", "routine", ids, rows, idOf)
	}
	if err != nil {
		return none, noIDs, err
	}
	in := make([]store.RoutineIn, len(rows))
	for i, x := range rows {
		in[i] = store.RoutineIn{WorkspaceID: x.WorkspaceID, RoutineID: x.ID}
	}
	changed, err := change(ctx, in)
	if err != nil {
		return none, noIDs, err
	}
	if rows, err = query.All(ctx); err == nil {
		rows, err = inOrder("routineIds", "routine", ids, rows, idOf)
	}
	return rows, append(noIDs, changed...), err
}

// selectRuns are the oldest runs that a filter selects, at most limit, and whether there are more.
func (r *Resolver) selectRuns(ctx context.Context, workspaceID xid.ID, f *model.RunFilter, limit *int, of predicate.Run) (runs []store.RunOfAgent, more bool, err error) {
	n := valueOf(limit)
	if limit == nil {
		n = manyIDs
	}
	if n < 1 || n > manyRuns {
		return nil, false, domain.RefuseField([]string{"limit"}, domain.UserErrorCodeOutOfRange, "select 1 to %d runs", manyRuns)
	}
	if err := r.checkWorkspace(ctx, workspaceID); err != nil {
		return nil, false, err
	}
	p, err := pageOf(manyRuns, nil, &n, nil, nil)
	if err != nil {
		return nil, false, err
	}
	q := r.Reader.Run.Query().Where(run.WorkspaceID(workspaceID), of)
	if err := r.checkRunFilter(ctx, f, nil); err != nil {
		return nil, false, err
	}
	p.branches = branchesOfRuns(f)
	if err := r.filterRuns(func(c ...predicate.Run) { q.Where(c...) }, f); err != nil {
		return nil, false, err
	}
	oldest := ent.RunOrder{Direction: entgql.OrderDirectionAsc, Field: ent.RunOrderFieldRequestedAt}
	read, err := readPage(ctx, q, p, orderedBy(oldest.Direction, oldest.Field), func(x *ent.Run) ent.Cursor { return x.ToEdge(&oldest).Cursor }, func(*ent.RunQuery) {})
	if err != nil {
		return nil, false, fmt.Errorf("select runs: %w", err)
	}
	for _, x := range read.rows {
		runs = append(runs, store.RunOfAgent{RunID: x.ID, AgentID: x.AgentID})
	}
	return runs, read.info.HasNextPage, nil
}

func (r *Resolver) cancelRuns(ctx context.Context, in model.CancelRunsInput) (*model.CancelRunsPayload, error) {
	out := &model.CancelRunsPayload{Results: []*model.CancelledRun{}, DryRun: orTrue(in.DryRun)}
	once, err := idempotency(in, in.IdempotencyKey)
	if err != nil {
		return out, err
	}
	runs, more, err := r.selectRuns(ctx, in.WorkspaceID, in.Filter, in.Limit, run.StatusIn(domain.RunStatusQueued, domain.RunStatusClaimed))
	if err != nil {
		return out, err
	}
	done, err := r.Store.CancelRuns(ctx, store.ManyRuns{WorkspaceID: in.WorkspaceID, Runs: runs, More: more, Note: valueOf(in.Note), DryRun: out.DryRun, Idempotency: once})
	if err != nil {
		return out, err
	}
	out.More, out.Replayed = done.More, done.Replayed
	for _, x := range done.Results {
		out.Results = append(out.Results, &model.CancelledRun{RunID: x.RunID, Outcome: x.Became})
	}
	return out, nil
}

func (r *Resolver) retryRuns(ctx context.Context, in model.RetryRunsInput) (*model.RetryRunsPayload, error) {
	out := &model.RetryRunsPayload{Results: []*model.RetriedRun{}, DryRun: orTrue(in.DryRun)}
	once, err := idempotency(in, in.IdempotencyKey)
	if err != nil {
		return out, err
	}
	runs, more, err := r.selectRuns(ctx, in.WorkspaceID, in.Filter, in.Limit,
		run.Or(run.StatusIn(domain.RunStatusFailed, domain.RunStatusCancelled), run.And(run.StatusEQ(domain.RunStatusQueued), run.ParkedReasonNotNil())))
	if err != nil {
		return out, err
	}
	done, err := r.Store.RetryRuns(ctx, store.ManyRuns{WorkspaceID: in.WorkspaceID, Runs: runs, More: more, Note: valueOf(in.Note), DryRun: out.DryRun, Idempotency: once})
	if err != nil {
		return out, err
	}
	out.More, out.Replayed = done.More, done.Replayed
	for _, x := range done.Results {
		result := &model.RetriedRun{RunID: x.RunID, Outcome: x.Became}
		if x.Message != "" {
			result.Message = new(x.Message)
		}
		out.Results = append(out.Results, result)
	}
	if !out.DryRun {
		r.routeAgents(ctx, runs)
	}
	return out, nil
}

// routeAgents routes what was sent again to the agents of runs. It is committed: if routing fails, the dispatcher does it later.
func (r *Resolver) routeAgents(ctx context.Context, runs []store.RunOfAgent) {
	seen := map[xid.ID]bool{}
	var agents []xid.ID
	for _, x := range runs {
		if !seen[x.AgentID] {
			seen[x.AgentID] = true
			agents = append(agents, x.AgentID)
		}
	}
	if _, err := r.Store.Route(ctx, agents...); err != nil {
		r.Log.WarnContext(ctx, "wakeups not routed at once, the dispatcher will", "error", err)
	}
}
