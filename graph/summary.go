package graph

import (
	"context"
	"fmt"
	"strings"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/continuationsummary"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// pageOfSummaries lists an agent's summaries in the order they were first written.
func (r *Resolver) pageOfSummaries(ctx context.Context, agentID xid.ID, after *ent.Cursor, first *int) (*ent.ContinuationSummaryConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	edge := func(x *ent.ContinuationSummary) *ent.ContinuationSummaryEdge { return x.ToEdge(nil) }
	read, err := readPage(ctx, r.Reader.ContinuationSummary.Query().Where(continuationsummary.AgentID(agentID)), p, inOrderMade, func(x *ent.ContinuationSummary) ent.Cursor { return edge(x).Cursor })
	if err != nil {
		return nil, fmt.Errorf("list summaries: %w", err)
	}
	return &ent.ContinuationSummaryConnection{Edges: edges(read.rows, edge), PageInfo: read.info, TotalCount: read.total}, nil
}

// summaryOf is the summary of a routine's chain: that of its present assignee.
func summaryOf(ctx context.Context, routine *ent.Routine) (*ent.ContinuationSummary, error) {
	chain, err := load(ctx).summariesOf.Load(ctx, routine.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range chain {
		if s.AgentID == routine.AssigneeID {
			return s, nil
		}
	}
	return nil, nil
}

// readSummaries reads the summaries of routines, whichever agents wrote them.
func (r *Resolver) readSummaries(ctx context.Context, routines []xid.ID) ([]*ent.ContinuationSummary, error) {
	scopes := make([]string, len(routines))
	for i, id := range routines {
		scopes[i] = domain.RoutineScope(string(id))
	}
	return r.Reader.ContinuationSummary.Query().Where(continuationsummary.ScopeIn(scopes...)).Order(continuationsummary.ByID()).All(ctx)
}

// routineOfSummary is the routine that a summary's scope names.
func routineOfSummary(s *ent.ContinuationSummary) xid.ID {
	return xid.ID(strings.TrimPrefix(s.Scope, domain.RoutineScope("")))
}
