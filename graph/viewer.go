package graph

import (
	"context"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
)

// viewer is the caller, as it may know itself.
func (r *Resolver) viewer(ctx context.Context) (*model.Viewer, error) {
	caller, _ := auth.FromContext(ctx)
	out := &model.Viewer{Kind: model.ViewerKind(caller.Kind), Can: []domain.TokenScope{}}
	for _, scope := range domain.TokenScope("").Values() {
		if caller.Allows(domain.TokenScope(scope)) {
			out.Can = append(out.Can, domain.TokenScope(scope))
		}
	}
	var err error
	if caller.WorkspaceID != "" {
		if out.Workspace, err = visible(r.Reader.Workspace.Get(ctx, caller.WorkspaceID)); err != nil {
			return nil, fmt.Errorf("read the caller's workspace: %w", err)
		}
	}
	if caller.TokenID != "" && asksFor(ctx, "token") {
		row, err := visible(r.Reader.ApiToken.Get(ctx, caller.TokenID))
		if err != nil {
			return nil, fmt.Errorf("read the caller's token: %w", err)
		}
		out.Token = viewerToken(row)
	}
	return out, nil
}

func viewerToken(row *ent.ApiToken) *model.ViewerToken {
	if row == nil {
		return nil
	}
	return &model.ViewerToken{Name: row.Name, Scopes: append([]domain.TokenScope{}, row.Scopes...), ExpiresAt: row.ExpiresAt}
}

// ownerOf is who executes an attempt; nil while nobody does, and where that is not known any more.
func ownerOf(ctx context.Context, attempt *ent.RunAttempt) (*model.AttemptOwner, error) {
	owners, err := load(ctx).ownersOf.Load(ctx, attempt.RunID)
	if err != nil {
		return nil, err
	}
	for _, o := range owners {
		if o.Number != attempt.Number {
			continue
		}
		kind := model.AttemptOwnerKindProcess
		if o.Worker {
			kind = model.AttemptOwnerKindWorker
		}
		return &model.AttemptOwner{Kind: kind, ID: o.ID, Name: o.Name, Host: o.Host, Version: o.Version}, nil
	}
	return nil, nil
}
