package graph

import (
	"context"
	"fmt"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
)

// Callers without READ are agents with their run's token, and workers with EXECUTE. They get records only as answers to
// what they may do. Of these types they see these fields; of others they see all but the hidden ones. Behind these
// borders lie other agents' prompts and executors, routines, webhooks, the inbox and the feed (SPEC S7.4).
var (
	shownToNarrow = map[string][]string{
		"Workspace": {"id", "name", "slug"}, "Agent": {"id", "name", "role"}, "Project": {"id", "name"},
		"Routine": {"id", "name"}, "RoutineRun": {"id", "status"},
		"ScheduleTrigger": {"id"}, "WebhookTrigger": {"id"}, "ManualTrigger": {"id"},
	}
	hiddenFromNarrow = map[string][]string{"Task": {"executor", "runs", "sessions"}}
)

// narrow refuses an operation of a caller without READ that reaches beyond; nil when it does not.
func narrow(ctx context.Context, schema *ast.Schema, operation *graphql.OperationContext) *gqlerror.Error {
	caller, _ := auth.FromContext(ctx)
	if operation.Operation == nil || caller.Kind == "" || caller.Allows(domain.TokenScopeRead) {
		return nil
	}
	return narrowSelection(schema, operation.Operation.SelectionSet)
}

func narrowSelection(schema *ast.Schema, selections ast.SelectionSet) *gqlerror.Error {
	for _, s := range selections {
		var err *gqlerror.Error
		switch s := s.(type) {
		case *ast.Field:
			if err = narrowField(schema, s); err == nil {
				err = narrowSelection(schema, s.SelectionSet)
			}
		case *ast.InlineFragment:
			err = narrowSelection(schema, s.SelectionSet)
		case *ast.FragmentSpread: // validated: it exists, and none contains itself
			err = narrowSelection(schema, s.Definition.SelectionSet)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func narrowField(schema *ast.Schema, f *ast.Field) *gqlerror.Error {
	if f.ObjectDefinition == nil || f.Name == "__typename" {
		return nil
	}
	types := []*ast.Definition{f.ObjectDefinition}
	if f.ObjectDefinition.IsAbstractType() { // a field of an interface is one of every type behind it
		types = schema.GetPossibleTypes(f.ObjectDefinition)
	}
	for _, d := range types {
		shown, limited := shownToNarrow[d.Name]
		if limited && !slices.Contains(shown, f.Name) || slices.Contains(hiddenFromNarrow[d.Name], f.Name) {
			refused := &Error{Code: CodeForbidden, Message: fmt.Sprintf("%s.%s needs scope %s, which the token does not have; leave the field out",
				f.ObjectDefinition.Name, f.Name, domain.TokenScopeRead)}
			return &gqlerror.Error{Err: refused, Message: refused.Message, Extensions: map[string]any{"code": refused.Code},
				Locations: []gqlerror.Location{{Line: f.Position.Line, Column: f.Position.Column}}}
		}
	}
	return nil
}
