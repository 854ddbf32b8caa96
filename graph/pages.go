package graph

import (
	"context"
	"fmt"

	"entgo.io/contrib/entgql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/ent/apitoken"
	"rouse.dev/rouse/ent/predicate"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// Orders of history; the id decides between equal instants.
var (
	newestRuns    = ent.RunOrder{Direction: entgql.OrderDirectionDesc, Field: ent.RunOrderFieldRequestedAt}
	newestWakeups = ent.WakeupRequestOrder{Direction: entgql.OrderDirectionDesc, Field: ent.WakeupRequestOrderFieldRequestedAt}
	oldestFirst   = ent.WakeupRequestOrder{Direction: entgql.OrderDirectionAsc, Field: ent.WakeupRequestOrderFieldRequestedAt}
	newestFires   = ent.RoutineRunOrder{Direction: entgql.OrderDirectionDesc, Field: ent.RoutineRunOrderFieldStartedAt}
)

func (r *Resolver) pageOfRuns(ctx context.Context, of predicate.Run, f *model.RunFilter, by *ent.RunOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.RunConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	q := r.Reader.Run.Query().Where(of)
	if err == nil {
		p.branches, err = branchesOfRuns(f), r.filterRuns(q, f)
	}
	if err != nil {
		return nil, err
	}
	if by == nil {
		by = &newestRuns
	}
	edge := func(x *ent.Run) *ent.RunEdge { return x.ToEdge(by) }
	read, err := readPage(ctx, q, p, orderedBy(by.Direction, by.Field), func(x *ent.Run) ent.Cursor { return edge(x).Cursor },
		func(q *ent.RunQuery) { narrowed(ctx, q, "edges", "node") })
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return &ent.RunConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}

func (r *Resolver) pageOfWakeups(ctx context.Context, workspaceID xid.ID, of predicate.WakeupRequest, f *model.WakeupFilter, by *ent.WakeupRequestOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.WakeupRequestConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	if err != nil {
		return nil, err
	}
	q := r.Reader.WakeupRequest.Query().Where(of)
	filterWakeups(q, f)
	p.branches = branchesOfWakeups(workspaceID, f)
	if by == nil {
		by = &newestWakeups
	}
	edge := func(x *ent.WakeupRequest) *ent.WakeupRequestEdge { return x.ToEdge(by) }
	read, err := readPage(ctx, q, p, orderedBy(by.Direction, by.Field), func(x *ent.WakeupRequest) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list wakeup requests: %w", err)
	}
	return &ent.WakeupRequestConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}

func (r *Resolver) pageOfRoutines(ctx context.Context, of predicate.Routine, f *model.RoutineFilter, by *ent.RoutineOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.RoutineConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	q := r.Reader.Routine.Query().Where(of, routine.DeletedAtIsNil())
	if err == nil {
		err = filterRoutines(q, f)
	}
	if err != nil {
		return nil, err
	}
	if by == nil {
		by = ent.DefaultRoutineOrder
	}
	edge := func(x *ent.Routine) *ent.RoutineEdge { return x.ToEdge(by) }
	read, err := readPage(ctx, q, p, orderedBy(by.Direction, by.Field), func(x *ent.Routine) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list routines: %w", err)
	}
	return &ent.RoutineConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}

func (r *Resolver) pageOfAgents(ctx context.Context, workspaceID xid.ID, f *model.AgentFilter, by *ent.AgentOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.AgentConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	q := r.Reader.Agent.Query().Where(agent.WorkspaceID(workspaceID), agent.DeletedAtIsNil())
	if err == nil {
		err = filterAgents(q, f)
	}
	if err != nil {
		return nil, err
	}
	if by == nil {
		by = ent.DefaultAgentOrder
	}
	edge := func(x *ent.Agent) *ent.AgentEdge { return x.ToEdge(by) }
	read, err := readPage(ctx, q, p, orderedBy(by.Direction, by.Field), func(x *ent.Agent) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	return &ent.AgentConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}

// pageOfWorkspaces lists workspaces in the order they were made.
func (r *Resolver) pageOfWorkspaces(ctx context.Context, after *ent.Cursor, first *int) (*ent.WorkspaceConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	edge := func(x *ent.Workspace) *ent.WorkspaceEdge { return x.ToEdge(nil) }
	read, err := readPage(ctx, r.Reader.Workspace.Query(), p, inOrderMade, func(x *ent.Workspace) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	return &ent.WorkspaceConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}

func (r *Resolver) pageOfFires(ctx context.Context, of predicate.RoutineRun, f *model.RoutineRunFilter, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.RoutineRunConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	if err != nil {
		return nil, err
	}
	q := r.Reader.RoutineRun.Query().Where(of)
	filterFires(q, f)
	p.branches = branchesOfFires(f)
	edge := func(x *ent.RoutineRun) *ent.RoutineRunEdge { return x.ToEdge(&newestFires) }
	read, err := readPage(ctx, q, p, orderedBy(newestFires.Direction, newestFires.Field), func(x *ent.RoutineRun) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list fires: %w", err)
	}
	return &ent.RoutineRunConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}

// pageOfTokens lists tokens in the order they were made; their ids sort so.
func (r *Resolver) pageOfTokens(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, first *int) (*model.APITokenConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	at := func(x *ent.ApiToken) ent.Cursor { return idCursor(x.ID) }
	read, err := readPage(ctx, r.Reader.ApiToken.Query().Where(apitoken.WorkspaceID(workspaceID)), p, inOrderMade, at)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return &model.APITokenConnection{PageInfo: &read.info, Edges: edges(read.rows, func(x *ent.ApiToken) *model.APITokenEdge {
		return &model.APITokenEdge{Cursor: at(x), Node: &model.ApiToken{ApiToken: x}}
	})}, nil
}

func (r *Resolver) pageOfEvents(ctx context.Context, runID xid.ID, after *ent.Cursor, first *int) (*model.RunEventConnection, error) {
	p, err := pageOf(eventsMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	from, err := positionOf(after, runID)
	if err != nil {
		return nil, err
	}
	if from, err = r.found(ctx, from); err != nil {
		return nil, fmt.Errorf("find the place of a cursor: %w", err)
	}
	p.after = eventPlace(runID, from.event).start()
	events, err := r.Store.RunEventsAfter(ctx, runID, max(from.event-1, 0), p.reach())
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	at := func(e reads.RunEvent) ent.Cursor { return eventPlace(runID, e.Seq).cursor() }
	events, _, more := cut(p, events, at)
	info := infoOf(p, events, at, p.after != nil, more) // a run keeps all its events: those up to the cursor's are there
	out := &model.RunEventConnection{Edges: []*model.RunEventEdge{}, PageInfo: &info}
	for _, e := range events {
		node, err := eventOf(e, eventPlace(runID, e.Seq))
		if err != nil {
			return nil, err
		}
		out.Edges = append(out.Edges, &model.RunEventEdge{Cursor: node.Cursor, Node: node})
	}
	return out, nil
}

func (r *Resolver) pageOfLines(ctx context.Context, runID xid.ID, after *ent.Cursor, first *int, f *model.RunLogFilter) (*model.RunLogConnection, error) {
	p, err := pageOf(logsMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	from, err := positionOf(after, runID)
	if err != nil {
		return nil, err
	}
	filter, err := logFilter(f)
	if err != nil {
		return nil, err
	}
	if from, err = r.found(ctx, from); err != nil {
		return nil, fmt.Errorf("find the place of a cursor: %w", err)
	}
	p.after = linePlace(runID, from.line).start()
	lines, err := r.Store.Log(ctx, runID, filter, from.line.JustBefore(), p.reach())
	if err != nil {
		return nil, fmt.Errorf("list log lines: %w", err)
	}
	at := func(l reads.LogRow) ent.Cursor { return linePlace(runID, l.LogPosition).cursor() }
	lines, met, more := cut(p, lines, at)
	if p.after != nil && !met { // the filter hides the line of the cursor
		oldest, err := r.Store.Log(ctx, runID, filter, reads.LogPosition{}, 1)
		if err != nil {
			return nil, fmt.Errorf("look before the start of a page of log lines: %w", err)
		}
		met = len(oldest) > 0 && oldest[0].UpTo(from.line)
	}
	info := infoOf(p, lines, at, met, more)
	return &model.RunLogConnection{PageInfo: &info, Edges: edges(lines, func(l reads.LogRow) *model.RunLogEdge {
		node := lineOf(l, linePlace(runID, l.LogPosition))
		return &model.RunLogEdge{Cursor: node.Cursor, Node: node}
	})}, nil
}

func logFilter(f *model.RunLogFilter) (reads.LogFilter, error) {
	if f == nil {
		return reads.LogFilter{}, nil
	}
	if f.Attempt != nil && *f.Attempt < 1 {
		return reads.LogFilter{}, badInput("attempts are counted from 1, not from %d", *f.Attempt)
	}
	return reads.LogFilter{Streams: f.Stream, Attempt: valueOf(f.Attempt), Search: valueOf(f.Search)}, checkText("filter.search", f.Search)
}
