package graph

import (
	"context"
	"fmt"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
)

// requires is directive @requires: the caller must be known and allowed one of the scopes.
func requires(ctx context.Context, _ any, next graphql.Resolver, scopes []domain.TokenScope) (any, error) {
	caller, ok := auth.FromContext(ctx)
	if !ok || caller.Kind == "" {
		return nil, &Error{Code: CodeUnauthenticated, Message: "who calls is not known: send a bearer token"}
	}
	if caller.Kind == auth.KindRun && !caller.AllowsAny(scopes...) {
		return nil, &Error{Code: CodeForbidden, Message: "a run's token may not do this: by it an agent comments, moves its task, makes subtasks, asks for and gives approvals, and reports; " +
			"what it has to know is in its prompt"}
	}
	if !caller.AllowsAny(scopes...) {
		return nil, &Error{Code: CodeForbidden, Message: fmt.Sprintf("this needs scope %s, which the token does not have; make one with it", join(scopes))}
	}
	return next(ctx)
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
