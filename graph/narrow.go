package graph

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
)

//go:embed fieldscopes.txt
var fieldScopesText string

// fieldScopes says of each field, by the names of its type and itself, which scopes see it beside READ.
var fieldScopes = readFieldScopes(fieldScopesText)

func readFieldScopes(text string) map[string][]domain.TokenScope {
	out := map[string][]domain.TokenScope{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		scopes := []domain.TokenScope{}
		for _, word := range words[1:] {
			scopes = append(scopes, domain.TokenScope(word))
		}
		out[words[0]] = scopes
	}
	return out
}

// narrow refuses an operation of a caller without READ that reaches beyond what such callers see; nil when it does not. What is not
// in the table is beyond.
func narrow(ctx context.Context, schema *ast.Schema, operation *graphql.OperationContext) *gqlerror.Error {
	caller, _ := auth.FromContext(ctx)
	if operation.Operation == nil || caller.Kind == "" || caller.Allows(domain.TokenScopeRead) {
		return nil
	}
	return border{schema, caller}.selections(operation.Operation.SelectionSet)
}

// border is what a caller without READ does not reach beyond.
type border struct {
	schema *ast.Schema
	caller auth.Principal
}

func (b border) selections(selections ast.SelectionSet) *gqlerror.Error {
	for _, s := range selections {
		var err *gqlerror.Error
		switch s := s.(type) {
		case *ast.Field:
			err = b.field(s)
		case *ast.InlineFragment:
			err = b.selections(s.SelectionSet)
		case *ast.FragmentSpread: // validated: it exists, and none contains itself
			err = b.selections(s.Definition.SelectionSet)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b border) field(f *ast.Field) *gqlerror.Error {
	of := f.ObjectDefinition
	switch {
	case strings.HasPrefix(f.Name, "__") || of != nil && strings.HasPrefix(of.Name, "__"): // the schema itself
		return nil
	case of == b.schema.Query || of == b.schema.Mutation || of == b.schema.Subscription:
		if !b.caller.AllowsAny(neededFor(f)...) {
			return nil // @requires refuses the field, and says better why
		}
	case !b.shows(of, f.Name):
		refused := &Error{Code: CodeForbidden, Message: fmt.Sprintf("%s.%s needs scope %s, which the token does not have; leave the field out", of.Name, f.Name, domain.TokenScopeRead)}
		return &gqlerror.Error{Err: refused, Message: refused.Message, Extensions: map[string]any{"code": refused.Code},
			Locations: []gqlerror.Location{{Line: f.Position.Line, Column: f.Position.Column}}}
	}
	return b.selections(f.SelectionSet)
}

// shows says whether the caller sees a field of a type. One of an interface is one of every type behind it.
func (b border) shows(of *ast.Definition, field string) bool {
	if of == nil {
		return false
	}
	types := []*ast.Definition{of}
	if of.IsAbstractType() {
		types = b.schema.GetPossibleTypes(of)
	}
	seen := false
	for _, d := range types {
		if d.IsAbstractType() { // an interface of the interface, whose types are among these
			continue
		}
		if seen = b.caller.AllowsAny(fieldScopes[d.Name+"."+field]...); !seen {
			return false
		}
	}
	return seen
}

// neededFor are the scopes of @requires of a field.
func neededFor(f *ast.Field) (scopes []domain.TokenScope) {
	if d := f.Definition.Directives.ForName("requires"); d != nil {
		for _, v := range d.Arguments.ForName("scopes").Value.Children {
			scopes = append(scopes, domain.TokenScope(v.Value.Raw))
		}
	}
	return scopes
}
