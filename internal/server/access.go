package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// checkAccess stores the bootstrap token and settles that of the data folder, which stands for its owner also on standby.
func (s *Server) checkAccess(ctx context.Context) (err error) {
	if s.options.Config.Auth == config.AuthNone && !s.front.loopback {
		return fmt.Errorf("--auth none is for this machine alone, and %s can be reached from others: leave it out, or listen on 127.0.0.1 with --addr", s.front.listener.Addr())
	}
	if token := s.options.Config.BootstrapToken; !token.IsEmpty() {
		if err := storeBootstrap(ctx, s.store, token.Reveal()); err != nil {
			return err
		}
	}
	s.local, err = keepLocalToken(ctx, s.store, s.files.dir, s.log)
	return err
}

// storeBootstrap stores the operator's own token with all scopes; storing it at every start is one token.
func storeBootstrap(ctx context.Context, s *store.Store, token string) error {
	_, err := s.CreateToken(ctx, store.NewToken{
		Name: config.EnvBootstrapToken, Prefix: "bootstrap", Digest: digestOf(token),
		Scopes: []domain.TokenScope{domain.TokenScopeAdmin, domain.TokenScopeExecute},
	})
	if err != nil {
		return fmt.Errorf("store the bootstrap token: %w", err)
	}
	return nil
}

// digestOf is the stored form of a bearer token, whoever made it.
func digestOf(token string) string { return auth.Digest(sha256.Sum256([]byte(token))).String() }

// longestToken bounds what is hashed and looked up.
const longestToken = 512

// tokens is what the store knows of bearer tokens.
type tokens interface {
	TokenByDigest(ctx context.Context, digest string) (*store.Token, error)
	RunTokenByDigest(ctx context.Context, digest string) (*store.RunToken, error)
	// TokenUsed notes that somebody came with a token.
	TokenUsed(ctx context.Context, id xid.ID)
}

// gatekeeper turns credentials into callers.
type gatekeeper struct {
	tokens  tokens
	open    bool        // --auth none: a caller without a token is the owner
	ending  func() bool // the process ends, and hears agents and workers alone; nil: it does not
	sockets *liveSockets
}

// authenticate is the edge's hook. The context of a socket ends when its token is revoked or expires.
func (g *gatekeeper) authenticate(ctx context.Context, c edge.Credentials) (context.Context, error) {
	if c.Token == "" {
		if !g.open {
			return nil, &edge.Error{Code: edge.CodeUnauthenticated, Message: auth.ErrNoToken.Error()}
		}
		return auth.WithPrincipal(ctx, auth.Local()), nil
	}
	caller, err := g.identify(ctx, c.Token)
	if err != nil {
		return nil, err
	}
	if g.ending != nil && g.ending() && !caller.AllowsAny(domain.TokenScopeExecute, domain.TokenScopeRun) && !caller.Ended {
		return nil, &edge.Error{Code: edge.CodeUnavailable, Message: "this server is ending; ask again in a few seconds"}
	}
	if caller.TokenID != "" { // here alone: an open socket is no use
		g.tokens.TokenUsed(ctx, caller.TokenID)
	}
	if c.Socket && caller.Ended { // a report is no subscription
		return nil, errUnknownToken
	}
	ctx = auth.WithPrincipal(ctx, caller)
	if c.Socket {
		ctx = g.sockets.add(ctx, c.Token, caller.ExpiresAt)
	}
	return ctx, nil
}

// errUnknownToken does not say whether a token never was, was revoked, or has ended.
var errUnknownToken = &edge.Error{Code: edge.CodeUnauthenticated,
	Message: "this token is not known here, was revoked, or has expired; `rouse token create` makes a new one"}

// identify finds who a token stands for.
func (g *gatekeeper) identify(ctx context.Context, text string) (auth.Principal, error) {
	if len(text) > longestToken {
		return auth.Principal{}, errUnknownToken
	}
	if token, err := auth.ParseToken(text); err == nil && token.IsRun() {
		return g.identifyRun(ctx, text)
	}
	t, err := g.tokens.TokenByDigest(ctx, digestOf(text))
	if err != nil {
		return auth.Principal{}, err
	}
	if t == nil {
		return auth.Principal{}, errUnknownToken
	}
	p := auth.Principal{Kind: auth.KindToken, TokenID: t.ID, WorkspaceID: t.WorkspaceID, Scopes: t.Scopes}
	if t.ExpiresAt != nil {
		p.ExpiresAt = *t.ExpiresAt
	}
	return p, nil
}

func (g *gatekeeper) identifyRun(ctx context.Context, text string) (auth.Principal, error) {
	t, err := g.tokens.RunTokenByDigest(ctx, digestOf(text))
	if err != nil {
		return auth.Principal{}, err
	}
	if t == nil {
		return auth.Principal{}, errUnknownToken
	}
	return auth.Principal{Kind: auth.KindRun, WorkspaceID: t.WorkspaceID, AgentID: t.AgentID, RunID: t.RunID, Attempt: t.Attempt, TaskID: t.TaskID, Ended: t.Ended}, nil
}

// stillGood reports whether a token still stands for somebody. When the database does not answer, it does.
func (g *gatekeeper) stillGood(ctx context.Context, token string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	caller, err := g.identify(ctx, token)
	return !errors.Is(err, errUnknownToken) && !caller.Ended
}
