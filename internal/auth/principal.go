package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Kind is how a caller proved itself.
type Kind string

// The kinds of caller. The zero Kind is nobody, who may do and see nothing.
const (
	KindLocal Kind = "LOCAL" // without a token, where none is asked; and commands that work on the database itself
	KindToken Kind = "TOKEN" // by an API token
	KindRun   Kind = "RUN"   // by the token of a live run's attempt
)

// Principal is an authenticated caller.
type Principal struct {
	Kind        Kind
	TokenID     xid.ID              // of KindToken
	WorkspaceID xid.ID              // the only workspace it sees; zero for the instance (KindLocal and instance tokens)
	Scopes      []domain.TokenScope // of KindToken; the other kinds have theirs by nature
	AgentID     xid.ID              // of KindRun: the author of all it does
	RunID       xid.ID              // of KindRun
	Attempt     int                 // of KindRun, from 1
	Ended       bool                // of KindRun: the attempt has ended; such a caller may do nothing, and is told so where it reports
	TaskID      xid.ID              // of KindRun; zero for a taskless run
	ExpiresAt   time.Time           // from this instant on it is nobody; zero: never
}

// Local is the caller of a server that asks for no token (--auth none), and of commands that have the database itself.
func Local() Principal { return Principal{Kind: KindLocal} }

// implied lists what a token with a scope may do. The three scopes of people nest, since ADMIN can make itself any
// token anyway and whoever acts must see what came of it. EXECUTE and RUN stand apart. A worker gets what
// it needs in the answers of its own mutations, and an agent reads what its prompt tells of. No person's token may report results that no worker had.
var implied = map[domain.TokenScope][]domain.TokenScope{
	domain.TokenScopeRead:    {domain.TokenScopeRead},
	domain.TokenScopeOperate: {domain.TokenScopeOperate, domain.TokenScopeRead},
	domain.TokenScopeAdmin:   {domain.TokenScopeAdmin, domain.TokenScopeOperate, domain.TokenScopeRead},
	domain.TokenScopeExecute: {domain.TokenScopeExecute},
}

// localScopes is what Local allows: everything but what needs a run to be bound to.
var localScopes = []domain.TokenScope{domain.TokenScopeRead, domain.TokenScopeOperate, domain.TokenScopeAdmin, domain.TokenScopeExecute}

// Allows reports whether the caller may do what needs the scope. RUN is allowed to run tokens and to nobody else, even if a stored
// token lists it. It does not look at ExpiresAt (see ExpiredAt).
func (p Principal) Allows(scope domain.TokenScope) bool {
	switch p.Kind {
	case KindLocal:
		return slices.Contains(localScopes, scope)
	case KindRun:
		return scope == domain.TokenScopeRun && !p.Ended
	case KindToken:
		return slices.ContainsFunc(p.Scopes, func(held domain.TokenScope) bool { return slices.Contains(implied[held], scope) })
	}
	return false
}

// AllowsAny reports whether one of the scopes is enough, as @requires means it. No scopes are never enough.
func (p Principal) AllowsAny(scopes ...domain.TokenScope) bool {
	return slices.ContainsFunc(scopes, p.Allows)
}

// IsInstance reports whether the caller belongs to no workspace and so may see all and make new ones.
func (p Principal) IsInstance() bool {
	return p.Kind == KindLocal || p.Kind == KindToken && p.WorkspaceID == ""
}

// ExpiredAt reports whether the caller's token has ended at an instant.
func (p Principal) ExpiredAt(now time.Time) bool {
	return !p.ExpiresAt.IsZero() && !now.Before(p.ExpiresAt)
}

// LogValue logs who this is by its ids.
func (p Principal) LogValue() slog.Value {
	attributes := []slog.Attr{slog.String("kind", strings.ToLower(string(p.Kind)))}
	for _, id := range []struct {
		key   string
		value xid.ID
	}{{"token_id", p.TokenID}, {"workspace_id", p.WorkspaceID}, {"agent_id", p.AgentID}, {"run_id", p.RunID}} {
		if id.value != "" {
			attributes = append(attributes, slog.String(id.key, id.value.String()))
		}
	}
	return slog.GroupValue(attributes...)
}

// CheckScopes refuses scopes that an API token cannot have: none, unknown ones, and RUN, which the scheduler alone gives.
func CheckScopes(scopes []domain.TokenScope) error {
	if len(scopes) == 0 {
		return errors.New("a token needs at least one scope: READ, OPERATE, ADMIN or EXECUTE")
	}
	for _, scope := range scopes {
		if scope == domain.TokenScopeRun {
			return errors.New("scope RUN belongs to the tokens of runs, which the scheduler makes: choose among READ, OPERATE, ADMIN and EXECUTE")
		}
		if _, ok := implied[scope]; !ok {
			return fmt.Errorf("there is no scope %q: choose among READ, OPERATE, ADMIN and EXECUTE", scope)
		}
	}
	return nil
}

type contextKey struct{}

// WithPrincipal makes a context that carries the caller.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext is the caller that a context carries; without one it is nobody and ok is false.
func FromContext(ctx context.Context) (p Principal, ok bool) {
	p, ok = ctx.Value(contextKey{}).(Principal)
	return p, ok
}
