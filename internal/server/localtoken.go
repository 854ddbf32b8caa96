package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/tokenfile"
	"rouse.dev/rouse/internal/xid"
)

// localScopes are those of the token in the data folder: all that its owner may do, and what a worker on this machine does.
var localScopes = []domain.TokenScope{domain.TokenScopeAdmin, domain.TokenScopeExecute}

// localName is what the token of a data folder is called in lists and in the feed. It tells the folders of several servers
// apart, and finds the tokens that a folder had before.
func localName(dir string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	const most = 200 // runes that a name may have
	return domain.FirstRunes("local token of "+host+":"+dir, most)
}

// keepLocalToken returns the token in the data folder when the database knows it as a live one, and otherwise makes
// another. So a token that was revoked never comes back, an owner of the folder is never locked out, and a file that
// came from elsewhere opens nothing.
func keepLocalToken(ctx context.Context, s *store.Store, dir string, log *slog.Logger) (token auth.Token, err error) {
	release, err := tokenfile.Lock(dir)
	if err != nil {
		return auth.Token{}, err
	}
	defer func() { err = errors.Join(err, release()) }()
	token, err = tokenfile.Read(dir)
	why := ""
	switch _, unusable := errors.AsType[*tokenfile.UnusableError](err); {
	case errors.Is(err, fs.ErrNotExist):
		log.Info("made a token for this data folder", "file", tokenfile.Path(dir))
	case unusable:
		why = err.Error()
	case err != nil:
		return auth.Token{}, err
	default:
		known, err := s.TokenByDigest(ctx, token.Digest().String())
		if err != nil || known != nil {
			return token, err
		}
		why = "this database knows it as revoked, or not at all"
	}
	if why != "" {
		log.Warn("the token of this data folder does not count any more: another takes its place", "file", tokenfile.Path(dir), "because", why)
	}
	token, _, err = replaceLocalToken(ctx, s, dir)
	return token, err
}

// replaceLocalToken makes a token, writes it to the folder, and then ends those that the folder had. Whatever breaks
// off in between, the file holds a valid token. The caller holds the folder's lock.
func replaceLocalToken(ctx context.Context, s *store.Store, dir string) (auth.Token, xid.ID, error) {
	token, err := auth.NewToken(rand.Reader)
	if err != nil {
		return auth.Token{}, "", err
	}
	before := ""
	if old, err := tokenfile.Read(dir); err == nil { // one that cannot be read is found by its name
		before = old.Digest().String()
	}
	name := localName(dir)
	id, err := s.CreateToken(ctx, store.NewToken{Name: name, Prefix: token.Prefix(), Digest: token.Digest().String(), Scopes: localScopes})
	if err != nil {
		return auth.Token{}, "", fmt.Errorf("store the token of the data folder: %w", err)
	}
	if err := tokenfile.Write(dir, token); err != nil {
		return auth.Token{}, "", errors.Join(err, s.RevokeToken(ctx, "", id))
	}
	return token, id, s.RevokeTokensBefore(ctx, id, name, before)
}
