package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
)

// requires is directive @requires: the caller must be known and allowed one of the scopes. It guards fields that are
// asked for. It also guards fields of inputs that are present, wherever they stand in the input, because gqlgen calls
// it while it reads the arguments, before anything is done. Once the server ends, agents and reports of attempts alone
// are served.
func (r *Resolver) requires(ctx context.Context, object any, next graphql.Resolver, scopes []domain.TokenScope) (any, error) {
	what, extensions := "this", map[string]any(nil)
	if _, ofInput := object.(map[string]any); ofInput {
		path := inputPath(ctx)
		what, extensions = strings.Join(path, "."), map[string]any{"field": path, "scopes": scopes}
	}
	caller, ok := auth.FromContext(ctx)
	switch {
	case !ok || caller.Kind == "":
		return nil, &Error{Code: CodeUnauthenticated, Message: "who calls is not known: send a bearer token"}
	case r.ends() && caller.Kind != auth.KindRun && !isReport(ctx):
		return nil, &Error{Code: CodeUnavailable, Message: "this server is ending; ask again in a few seconds"}
	case caller.Ended && isReport(ctx) && slices.Contains(scopes, domain.TokenScopeRun): // it hears STALE_LEASE, as who reports too late does
		return next(ctx)
	case caller.Ended:
		return nil, &Error{Code: CodeUnauthenticated, Message: "the attempt that this run token belongs to has ended: end the agent's work; the run's next attempt has a token of its own"}
	case caller.AllowsAny(scopes...):
		return next(ctx)
	case caller.Kind == auth.KindRun && extensions == nil:
		return nil, &Error{Code: CodeForbidden, Message: "a run's token may not do this: by it an agent reads its task, its run and the names of the workspace's agents, comments, " +
			"moves its task, makes subtasks, asks for and gives approvals, and reports"}
	case caller.Kind == auth.KindRun:
		return nil, &Error{Code: CodeForbidden, Extensions: extensions, Message: fmt.Sprintf("%s needs scope %s, which no run's token has; leave it out, and ask a person to set it", what, join(scopes))}
	case extensions != nil:
		return nil, &Error{Code: CodeForbidden, Extensions: extensions, Message: fmt.Sprintf(
			"%s needs scope %s, which the token does not have; leave it out, or use a token with it (null is refused, too: it would change what is set)", what, join(scopes))}
	}
	return nil, &Error{Code: CodeForbidden, Message: fmt.Sprintf("this needs scope %s, which the token does not have; make one with it", join(scopes))}
}

// inputPath is the path of the input field that is being read, from the argument on: input, executor.
func inputPath(ctx context.Context) []string {
	var path []string
	for _, part := range graphql.GetPath(ctx)[resolvedPath(ctx):] {
		switch part := part.(type) {
		case ast.PathName:
			path = append(path, string(part))
		case ast.PathIndex:
			path = append(path, fmt.Sprint(int(part)))
		}
	}
	return path
}

// resolvedPath is how long the path of the field is that is being resolved.
func resolvedPath(ctx context.Context) int {
	return len(graphql.GetFieldContext(ctx).Path())
}

// ends reports whether the server is on its way out.
func (r *Resolver) ends() bool {
	select {
	case <-r.Leaving: // nil, it never ends
		return true
	default:
		return false
	}
}

// isReport reports whether a field is a report of an attempt, or belongs to the answer to one.
func isReport(ctx context.Context) bool {
	f := graphql.GetFieldContext(ctx)
	for f != nil && f.Parent != nil && f.Parent.Field.Field != nil {
		f = f.Parent
	}
	return f != nil && f.Field.Field != nil && f.Object == "Mutation" && strings.HasPrefix(f.Field.Name, "reportRun")
}

func join(scopes []domain.TokenScope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, " or ")
}

// instanceOnly refuses callers that belong to one workspace.
func instanceOnly(ctx context.Context, what string) error {
	if caller, _ := auth.FromContext(ctx); !caller.IsInstance() {
		return &Error{Code: CodeForbidden, Message: what + " needs a token of the instance, and this one belongs to a workspace; `rouse token create` on the server makes one"}
	}
	return nil
}
