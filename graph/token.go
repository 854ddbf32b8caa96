package graph

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

const tokenNameMax = 200

// valueNotKept says in a replay why there is no value.
const valueNotKept = "a call with this idempotency key has made this token, and its value was in that call's answer alone, since it is stored nowhere: " +
	"if that answer was lost, revoke the token (revokeApiToken) and make another one with a new key"

// createToken makes a token and shows its text, which is shown once and stored nowhere.
func (r *Resolver) createToken(ctx context.Context, in model.CreateAPITokenInput) (*model.CreateAPITokenPayload, error) {
	out := &model.CreateAPITokenPayload{}
	row, token, err := r.readToken(ctx, in)
	if err != nil {
		return out, err
	}
	made, err := r.Store.CreateTokenOnce(ctx, row)
	if err != nil {
		return out, err
	}
	if made.Replayed {
		out.Replayed, out.TokenMessage = true, new(valueNotKept)
	} else {
		out.Token = new(token.Reveal())
	}
	if out.APIToken, err = r.token(ctx, made.ID); err != nil {
		return nil, fmt.Errorf("read new token: %w", err)
	}
	return out, nil
}

// readToken is the token that an input asks for, with a new text.
func (r *Resolver) readToken(ctx context.Context, in model.CreateAPITokenInput) (row store.NewToken, token auth.Token, err error) {
	if in.WorkspaceID == nil {
		err = instanceOnly(ctx, "making a token of the instance")
	} else {
		err = r.checkWorkspace(ctx, *in.WorkspaceID)
	}
	if err != nil {
		return row, token, err
	}
	now, err := load(ctx).now()
	if err != nil {
		return row, token, err
	}
	once, err := idempotency(in, in.IdempotencyKey)
	if err := joinProblems(checkToken(in, now), err); err != nil {
		return row, token, err
	}
	if token, err = auth.NewToken(rand.Reader); err != nil {
		return row, token, err
	}
	return store.NewToken{WorkspaceID: idOf(in.WorkspaceID), Name: in.Name, Prefix: token.Prefix(), Digest: token.Digest().String(), Scopes: in.Scopes,
		ExpiresAt: in.ExpiresAt, Idempotency: once}, token, nil
}

func checkToken(in model.CreateAPITokenInput, now time.Time) error {
	r := &inputProblems{}
	switch {
	case in.Name == "" || !plain(in.Name):
		r.add([]string{"name"}, domain.UserErrorCodeRequired, "name the token, so that it can be told from others")
	case len([]rune(in.Name)) > tokenNameMax:
		r.add([]string{"name"}, domain.UserErrorCodeTooLong, "must be at most %d characters", tokenNameMax)
	}
	if err := auth.CheckScopes(in.Scopes); err != nil {
		r.add([]string{"scopes"}, domain.UserErrorCodeInvalid, "%s", err)
	}
	if in.ExpiresAt != nil && !in.ExpiresAt.After(now) {
		r.add([]string{"expiresAt"}, domain.UserErrorCodeInvalid, "must be in the future")
	}
	return domain.AsUserError(r.list)
}

func (r *Resolver) token(ctx context.Context, id xid.ID) (*model.ApiToken, error) {
	row, err := r.Reader.ApiToken.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return &model.ApiToken{ApiToken: row}, nil
}

// revokeToken ends a token that the caller sees. Ending it twice is not an error.
func (r *Resolver) revokeToken(ctx context.Context, id xid.ID) (*model.ApiToken, error) {
	row, err := visible(r.Reader.ApiToken.Get(ctx, id))
	if err != nil {
		return nil, fmt.Errorf("look for token: %w", err)
	}
	if row == nil {
		return nil, notFound("apiTokenId", "token")
	}
	if err := r.Store.RevokeToken(ctx, row.WorkspaceID, id); err != nil {
		return nil, err
	}
	return r.token(ctx, id)
}
