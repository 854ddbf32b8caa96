package graph

import (
	"context"
	"fmt"

	"entgo.io/contrib/entgql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/apitoken"
	"rouse.dev/rouse/ent/predicate"
	"rouse.dev/rouse/ent/routine"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Orders of history; the id decides between equal instants.
var (
	newestRuns    = ent.RunOrder{Direction: entgql.OrderDirectionDesc, Field: ent.RunOrderFieldRequestedAt}
	newestWakeups = ent.WakeupRequestOrder{Direction: entgql.OrderDirectionDesc, Field: ent.WakeupRequestOrderFieldRequestedAt}
	oldestFirst   = ent.WakeupRequestOrder{Direction: entgql.OrderDirectionAsc, Field: ent.WakeupRequestOrderFieldRequestedAt}
	newestFires   = ent.RoutineRunOrder{Direction: entgql.OrderDirectionDesc, Field: ent.RoutineRunOrderFieldStartedAt}
)

// orderOf is the kind of the cursors of a list of records by name or by age.
func orderOf(given, isName bool) order {
	switch {
	case !given:
		return byID
	case isName:
		return byText
	}
	return byTime
}

func (r *Resolver) pageOfRuns(ctx context.Context, of predicate.Run, f *model.RunFilter, by *ent.RunOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.RunConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	if err == nil {
		err = p.check(byTime)
	}
	q := r.Reader.Run.Query().Where(of)
	if err == nil {
		err = r.filterRuns(q, f)
	}
	if err != nil {
		return nil, err
	}
	if by == nil {
		by = &newestRuns
	}
	return q.Paginate(forPage(ctx), p.after, p.first, p.before, p.last, ent.WithRunOrder(by))
}

func (r *Resolver) pageOfWakeups(ctx context.Context, of predicate.WakeupRequest, f *model.WakeupFilter, by *ent.WakeupRequestOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.WakeupRequestConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	if err == nil {
		err = p.check(byTime)
	}
	if err != nil {
		return nil, err
	}
	q := r.Reader.WakeupRequest.Query().Where(of)
	filterWakeups(q, f)
	if by == nil {
		by = &newestWakeups
	}
	return q.Paginate(forPage(ctx), p.after, p.first, p.before, p.last, ent.WithWakeupRequestOrder(by))
}

func (r *Resolver) pageOfRoutines(ctx context.Context, of predicate.Routine, f *model.RoutineFilter, by *ent.RoutineOrder, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.RoutineConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	if err == nil {
		err = p.check(orderOf(by != nil, by != nil && by.Field.String() == ent.RoutineOrderFieldName.String()))
	}
	q := r.Reader.Routine.Query().Where(of, routine.DeletedAtIsNil())
	if err == nil {
		err = filterRoutines(q, f)
	}
	if err != nil {
		return nil, err
	}
	return q.Paginate(forPage(ctx), p.after, p.first, p.before, p.last, ent.WithRoutineOrder(by))
}

func (r *Resolver) pageOfFires(ctx context.Context, of predicate.RoutineRun, f *model.RoutineRunFilter, after *ent.Cursor, first *int, before *ent.Cursor, last *int) (*ent.RoutineRunConnection, error) {
	p, err := pageOf(pageMax, after, first, before, last)
	if err == nil {
		err = p.check(byTime)
	}
	if err != nil {
		return nil, err
	}
	q := r.Reader.RoutineRun.Query().Where(of)
	filterFires(q, f)
	return q.Paginate(forPage(ctx), p.after, p.first, p.before, p.last, ent.WithRoutineRunOrder(&newestFires))
}

// pageOfTokens lists tokens in the order they were made; their ids sort so.
func (r *Resolver) pageOfTokens(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, first *int) (*model.APITokenConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err == nil {
		err = p.check(byID)
	}
	if err != nil {
		return nil, err
	}
	q := r.Reader.ApiToken.Query().Where(apitoken.WorkspaceID(workspaceID))
	if after != nil {
		q.Where(apitoken.IDGT(after.ID))
	}
	tokens, err := q.Order(apitoken.ByID()).Limit(*p.first + 1).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	out := &model.APITokenConnection{Edges: []*model.APITokenEdge{}}
	for _, t := range tokens[:min(len(tokens), *p.first)] {
		out.Edges = append(out.Edges, &model.APITokenEdge{Cursor: ent.Cursor{ID: t.ID}, Node: &model.ApiToken{ApiToken: t}})
	}
	out.PageInfo = pageInfo(after, len(tokens) > *p.first, len(out.Edges), func(i int) ent.Cursor { return out.Edges[i].Cursor })
	return out, nil
}

func (r *Resolver) pageOfEvents(ctx context.Context, runID xid.ID, after *ent.Cursor, first *int) (*model.RunEventConnection, error) {
	p, err := pageOf(eventsMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	at, err := positionOf(after, runID)
	if err != nil {
		return nil, err
	}
	events, err := r.Store.RunEventsAfter(ctx, runID, at.event, *p.first+1)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	out := &model.RunEventConnection{Edges: []*model.RunEventEdge{}}
	for _, e := range events[:min(len(events), *p.first)] {
		node, err := eventOf(e, position{run: runID}.withEvent(e))
		if err != nil {
			return nil, err
		}
		out.Edges = append(out.Edges, &model.RunEventEdge{Cursor: node.Cursor, Node: node})
	}
	out.PageInfo = pageInfo(after, len(events) > *p.first, len(out.Edges), func(i int) ent.Cursor { return out.Edges[i].Cursor })
	return out, nil
}

func (r *Resolver) pageOfLines(ctx context.Context, runID xid.ID, after *ent.Cursor, first *int, f *model.RunLogFilter) (*model.RunLogConnection, error) {
	p, err := pageOf(logsMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	at, err := positionOf(after, runID)
	if err != nil {
		return nil, err
	}
	filter, err := logFilter(f)
	if err != nil {
		return nil, err
	}
	lines, err := r.Store.Log(ctx, runID, filter, at.line, *p.first+1)
	if err != nil {
		return nil, fmt.Errorf("list log lines: %w", err)
	}
	out := &model.RunLogConnection{Edges: []*model.RunLogEdge{}}
	for _, l := range lines[:min(len(lines), *p.first)] {
		node := lineOf(l, position{run: runID}.withLine(l))
		out.Edges = append(out.Edges, &model.RunLogEdge{Cursor: node.Cursor, Node: node})
	}
	out.PageInfo = pageInfo(after, len(lines) > *p.first, len(out.Edges), func(i int) ent.Cursor { return out.Edges[i].Cursor })
	return out, nil
}

func logFilter(f *model.RunLogFilter) (store.LogFilter, error) {
	if f == nil {
		return store.LogFilter{}, nil
	}
	if f.Attempt != nil && *f.Attempt < 1 {
		return store.LogFilter{}, badInput("attempts are counted from 1, not from %d", *f.Attempt)
	}
	return store.LogFilter{Streams: f.Stream, Attempt: valueOf(f.Attempt), Search: valueOf(f.Search)}, checkText("filter.search", f.Search)
}

// pageInfo describes a page read from the start on.
func pageInfo(after *ent.Cursor, more bool, n int, cursor func(int) ent.Cursor) *ent.PageInfo {
	info := &ent.PageInfo{HasNextPage: more, HasPreviousPage: after != nil}
	if n > 0 {
		info.StartCursor, info.EndCursor = new(cursor(0)), new(cursor(n-1))
	}
	return info
}
