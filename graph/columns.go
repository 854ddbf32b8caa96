package graph

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/run"
)

// runColumns are the columns of a run that its fields show, or that their resolvers read. A field that is not here may read
// any, so that a run with such a field is read whole.
var runColumns = map[string]string{
	"__typename":        run.FieldID,
	"id":                run.FieldID,
	"causationId":       run.FieldCausationID,
	"revision":          run.FieldRevision,
	"source":            run.FieldSource,
	"wakeClass":         run.FieldWakeClass,
	"status":            run.FieldStatus,
	"coalescedCount":    run.FieldCoalescedCount,
	"retryCount":        run.FieldRetryCount,
	"sessionId":         run.FieldSessionID,
	"outcome":           run.FieldOutcome,
	"summary":           run.FieldSummary,
	"requestedAt":       run.FieldRequestedAt,
	"claimedAt":         run.FieldClaimedAt,
	"finishedAt":        run.FieldFinishedAt,
	"cancelRequestedAt": run.FieldCancelRequestedAt,
	"agent":             run.FieldAgentID,
	"workspace":         run.FieldWorkspaceID,
	"routine":           run.FieldRoutineID,
}

// shownOf is what the document selects of the field that is being resolved, through the fields of a path below it: those of a
// connection's rows are below edges and node. A field may be there several times, by several aliases.
func shownOf(ctx context.Context, path ...string) []graphql.CollectedField {
	fc, operation := graphql.GetFieldContext(ctx), graphql.GetOperationContext(ctx)
	at := []graphql.CollectedField{fc.Field}
	for _, name := range path {
		var below []graphql.CollectedField
		for _, f := range at {
			for _, one := range selected(operation, f) { // which gqlgen keeps: it must stay as it is
				if one.Name == name {
					below = append(below, one)
				}
			}
		}
		at = below
	}
	var out []graphql.CollectedField
	for _, f := range at {
		out = append(out, selected(operation, f)...)
	}
	return out
}

// selected is what is selected of a field; fragments on its type count, and those on the interfaces of a run.
func selected(operation *graphql.OperationContext, f graphql.CollectedField) []graphql.CollectedField {
	satisfies := []string{f.Definition.Type.Name()}
	if satisfies[0] == "Run" {
		satisfies = runImplementors
	}
	return graphql.CollectFields(operation, f.Selections, satisfies)
}

// narrowed makes a query of runs read only the columns that the document shows below a path. A run has some fifty, and a row of
// the API is written from few of them.
func narrowed(ctx context.Context, q *ent.RunQuery, path ...string) *ent.RunQuery {
	if columns := shownColumns(ctx, path...); columns != nil {
		q.Select(columns...)
	}
	return q
}

// shownColumns are the columns of a run that the document shows below a path; nil: it shows what may need any.
func shownColumns(ctx context.Context, path ...string) []string {
	if graphql.GetFieldContext(ctx) == nil { // nobody shows what is read
		return nil
	}
	columns := []string{run.FieldID, run.FieldRequestedAt} // which every list orders by
	for _, f := range shownOf(ctx, path...) {
		column, known := runColumns[f.Name]
		if !known {
			return nil
		}
		if !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
	}
	return columns
}
