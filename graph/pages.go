package graph

import (
	"context"
	"fmt"
	"math"

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

func (r *Resolver) pageOfRuns(ctx context.Context, of predicate.Run, f *model.RunFilter, by *model.RunOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.RunConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	q := r.Reader.Run.Query().Where(of)
	if err == nil {
		err = r.checkRunFilter(ctx, f, by)
	}
	if err == nil {
		p.branches, err = branchesOfRuns(f), r.filterRuns(func(c ...predicate.Run) { q.Where(c...) }, f)
	}
	if err != nil {
		return nil, err
	}
	usual, own := orderOfRuns(by)
	order := orderedBy(usual.Direction, usual.Field)
	edge := func(x *ent.Run) *ent.RunEdge { return x.ToEdge(&usual) }
	if own.isSet() {
		q.Where(own.listed)
		order, edge = own.ordering, func(x *ent.Run) *ent.RunEdge { return &ent.RunEdge{Node: x, Cursor: own.cursor(x.ID, x.Value)} }
	}
	read, err := readPage(ctx, q, p, order, func(x *ent.Run) ent.Cursor { return edge(x).Cursor }, func(q *ent.RunQuery) {
		narrowed(ctx, q, "edges", "node")
		if own.isSet() {
			q.Modify(own.shown)
		}
	})
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

func (r *Resolver) pageOfRoutines(ctx context.Context, of predicate.Routine, f *model.RoutineFilter, by *model.RoutineOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.RoutineConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	q := r.Reader.Routine.Query().Where(of, routine.DeletedAtIsNil())
	if err == nil {
		err = filterRoutines(q, f)
	}
	if err != nil {
		return nil, err
	}
	usual, own := orderOfRoutines(by)
	order := orderedBy(usual.Direction, usual.Field)
	edge := func(x *ent.Routine) *ent.RoutineEdge { return x.ToEdge(&usual) }
	if own.isSet() {
		order, edge = own.ordering, func(x *ent.Routine) *ent.RoutineEdge {
			return &ent.RoutineEdge{Node: x, Cursor: own.cursor(x.ID, x.Value)}
		}
	}
	read, err := readPage(ctx, q, p, order, func(x *ent.Routine) ent.Cursor { return edge(x).Cursor }, func(q *ent.RoutineQuery) {
		if own.isSet() {
			q.Modify(own.shown)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list routines: %w", err)
	}
	return &ent.RoutineConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}

func (r *Resolver) pageOfAgents(ctx context.Context, workspaceID xid.ID, f *model.AgentFilter, by *model.AgentOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.AgentConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	q := r.Reader.Agent.Query().Where(agent.WorkspaceID(workspaceID), agent.DeletedAtIsNil())
	if err == nil {
		err = filterAgents(q, f)
	}
	if err != nil {
		return nil, err
	}
	usual, own := orderOfAgents(by)
	order := orderedBy(usual.Direction, usual.Field)
	edge := func(x *ent.Agent) *ent.AgentEdge { return x.ToEdge(&usual) }
	if own.isSet() {
		order, edge = own.ordering, func(x *ent.Agent) *ent.AgentEdge { return &ent.AgentEdge{Node: x, Cursor: own.cursor(x.ID, x.Value)} }
	}
	read, err := readPage(ctx, q, p, order, func(x *ent.Agent) ent.Cursor { return edge(x).Cursor }, func(q *ent.AgentQuery) {
		if own.isSet() {
			q.Modify(own.shown)
		}
	})
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
	return &model.APITokenConnection{PageInfo: &read.info, TotalCount: read.total, Edges: edges(read.rows, func(x *ent.ApiToken) *model.APITokenEdge {
		return &model.APITokenEdge{Cursor: at(x), Node: &model.ApiToken{ApiToken: x}}
	})}, nil
}

// pageOfEvents lists a run's events, oldest first. They are numbered without gaps, so that those beside a cursor are there.
func (r *Resolver) pageOfEvents(ctx context.Context, runID xid.ID, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*model.RunEventConnection, error) {
	p, err := pageOf(eventsMax, after, first, before, last)
	if err != nil {
		return nil, err
	}
	from, to, err := r.between(ctx, runID, after, before)
	if err != nil {
		return nil, err
	}
	p.after, p.before = eventPlace(runID, from.event).start(), nil
	span := reads.EventSpan{After: from.event, Before: math.MaxInt64, Newest: p.last != nil}
	if before != nil {
		p.before, span.Before = new(eventPlace(runID, to.event).cursor()), to.event
	}
	if p.last != nil && before != nil { // the row of the start is read as well
		span.Before++
	} else if p.last == nil {
		span.After = max(from.event-1, 0)
	}
	events, err := r.Store.RunEvents(ctx, runID, span, p.reach())
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	at := func(e reads.RunEvent) ent.Cursor { return eventPlace(runID, e.Seq).cursor() }
	events, _, more := cut(p, events, at)
	info := infoOf(p, events, at, p.start() != nil, more)
	out := &model.RunEventConnection{Edges: []*model.RunEventEdge{}, PageInfo: &info}
	if asksFor(ctx, "totalCount") {
		head, err := load(ctx).heads.Load(ctx, runID)
		if err != nil {
			return nil, err
		}
		out.TotalCount = int(head.event)
	}
	for _, e := range events {
		node, err := eventOf(e, eventPlace(runID, e.Seq))
		if err != nil {
			return nil, err
		}
		out.Edges = append(out.Edges, &model.RunEventEdge{Cursor: node.Cursor, Node: node})
	}
	return out, nil
}

// between reads the cursors of a page of a run's events or lines, with both halves.
func (r *Resolver) between(ctx context.Context, runID xid.ID, after, before *ent.Cursor) (from, to position, err error) {
	for _, c := range []struct {
		cursor *ent.Cursor
		into   *position
	}{{after, &from}, {before, &to}} {
		if *c.into, err = positionOf(c.cursor, runID); err != nil {
			return from, to, err
		}
		if *c.into, err = r.found(ctx, *c.into); err != nil {
			return from, to, fmt.Errorf("find the place of a cursor: %w", err)
		}
	}
	return from, to, nil
}

// pageOfLines lists the lines of a run's log that the filter lets through, in order.
func (r *Resolver) pageOfLines(ctx context.Context, runID xid.ID, after *ent.Cursor, first *int, before *ent.Cursor, last *int, f *model.RunLogFilter) (*model.RunLogConnection, error) {
	p, err := pageOf(logsMax, after, first, before, last)
	if err != nil {
		return nil, err
	}
	filter, err := logFilter(f)
	if err != nil {
		return nil, err
	}
	from, to, err := r.between(ctx, runID, after, before)
	if err != nil {
		return nil, err
	}
	span := reads.LogSpan{After: from.line, Before: reads.LogEnd, Newest: p.last != nil}
	p.after, p.before = linePlace(runID, from.line).start(), nil
	if before != nil {
		p.before, span.Before = new(linePlace(runID, to.line).cursor()), to.line
	}
	if p.last == nil { // the row of the start is read as well
		span.After = from.line.JustBefore()
	} else if before != nil {
		span.Before = to.line.JustBehind()
	}
	lines, err := r.Store.LogIn(ctx, runID, filter, span, p.reach())
	if err != nil {
		return nil, fmt.Errorf("list log lines: %w", err)
	}
	at := func(l reads.LogRow) ent.Cursor { return linePlace(runID, l.LogPosition).cursor() }
	lines, met, more := cut(p, lines, at)
	if p.start() != nil && !met { // the filter hides the line of the cursor
		if met, err = r.linesBeside(ctx, runID, filter, p, from, to); err != nil {
			return nil, err
		}
	}
	info := infoOf(p, lines, at, met, more)
	out := &model.RunLogConnection{PageInfo: &info, Edges: edges(lines, func(l reads.LogRow) *model.RunLogEdge {
		node := lineOf(l, linePlace(runID, l.LogPosition))
		return &model.RunLogEdge{Cursor: node.Cursor, Node: node}
	})}
	if asksFor(ctx, "totalCount") {
		if out.TotalCount, err = r.Store.CountLog(ctx, runID, filter); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// linesBeside says whether there are lines on the other side of the place where a page starts.
func (r *Resolver) linesBeside(ctx context.Context, runID xid.ID, filter reads.LogFilter, p page, from, to position) (bool, error) {
	beside, err := r.Store.LogIn(ctx, runID, filter, reads.LogSpan{Before: reads.LogEnd, Newest: p.last != nil}, 1)
	if err != nil || len(beside) == 0 {
		return false, wrap("look beside the start of a page of log lines", err)
	}
	if p.last != nil {
		return to.line.UpTo(beside[0].LogPosition), nil
	}
	return beside[0].UpTo(from.line), nil
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

// wrap says what was being done; nil stays nil.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
