package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/apitoken"
	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/tokenfile"
	"rouse.dev/rouse/internal/xid"
)

// Tokens is what the command line does with bearer tokens.
type Tokens struct {
	store *store.Store
	dir   string // the data folder
}

// NewTokens works on an open database, beside whatever else uses it.
func NewTokens(db *Database) *Tokens {
	return &Tokens{store: db.quietStore(), dir: db.files.dir}
}

// TokenSpec is a token to make. Expires 0 means never; Workspace is an id or a slug, "" makes a token of the instance.
type TokenSpec struct {
	Name      string
	Scopes    []domain.TokenScope
	Workspace string
	Expires   time.Duration
}

// Check says what is wrong with a token to make, before anything is opened for it.
func (in TokenSpec) Check() error { return auth.CheckScopes(in.Scopes) }

// MadeToken is a token that was made. Text is not stored.
type MadeToken struct {
	ID   xid.ID
	Text string
}

// Create makes a token.
func (t *Tokens) Create(ctx context.Context, in TokenSpec) (MadeToken, error) {
	if err := in.Check(); err != nil {
		return MadeToken{}, err
	}
	token, err := auth.NewToken(rand.Reader)
	if err != nil {
		return MadeToken{}, err
	}
	workspaceID, err := t.workspace(ctx, in.Workspace)
	if err != nil {
		return MadeToken{}, err
	}
	row := store.NewToken{WorkspaceID: workspaceID, Name: in.Name, Prefix: token.Prefix(), Digest: token.Digest().String(), Scopes: in.Scopes}
	if in.Expires > 0 {
		at := time.Now().Add(in.Expires)
		row.ExpiresAt = &at
	}
	id, err := t.store.CreateToken(auth.WithPrincipal(ctx, auth.Local()), row)
	if err != nil {
		return MadeToken{}, err
	}
	return MadeToken{id, token.Reveal()}, nil
}

// workspace finds a workspace by id or slug; "" means no workspace.
func (t *Tokens) workspace(ctx context.Context, name string) (xid.ID, error) {
	if name == "" {
		return "", nil
	}
	ctx = auth.WithPrincipal(ctx, auth.Local())
	id, err := t.store.Reader().Workspace.Query().Where(workspace.Or(workspace.ID(xid.ID(name)), workspace.Slug(name))).OnlyID(ctx)
	if ent.IsNotFound(err) {
		return "", fmt.Errorf("there is no workspace %q: give its id (wsp_…) or its slug, as the query { workspaces(first: 100) { edges { node { id slug } } } } lists them", name)
	}
	if err != nil {
		return "", fmt.Errorf("find the workspace: %w", err)
	}
	return id, nil
}

// TokenRow is a token as the list shows it.
type TokenRow struct {
	ID                                     xid.ID
	Name, Prefix, Scopes, Workspace, State string
}

// List is all tokens, newest first.
func (t *Tokens) List(ctx context.Context) ([]TokenRow, error) {
	ctx = auth.WithPrincipal(ctx, auth.Local())
	tokens, err := t.store.Reader().ApiToken.Query().Order(ent.Desc(apitoken.FieldCreatedAt, apitoken.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	rows := make([]TokenRow, len(tokens))
	for i, token := range tokens {
		rows[i] = TokenRow{ID: token.ID, Name: token.Name, Prefix: token.Prefix, Scopes: scopeNames(token.Scopes), Workspace: "(instance)", State: stateOf(token, time.Now())}
		if token.WorkspaceID != "" {
			rows[i].Workspace = token.WorkspaceID.String()
		}
	}
	return rows, nil
}

// Revoke ends a token now.
func (t *Tokens) Revoke(ctx context.Context, id xid.ID) error {
	err := t.store.RevokeToken(auth.WithPrincipal(ctx, auth.Local()), "", id)
	if _, refused := errors.AsType[*domain.UserError](err); refused {
		return fmt.Errorf("there is no token %q: `rouse token list` shows those that there are", id)
	}
	return err
}

// RotateLocal gives the data folder another token and ends the one that it had; path is the file that holds it.
func (t *Tokens) RotateLocal(ctx context.Context) (id xid.ID, path string, err error) {
	if _, err := os.Stat(t.dir); err != nil {
		return "", "", fmt.Errorf("the data folder: %w: name that of the server with --data-dir", err)
	}
	release, err := tokenfile.Lock(t.dir)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	_, id, err = replaceLocalToken(ctx, t.store, t.dir)
	return id, tokenfile.Path(t.dir), err
}

func scopeNames(scopes []domain.TokenScope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}

func stateOf(t *ent.ApiToken, now time.Time) string {
	switch {
	case t.RevokedAt != nil:
		return "revoked"
	case t.ExpiresAt == nil:
		return "live"
	case now.Before(*t.ExpiresAt):
		return "live until " + t.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return "expired"
}
