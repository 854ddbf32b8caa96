package graph

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/topic"
)

// keyOf stands for all that decides how an item of a subscription is written, besides the item: the document, the
// variables that are used below the subscribed field, and what the caller may see. Arguments of the field itself say
// which items come, so watchers who begin at different cursors have one key.
func keyOf(ctx context.Context, oc *graphql.OperationContext) topic.Key {
	caller, _ := auth.FromContext(ctx)
	caller.TokenID = "" // two tokens of one workspace with the same scopes see the same
	caller.Scopes = slices.Sorted(slices.Values(caller.Scopes))
	used := map[string]any{}
	usedBelow(oc.Operation.SelectionSet, oc.Variables, used)
	values, err := json.Marshal(used)
	if err != nil { // no value that came as JSON
		values = fmt.Appendf(nil, "%p", oc)
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %s %+v", oc.RawQuery, oc.OperationName, values, caller))
}

// usedBelow gathers the variables of a subscription but those in the arguments of its field.
func usedBelow(set ast.SelectionSet, values, used map[string]any) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			gatherSet(s.SelectionSet, values, used)
		case *ast.InlineFragment:
			usedBelow(s.SelectionSet, values, used)
		case *ast.FragmentSpread:
			usedBelow(s.Definition.SelectionSet, values, used)
		}
	}
}

func gatherSet(set ast.SelectionSet, values, used map[string]any) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			gatherArguments(s.Arguments, values, used)
			gatherDirectives(s.Directives, values, used)
			gatherSet(s.SelectionSet, values, used)
		case *ast.InlineFragment:
			gatherDirectives(s.Directives, values, used)
			gatherSet(s.SelectionSet, values, used)
		case *ast.FragmentSpread: // validated: none contains itself
			gatherDirectives(s.Directives, values, used)
			gatherSet(s.Definition.SelectionSet, values, used)
		}
	}
}

func gatherDirectives(list ast.DirectiveList, values, used map[string]any) {
	for _, d := range list {
		gatherArguments(d.Arguments, values, used)
	}
}

func gatherArguments(list ast.ArgumentList, values, used map[string]any) {
	for _, a := range list {
		gatherValue(a.Value, values, used)
	}
}

func gatherValue(v *ast.Value, values, used map[string]any) {
	if v.Kind == ast.Variable {
		if value, there := values[v.Raw]; there {
			used[v.Raw] = value
		}
	}
	for _, c := range v.Children {
		gatherValue(c.Value, values, used)
	}
}
